import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodeEnvelope, encodeEnvelope, MAX_DECODED_BYTES, openEnvelope } from './envelope.ts';

const payload = { object_kind: 'pipeline', text: 'é\u2028 🐦' };
const event = { source: 'gitlab', eventType: 'pipeline', payload };
const attributes = {
  source: { Type: 'String', Value: 'gitlab' },
  event_type: { Type: 'String', Value: 'pipeline' },
};
const gzipped = { ...attributes, content_encoding: { Type: 'String', Value: 'gzip+base64' } };

const sns = (Message: string, MessageAttributes: unknown = attributes) => ({
  body: JSON.stringify({
    Type: 'Notification',
    MessageId: '1',
    TopicArn: 'arn:x',
    Message,
    MessageAttributes,
  }),
  attributes: {},
});
const raw = (body: string, extra: Record<string, string> = {}) => ({
  body,
  attributes: { source: 'gitlab', event_type: 'pipeline', ...extra },
});
const pack = (text: string | Buffer) => gzipSync(text).toString('base64');

describe('an event in each of its shapes', () => {
  it.each([
    ['BR-14 (a): SNS envelope, gzip+base64', sns(pack(JSON.stringify(payload)), gzipped)],
    ['BR-14 (b): SNS envelope, plain JSON', sns(JSON.stringify(payload))],
    ['BR-14 (c): raw delivery with SQS attributes', raw(JSON.stringify(payload))],
    ['raw delivery, gzip+base64', raw(pack(JSON.stringify(payload)), { content_encoding: 'gzip+base64' })],
    [
      'an envelope whose attributes have SQS names',
      sns(JSON.stringify(payload), {
        source: { DataType: 'String', StringValue: 'gitlab' },
        event_type: { DataType: 'String', StringValue: 'pipeline' },
      }),
    ],
    ['base64 broken into lines', sns(pack(JSON.stringify(payload)).replace(/(.{20})/g, '$1\n'), gzipped)],
  ])('reads %s', async (_name, message) => {
    expect(await decodeEnvelope(message)).toEqual({ ok: true, event });
  });

  it('BR-18 (a): reads a message of 700 KB', async () => {
    const large = { object_kind: 'pipeline', text: 'x'.repeat(700_000) };
    expect(await decodeEnvelope(sns(JSON.stringify(large)))).toEqual({
      ok: true,
      event: { ...event, payload: large },
    });
  });
});

describe('what cannot be read', () => {
  it.each([
    ['a body that is not JSON', raw('hello'), /^body: not JSON/],
    [
      'a body that is not JSON and has no attributes',
      { body: 'hello', attributes: {} },
      /source and event_type missing/,
    ],
    ['an envelope without attributes', sns('{}', null), /^MessageAttributes: source and event_type missing/],
    ['an envelope without event_type', sns('{}', { source: attributes.source }), /: event_type missing/],
    ['an envelope without source', sns('{}', { event_type: attributes.event_type }), /: source missing/],
    [
      'an envelope whose Message is an object',
      { body: '{"TopicArn":"a","Message":{}}', attributes: {} },
      /not a whole SNS envelope/,
    ],
    [
      'an unknown encoding',
      sns('x', { ...attributes, content_encoding: { Type: 'String', Value: 'br' } }),
      /content_encoding: "br"/,
    ],
    ['what is not base64', sns('%%%', gzipped), /^Message: not base64/],
    [
      'base64 of what is not gzip',
      sns(Buffer.from('hello').toString('base64'), gzipped),
      /^Message: cannot be unpacked/,
    ],
    [
      'a gzip stream cut short',
      sns(gzipSync('x'.repeat(999)).subarray(0, 20).toString('base64'), gzipped),
      /cannot be unpacked/,
    ],
    ['bytes that are not UTF-8', sns(pack(Buffer.from([0x22, 0xff, 0x22])), gzipped), /not UTF-8/],
    ['a Message that is not JSON', sns('hello'), /^Message: not JSON/],
  ])('%s is a value that says what and where', async (_name, message, expected) => {
    const decoded = await decodeEnvelope(message);
    expect(decoded).toMatchObject({ ok: false, message: expect.stringMatching(expected) });
  });

  it('a zip bomb stops at the limit', async () => {
    const bomb = sns(pack(Buffer.alloc(MAX_DECODED_BYTES + 1, 0x20)), gzipped);
    expect(await decodeEnvelope(bomb)).toMatchObject({
      ok: false,
      message: expect.stringContaining('more than'),
    });
  });

  it('a megabyte of blanks before what is not base64 takes no time', async () => {
    const message = sns(`${' '.repeat(1024 * 1024)}%`, gzipped);
    const before = performance.now();
    expect(await decodeEnvelope(message)).toMatchObject({
      ok: false,
      message: expect.stringMatching(/not base64/),
    });
    // Quadratic matching would take half an hour.
    expect(performance.now() - before).toBeLessThan(30_000);
  });

  it('an oversized body is not even parsed', async () => {
    const message = raw(`"${'x'.repeat(MAX_DECODED_BYTES)}"`);
    expect(await decodeEnvelope(message)).toMatchObject({
      ok: false,
      message: expect.stringMatching(/^body: \d+ bytes/),
    });
  });

  it('any text at all settles without throwing', async () => {
    await fc.assert(
      fc.asyncProperty(fc.string(), fc.option(fc.json()), async (text, json) => {
        await decodeEnvelope(raw(json ?? text));
        await decodeEnvelope(sns(json ?? text, gzipped));
      }),
    );
  });
});

describe('encodeEnvelope', () => {
  it.each([true, false])('is the inverse of decoding (compress: %s)', async (compress) => {
    await fc.assert(
      fc.asyncProperty(fc.json(), fc.string({ minLength: 1 }), async (json, source) => {
        const sent = { source, eventType: 'pipeline', payload: JSON.parse(json) };
        const body = await encodeEnvelope(sent, { compress });
        expect(await decodeEnvelope({ body, attributes: {} })).toEqual({ ok: true, event: sent });
      }),
    );
  });
});

describe('openEnvelope', () => {
  it.each([
    ['an SNS envelope', sns('not even base64', gzipped)],
    ['raw delivery', raw('not even base64', { content_encoding: 'gzip+base64' })],
  ])('says what %s holds without unpacking it', (_name, message) => {
    expect(openEnvelope(message)).toMatchObject({ ok: true, source: 'gitlab', eventType: 'pipeline' });
  });

  it('BR-15: a raw body that is neither packed nor JSON cannot be opened', () => {
    expect(openEnvelope(raw('hello'))).toMatchObject({
      ok: false,
      message: expect.stringMatching(/^body: not JSON/),
    });
  });
});
