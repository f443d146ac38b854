import { AwsRequests } from '../http/aws-requests.ts';
import type { Proxies } from '../http/proxies.ts';
import type { OperatorSettings } from '../settings/operator.ts';
import { createFolderStore } from '../store/folder.ts';
import type { ObjectStore } from '../store/port.ts';
import { createS3Store } from '../store/s3.ts';

/** Checkpoints and sessions, where the settings say. */
export function openStore(store: OperatorSettings['store'], proxies: Proxies): ObjectStore {
  if (store.kind === 'Folder') return createFolderStore(store.path);
  const { bucket, region, endpoint } = store;
  return createS3Store({
    ...{ bucket, region },
    ...(endpoint === undefined ? {} : { endpoint, pathStyle: true }),
    requests: (deadlines) => new AwsRequests(proxies, deadlines),
  });
}
