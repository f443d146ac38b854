import { stat } from 'node:fs/promises';
import {
  printTranscript,
  type ReadTranscript,
  transcriptOfFolder,
  transcriptOfRun,
} from '../cli/transcript.ts';
import { sleep, systemClock } from '../kube/clock.ts';
import type { Environment } from '../settings/environment.ts';
import { type OperatorSettings, SettingsError } from '../settings/operator.ts';
import { flatStore } from '../store/flat.ts';
import { createFolderStore } from '../store/folder.ts';

export interface TranscriptSettings {
  /** A folder of `--save-session`, or the name of an AgentRun. */
  readonly what: string;
  readonly follow: boolean;
  readonly namespace: string;
  readonly kubeconfig: string | undefined;
  readonly context: string | undefined;
  /** Undefined: none was named. */
  readonly store: OperatorSettings['store'] | undefined;
}

/** Prints a transcript to its end. Throws SettingsError for what people can mend. */
export async function showTranscript(
  settings: TranscriptSettings,
  process: {
    readonly env: Environment;
    readonly stdout: { write(text: string): unknown };
    readonly interrupt: AbortSignal;
  },
): Promise<void> {
  const { read, close } = await openTranscript(settings, process.env);
  try {
    await printTranscript(read, {
      follow: settings.follow,
      write: (text) => void process.stdout.write(text),
      pause: (milliseconds, signal) => sleep(systemClock, milliseconds, signal),
      signal: process.interrupt,
    });
  } catch (error) {
    if (!process.interrupt.aborted) throw error;
  } finally {
    await close();
  }
}

interface OpenTranscript {
  readonly read: ReadTranscript;
  close(): Promise<void>;
}

async function openTranscript(settings: TranscriptSettings, env: Environment): Promise<OpenTranscript> {
  const { what, namespace } = settings;
  if (await isFolder(what))
    return { read: transcriptOfFolder(flatStore(createFolderStore(what))), close: async () => undefined };
  if (!/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(what))
    throw new SettingsError(`${what} is no folder, and cannot be the name of an AgentRun`);
  if (settings.store === undefined)
    throw new SettingsError(
      `${what} is no folder; for the AgentRun of that name give the operator's --bucket or --store-dir, where its checkpoints are`,
    );
  return openRun(settings, settings.store, { namespace, name: what }, env);
}

/** What speaks to a cluster is loaded only when one is asked. */
async function openRun(
  { kubeconfig, context }: TranscriptSettings,
  store: OperatorSettings['store'],
  ref: { readonly namespace: string; readonly name: string },
  env: Environment,
): Promise<OpenTranscript> {
  const [{ createClient }, { connect, defaultSource }, { createTransport }, { openStore }, { proxiesOf }] =
    await Promise.all([
      import('../kube/client.ts'),
      import('../kube/config.ts'),
      import('../kube/transport.ts'),
      import('./store.ts'),
      import('./proxies.ts'),
    ]);
  const source = defaultSource({
    env,
    ...(kubeconfig === undefined ? {} : { kubeconfig }),
    ...(context === undefined ? {} : { context }),
  });
  const transport = createTransport(connect(source));
  return {
    read: transcriptOfRun(createClient(transport), openStore(store, proxiesOf(env)), ref),
    close: () => transport.close(),
  };
}

async function isFolder(path: string): Promise<boolean> {
  const found = await stat(path).catch(() => undefined);
  return found?.isDirectory() === true;
}
