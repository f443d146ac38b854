import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { parse } from 'yaml';
import type { RunParts } from '../cli/run.ts';
import { type RunWish, readEvent, readManifest } from '../cli/run-event.ts';
import { readEarlierSession } from '../cli/run-session.ts';
import { SettingsError } from '../settings/operator.ts';
import type { RunSettings } from '../settings/run.ts';
import { flatStore } from '../store/flat.ts';
import { createFolderStore } from '../store/folder.ts';

/** The session that `--resume` names; undefined without it. Throws SettingsError when there is none. */
export async function openEarlier({ resume }: RunSettings): Promise<RunParts['earlier']> {
  if (resume === undefined) return undefined;
  const store = flatStore(createFolderStore(resume));
  return { session: await readEarlierSession(store, resume), store };
}

/** Where the session is saved: the same store when it is the same folder, so that the save replaces what was read. */
export function sessionsOf(
  { saveSession, resume }: RunSettings,
  earlier: RunParts['sessions'],
): RunParts['sessions'] {
  if (saveSession === undefined || (resume !== undefined && resolve(saveSession) === resolve(resume)))
    return earlier;
  return flatStore(createFolderStore(saveSession));
}

type Envelope = NonNullable<RunParts['earlier']>['session']['envelope'];

/** What to run on, from whichever flag says it. Throws SettingsError. */
export async function wishOf(settings: RunSettings, envelope: Envelope): Promise<RunWish> {
  const { event, eventFile, manifest } = settings;
  if (event !== undefined) return readEvent(event, '--event');
  if (eventFile !== undefined) return readEvent(await readInput(eventFile), eventFile);
  if (manifest !== undefined) {
    const text = await readInput(manifest);
    return readManifest(parseYaml(text, manifest), manifest);
  }
  if (envelope === undefined)
    throw new SettingsError(
      'the session was saved without its merge request: give --event or --event-file and --workflow too',
    );
  const { project, iid, sha, workflow } = envelope;
  return readEvent(JSON.stringify({ project, iid, sha, workflow }), 'the saved session');
}

async function readInput(file: string): Promise<string> {
  try {
    return await readFile(file === '-' ? '/dev/stdin' : file, 'utf8');
  } catch (error) {
    const why = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    throw new SettingsError(`${file} cannot be read (${why})`);
  }
}

function parseYaml(text: string, file: string): unknown {
  try {
    return parse(text);
  } catch (error) {
    const [line] = (error instanceof Error ? error.message : String(error)).split('\n');
    throw new SettingsError(`${file} is not one YAML document: ${line}`);
  }
}
