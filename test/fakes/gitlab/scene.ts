import { ACCESS, type FakeGitLab, startGitLab } from './index.ts';

/** A private project with a merge request by Ada, its bot, and one user per access level. */
export async function aScene(options: { now?: () => number } = {}) {
  const gitlab = await startGitLab(options);
  const { state } = gitlab;
  const project = state.project({ path: 'group/app' });
  const [ada, guest, reporter, maintainer, stranger] = [
    'ada',
    'guest',
    'reporter',
    'maintainer',
    'stranger',
  ].map((username) => state.user({ username }));
  if (!ada || !guest || !reporter || !maintainer || !stranger) throw new Error('five users were made');
  state.member(project, ada, ACCESS.developer);
  state.member(project, guest, ACCESS.guest);
  state.member(project, reporter, ACCESS.reporter);
  state.member(project, maintainer, ACCESS.maintainer);
  const mergeRequest = state.mergeRequest(project, {
    author: ada,
    title: 'Add a cache',
    labels: ['backend'],
  });
  const bot = state.projectBot(project);
  return { gitlab, state, project, mergeRequest, bot, users: { ada, guest, reporter, maintainer, stranger } };
}

/** One request, its status and its parsed answer. */
export async function call(
  gitlab: FakeGitLab,
  token: string | undefined,
  method: string,
  path: string,
  body?: unknown,
) {
  const response = await fetch(`${gitlab.url}/api/v4/${path}`, {
    method,
    headers: {
      ...(token === undefined ? {} : { 'private-token': token }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  const json = response.headers.get('content-type')?.startsWith('application/json')
    ? JSON.parse(text)
    : undefined;
  return { status: response.status, headers: response.headers, text, json };
}
