import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { QueueMessage } from '../port.ts';
import { decodeEnvelope, encodeEnvelope } from './envelope.ts';
import { firstOfEachGroup, packed, routeOf } from './route.ts';

const DISCUSSION = '6a9c1750b37d513a43987b574953fceb50b03ce7';
const note = (discussion_id: unknown = DISCUSSION) => ({
  object_kind: 'note',
  object_attributes: { discussion_id },
});

const message = (body: string, attributes: Record<string, string> = {}): QueueMessage => {
  const native = Object.fromEntries(
    Object.entries(attributes).map(([name, value]) => [name, { type: 'String', value }]),
  );
  return { id: 'm-1', receipt: 'r', body, receiveCount: 1, attributes, native };
};
const sns = async (eventType: string, payload: unknown, compress = true) =>
  message(await encodeEnvelope({ source: 'gitlab', eventType, payload }, { compress }));
const raw = (eventType: string, payload: unknown) =>
  message(JSON.stringify(payload), { source: 'gitlab', event_type: eventType });

const groupIn = async (queued: QueueMessage) => {
  const route = await routeOf(queued);
  return route.kind === 'Forward' ? [route.what, route.outgoing.groupId] : [route.what, route.message];
};

describe('the group of a message', () => {
  it.each([
    ['BR-14 (a): SNS envelope, gzip+base64', () => sns('note', note())],
    ['BR-14 (b): SNS envelope, plain JSON', () => sns('note', note(), false)],
    ['BR-14 (c): raw delivery with SQS attributes', async () => raw('note', note())],
  ])('is the discussion of a note: %s', async (_name, queued) => {
    expect(await groupIn(await queued())).toEqual(['note', DISCUSSION]);
  });

  it.each([
    ['a pipeline', () => sns('pipeline', { object_attributes: { discussion_id: DISCUSSION } }), 'pipeline'],
    ['a merge request', () => sns('merge_request', {}), 'merge_request'],
    ['a kind that nothing handles', () => sns('wiki_page', {}), 'other'],
    ['what is called as metrics call what cannot be read', () => sns('unknown', {}), 'other'],
    ['a note without a discussion', () => sns('note', note(null)), 'note'],
    ['a note whose discussion is a number', () => sns('note', note(7)), 'note'],
    ['a note without anything', () => sns('note', 'text'), 'note'],
  ])('is its own id: %s', async (_name, queued, what) => {
    expect(await groupIn(await queued())).toEqual([what, 'm-1']);
  });

  it('is something that SQS takes, and the same for the same discussion, whatever GitLab calls it', async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ minLength: 1, maxLength: 400, unit: 'binary' }), async (discussion) => {
        const [, group = ''] = await groupIn(await sns('note', note(discussion)));
        expect(group).toMatch(/^[!-~]{1,128}$/);
        expect(await groupIn(raw('note', note(discussion)))).toEqual(['note', group]);
      }),
    );
  });
});

describe('what is sent on', () => {
  it('is the body and the attributes as they came, once per message of the standard queue', async () => {
    const binary = { type: 'Binary.sum', value: new Uint8Array([1, 2]) };
    const queued = { ...raw('pipeline', { a: 1 }), native: { ...raw('pipeline', {}).native, binary } };
    expect(await routeOf(queued)).toEqual({
      kind: 'Forward',
      what: 'pipeline',
      outgoing: { body: queued.body, native: queued.native, groupId: 'm-1', deduplicationId: 'm-1' },
    });
  });

  it('is not unpacked when it is no note: a broken payload is told by whoever reads it', async () => {
    const queued = message(
      JSON.stringify({
        Message: 'not packed at all',
        MessageAttributes: {
          source: { Type: 'String', Value: 'gitlab' },
          event_type: { Type: 'String', Value: 'pipeline' },
          content_encoding: { Type: 'String', Value: 'gzip+base64' },
        },
      }),
    );
    expect(await groupIn(queued)).toEqual(['pipeline', 'm-1']);
  });
});

describe('BR-15: what cannot be passed on', () => {
  it.each([
    ['text', message('hello'), 'unknown', /source and event_type missing/],
    [
      'text with attributes',
      message('hello', { source: 'gitlab', event_type: 'pipeline' }),
      'unknown',
      /^body: not JSON/,
    ],
    [
      'a note that is not packed as it says',
      message('%', { source: 'gitlab', event_type: 'note', content_encoding: 'gzip+base64' }),
      'note',
      /^body: not base64/,
    ],
    [
      'a note that is a bomb',
      message(gzipSync(Buffer.alloc(9 * 1024 * 1024, 0x20)).toString('base64'), {
        source: 'gitlab',
        event_type: 'note',
        content_encoding: 'gzip+base64',
      }),
      'note',
      /unpacks to more than/,
    ],
  ])('%s is a value that says why', async (_name, queued, what, problem) => {
    expect(await routeOf(queued)).toMatchObject({
      kind: 'Unroutable',
      what,
      message: expect.stringMatching(problem),
    });
  });
});

describe('packed', () => {
  const outgoing = { body: 'before', groupId: 'g', deduplicationId: 'd', native: {} };

  it('says the same in fewer bytes', async () => {
    const payload = { text: 'x'.repeat(100_000) };
    const smaller = await packed(raw('note', payload), outgoing);
    expect(smaller).toMatchObject({ groupId: 'g', deduplicationId: 'd' });
    expect(smaller?.body.length).toBeLessThan(2_000);
    expect(await decodeEnvelope({ body: smaller?.body ?? '', attributes: {} })).toEqual({
      ok: true,
      event: { source: 'gitlab', eventType: 'note', payload },
    });
  });

  it('is nothing when that is not smaller, or cannot be read', async () => {
    expect(await packed(await sns('note', { text: 'x'.repeat(100_000) }), outgoing)).toBeUndefined();
    expect(await packed(message('hello'), outgoing)).toBeUndefined();
  });
});

it('the first of each group stand in one round, in their order', () => {
  const waiting = ['a1', 'b1', 'a2', 'c1', 'b2'].map((body) => ({
    outgoing: { body, groupId: body[0] ?? '' },
  }));
  expect(firstOfEachGroup(waiting).map(({ outgoing }) => outgoing.body)).toEqual(['a1', 'b1', 'c1']);
});
