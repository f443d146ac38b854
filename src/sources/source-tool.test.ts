import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { HttpError, type HttpErrorOptions } from '../http/errors.ts';
import { type Source, sourceTool } from './source-tool.ts';

const WITH_TOKEN: Source = {
  name: 'Builds',
  credential: 'build token',
  metadata: { ui: 'https://b.example' },
};
const OPEN: Source = { name: 'Builds' };

const toolOf = (source: Source, run: () => Promise<never>) =>
  sourceTool(source, {
    name: 'build_get',
    description: 'One build.',
    notes: 'Builds are numbered.',
    schema: z.object({ id: z.number().int().describe('Its number') }),
    run,
  });

const failing = (options: Partial<HttpErrorOptions>) => async (): Promise<never> => {
  throw new HttpError('GET https://b.example/1: went wrong', {
    method: 'GET',
    url: 'https://b.example/1',
    retryable: false,
    ...options,
  });
};

const context = () => ({ signal: AbortSignal.timeout(60_000) });

describe('a tool of a source', () => {
  const tool = toolOf(WITH_TOKEN, failing({ status: 404 }));

  test('is defined by its schema, with notes and metadata', () => {
    expect(tool.definition).toMatchObject({
      name: 'build_get',
      notes: 'Builds are numbered.',
      parameters: { type: 'object', required: ['id'], properties: { id: { description: 'Its number' } } },
    });
    expect(tool.definition.parameters).not.toHaveProperty('$schema');
    expect(tool.responseMetadata).toEqual({ ui: 'https://b.example' });
  });

  test('says which argument is wrong', () => {
    expect(tool.parse({ id: 7 })).toEqual({ ok: true, args: { id: 7 } });
    expect(tool.parse({ id: 'seven' })).toMatchObject({
      ok: false,
      message: expect.stringMatching(/^build_get: [\s\S]*id/),
    });
  });

  test('a source without metadata adds none', () => {
    expect(toolOf(OPEN, failing({}))).not.toHaveProperty('responseMetadata');
  });

  test.each<[string, Source, Partial<HttpErrorOptions>, RegExp]>([
    [
      '401 with a credential',
      WITH_TOKEN,
      { status: 401 },
      /The build token is not valid; no Builds tool will work/,
    ],
    ['401 without one', OPEN, { status: 401 }, /wants to know who asks/],
    ['403 with a credential', WITH_TOKEN, { status: 403 }, /The build token may not see this/],
    ['403 without one', OPEN, { status: 403 }, /This run may not see this/],
    ['404 with a credential', WITH_TOKEN, { status: 404 }, /or the build token may not see it/],
    ['404 without one', OPEN, { status: 404 }, /or this run may not see it/],
    ['429', OPEN, { status: 429, retryable: true }, /Builds limits the rate/],
    ['an answer that is too large', OPEN, { code: 'TooLarge' }, /too large/],
    [
      'a redirect that was refused',
      OPEN,
      { code: 'RefusedRedirect' },
      /leads out of where this run may read/,
    ],
    ['an address that was refused', OPEN, { code: 'RefusedAddress' }, /leads out of where this run may read/],
    ['what may pass', OPEN, { status: 503, retryable: true }, /This may pass/],
    ['what will not pass', OPEN, { status: 400 }, /Asking again will not help/],
  ])('tells the model what to do after %s', async (_what, source, options, advice) => {
    const output = await toolOf(source, failing(options)).run({ id: 1 }, context());
    expect(output).toEqual({ kind: 'Error', message: expect.stringMatching(advice) });
    expect(output).toMatchObject({
      message: expect.stringContaining('Builds: GET https://b.example/1: went wrong. '),
    });
  });

  test('tells the model of an answer in another form', async () => {
    const run = async (): Promise<never> => z.never().parse('surprise');
    expect(await toolOf(OPEN, run).run({ id: 1 }, context())).toEqual({
      kind: 'Error',
      message: expect.stringMatching(/^Builds answered in an unexpected form/),
    });
  });

  test('hands on what nobody expected', async () => {
    const broken = toolOf(OPEN, async () => {
      throw new TypeError('a bug');
    });
    await expect(broken.run({ id: 1 }, context())).rejects.toThrow('a bug');
  });
});
