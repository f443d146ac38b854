import type { Tool } from '../../agent/tools/port.ts';
import type { SourceScope } from '../port.ts';
import type { Source } from '../source-tool.ts';
import type { KonfluxAccess } from './access.ts';
import { listRuns } from './list-runs.ts';
import { podLog } from './pod-log.ts';

export { type KonfluxAccess, type KonfluxOpened, type KonfluxSettings, openKonflux } from './access.ts';

/** The model's tools on Konflux, which read what belongs to the run's commit in one namespace and nothing else. */
export function konfluxTools(access: KonfluxAccess, scope: SourceScope): readonly Tool[] {
  const { uiUrl } = access.address;
  const source: Source = {
    name: 'Konflux',
    credential: 'kubeconfig token',
    ...(uiUrl === undefined ? {} : { metadata: { konflux_ui: uiUrl } }),
  };
  return [
    listRuns(source, access, scope, 'pipelineruns'),
    listRuns(source, access, scope, 'taskruns'),
    podLog(source, access, scope),
  ];
}
