import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { failureText, placeholderText, resultText } from '../../src/controllers/run/texts.ts';
import { createHttpClient, type HttpClient } from '../../src/http/client.ts';
import { createNotesFactory } from '../../src/notes/gitlab-notes.ts';
import { renderNote } from '../../src/notes/render.ts';
import { sanitise } from '../../src/notes/sanitise.ts';
import { createThreads } from '../../src/notes/threads.ts';
import { actionToken, orchestratorToken } from '../../src/settings/tokens.ts';
import { withoutAgentParts } from '../../src/sources/gitlab/agent-note.ts';
import { gitlabToolsOn, readStream } from '../builders/gitlab-tools.ts';
import { ORDINARY } from '../notes/ordinary.ts';

// The rooms of notes and of sources do not know each other; here they meet, so that they go on meaning the same.
const keys = [{ id: 'k', secret: 'secret' }] as const;
const marker = { id: 's', wf: 'review', sha: 'a'.repeat(40), run: 'uid' };
const TRANSCRIPT =
  'TRANSCRIPT: called sandbox_exec\n\n<details>\n<summary>result</summary>\n\n```\n1\n```\n\n</details>';
const result = { reason: 'Succeeded', message: '', model: 'gemini_3.1-pro' } as const;

describe('what a note was rendered from is what is left of it', () => {
  test.each(Object.entries(ORDINARY))('%s', (_name, answer) => {
    for (const transcript of ['', TRANSCRIPT]) {
      for (const invitesReply of [true, false]) {
        const text = resultText({ ...result, answer, transcript, invitesReply });
        const body = renderNote({ text, marker }, { keys });
        expect(withoutAgentParts(body)).toBe(sanitise(answer).trimEnd());
      }
    }
  });

  test('a failure with a transcript', () => {
    const body = renderNote({ text: failureText('Timeout', 'Too slow.', TRANSCRIPT), marker }, { keys });
    expect(withoutAgentParts(body)).toBe('Hummingbird analysis failed.\n\nReason: Timeout. Too slow.');
  });

  test('a text that was too long for a note', () => {
    const text = resultText({
      ...result,
      answer: 'Found.',
      transcript: TRANSCRIPT.repeat(50),
      invitesReply: true,
    });
    expect(withoutAgentParts(renderNote({ text, marker }, { keys, maxLength: 2000 }))).toBe('Found.');
  });

  test('a placeholder, under another word', () => {
    const body = renderNote({ text: placeholderText('review'), marker }, { keys, prefix: 'other' });
    expect(withoutAgentParts(body, 'other')).toBe(placeholderText('review'));
  });
});

describe('on GitLab', () => {
  let on: Awaited<ReturnType<typeof gitlabToolsOn>>;
  let http: HttpClient;
  beforeEach(async () => {
    on = await gitlabToolsOn();
    http = createHttpClient();
  });
  afterEach(async () => {
    expect(on.gitlab.violations).toEqual([]);
    await http.close();
    await on.stop();
  });

  test('an agent reads the findings of the one before, and what the operator answered', async () => {
    const at = { project: 'group/app', iid: 1 };
    const options = { http, baseUrl: on.gitlab.url, marker: { keys } };
    const notes = createNotesFactory(options).notesFor('group/app', actionToken(on.bot.token));
    const text = resultText({
      ...result,
      answer: 'One finding.',
      transcript: TRANSCRIPT,
      invitesReply: true,
    });
    const posted = await notes.create(at, { text, marker, internal: false });
    if (posted.kind !== 'Ok') throw new Error(posted.message);
    const orchestrator = on.state.projectBot(on.project, { level: 30 });
    const threads = createThreads(options, orchestratorToken(orchestrator.token));
    await threads.answer(at, posted.value, 'There is nothing to cancel.');

    const output = await on.call('gitlab_get_mr_discussions', at);
    const discussion = JSON.parse((await readStream(output)).text);
    expect(discussion.notes.map(({ body }: { body: string }) => body)).toEqual([
      'One finding.',
      'There is nothing to cancel.',
    ]);
  });
});
