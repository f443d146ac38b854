import { createHttpClient } from '../src/http/client.ts';
import { createNotesFactory } from '../src/notes/gitlab-notes.ts';
import { renderMarker } from '../src/notes/marker.ts';
import { actionToken } from '../src/settings/tokens.ts';
import { aScene } from '../test/fakes/gitlab/scene.ts';
import { median, type Rows, rounded } from './row.ts';

const DISCUSSIONS = 1_000;
/** Every so many of them is the bot's. */
const OWN_EVERY = 10;
const SCANS = 9;
/** What a call to GitLab takes; the stand-in alone would answer at once. */
const GITLAB_MS = 20;

/**
 * What a run reads at its admission: which threads its workflow has on the merge request, and which commits they look
 * at. On a merge request with a thousand discussions, with a client that has asked nothing yet.
 */
export async function threadsBench(): Promise<Rows> {
  const { gitlab, state, mergeRequest, bot, users } = await aScene();
  const http = createHttpClient({});
  const marker = { keys: [{ id: 'k1', secret: 'ab'.repeat(32) }] } as const;
  for (let count = 0; count < DISCUSSIONS; count += 1) {
    const own = count % OWN_EVERY === 0;
    const sha = count.toString(16).padStart(40, '0');
    const mark = renderMarker({ id: `s-${count}`, wf: 'analyze', sha, run: `r-${count}` }, marker);
    const said = `${'The job fails since the cache is not emptied. '.repeat(40)}\n\n${mark}`;
    state.note(mergeRequest, { author: own ? bot.user : users.ada, body: said });
  }
  gitlab.faults.add({ path: /./, times: Number.POSITIVE_INFINITY, delayMs: GITLAB_MS });
  const samples: number[] = [];
  let requests = 0;
  try {
    for (let scan = 0; scan < SCANS; scan += 1) {
      const notes = createNotesFactory({ http, baseUrl: gitlab.url, marker }).notesFor(
        'group/app',
        actionToken(bot.token),
      );
      const asked = gitlab.requests.length;
      const before = performance.now();
      const found = await notes.threadsOf({ project: 'group/app', iid: mergeRequest.iid }, 'analyze');
      samples.push(performance.now() - before);
      requests = gitlab.requests.length - asked;
      if (found.kind !== 'Ok' || found.value.count !== DISCUSSIONS / OWN_EVERY)
        throw new Error(`the scan found ${JSON.stringify(found)}`);
    }
  } finally {
    await http.close();
    await gitlab.stop();
  }
  const pages = DISCUSSIONS / 100;
  const row = { better: 'lower', runs: SCANS } as const;
  return {
    // Who the bot is, then each page once.
    'threads.requests': { ...row, value: requests, goal: pages + 1, unit: 'requests' },
    'threads.ms': {
      ...row,
      value: rounded(median(samples)),
      goal: 1_000,
      unit: 'ms',
      note: `${DISCUSSIONS} discussions, GitLab at ${GITLAB_MS} ms a call`,
    },
  };
}
