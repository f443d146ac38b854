import { describe, expect, it } from 'vitest';
import { aPipelineEvent } from '../../test/builders/pipeline-event.ts';
import { encodeEnvelope } from '../bridge/queue/envelope.ts';
import { SettingsError } from '../settings/operator.ts';
import { readEvent, readManifest } from './run-event.ts';

const SHA = 'a'.repeat(40);
const mergeRequestHook = {
  object_kind: 'merge_request',
  user: { id: 3, username: 'ada' },
  project: { id: 1, path_with_namespace: 'group/app' },
  object_attributes: { iid: 7, action: 'update', last_commit: { id: SHA } },
};

describe('an event', () => {
  it('is what the run is about, in its shortest form', async () => {
    expect(await readEvent('{"project":"group/app","iid":7}', '--event')).toEqual({
      workflow: undefined,
      spec: {
        mergeRequest: { project: 'group/app', iid: 7 },
        trigger: { kind: 'Manual' },
        publish: { kind: 'Note' },
        cancel: false,
      },
    });
  });

  it('may name the commit, the workflow and a wish', async () => {
    const text = JSON.stringify({
      project: 'group/app',
      iid: 7,
      sha: SHA,
      workflow: 'review',
      message: 'look',
    });
    expect(await readEvent(text, '--event')).toMatchObject({
      workflow: 'review',
      spec: { mergeRequest: { sha: SHA }, message: 'look' },
    });
  });

  it('may be a pipeline webhook', async () => {
    const { spec } = await readEvent(JSON.stringify(aPipelineEvent({ iid: 7, pipelineId: 31 })), 'file');
    expect(spec.mergeRequest).toEqual({ project: 'group/app', iid: 7, sha: SHA });
    expect(spec.trigger).toMatchObject({ kind: 'Pipeline', eventId: '31' });
  });

  it('may be a merge request webhook', async () => {
    const { spec } = await readEvent(JSON.stringify(mergeRequestHook), 'file');
    expect(spec).toMatchObject({
      mergeRequest: { project: 'group/app', iid: 7, sha: SHA },
      trigger: { kind: 'MergeRequest', user: 'ada' },
    });
  });

  it('may come in the envelope of its queue', async () => {
    const payload = aPipelineEvent({ iid: 9 });
    const text = await encodeEnvelope({ source: 'gitlab', eventType: 'pipeline', payload });
    expect((await readEvent(text, 'file')).spec.mergeRequest.iid).toBe(9);
  });

  it.each([
    ['{', /not JSON/],
    ['[]', /the least is/],
    ['{"project":"app","iid":7}', /project: must be the full path/],
    ['{"project":"group/app","iid":0}', /iid: /],
    ['{"project":"group/app","iid":7,"shaa":"x"}', /"shaa"/],
    [JSON.stringify({ object_kind: 'note' }), /a note webhook starts no run/],
    [JSON.stringify({ object_kind: 'pipeline' }), /object_attributes/],
    [JSON.stringify(aPipelineEvent({ mergeRequest: false })), /belongs to no merge request/],
    [JSON.stringify({ ...mergeRequestHook, project: {} }), /project\.path_with_namespace/],
    ['{"Message":"x","MessageAttributes":{}}', /--event cannot be used/],
  ])('is refused with what is wrong with it: %s', async (text, message) => {
    const reading = readEvent(text, '--event');
    await expect(reading).rejects.toThrow(SettingsError);
    await expect(reading).rejects.toThrow(message);
  });

  it('BR-18 (b): with a message of 1.2 MB is refused in a few words, none of the message among them', async () => {
    const message = 'x'.repeat(1_200_000);
    const reading = readEvent(JSON.stringify({ project: 'group/app', iid: 7, message }), '--event');
    const said = await reading.then(String, (error: Error) => error.message);
    expect(said).toMatch(/message: Too big: expected string to have <=16384 characters/);
    expect(said.length).toBeLessThan(300);
  });
});

describe('a manifest', () => {
  const manifest = {
    apiVersion: 'hummingbird.dev/v1alpha1',
    kind: 'AgentRun',
    metadata: { generateName: 'try-' },
    spec: {
      workflowRef: { name: 'review' },
      mergeRequest: { project: 'group/app', iid: 7 },
      limits: { maxIterations: 3 },
    },
  };

  it('is read as the API server would', () => {
    expect(readManifest(manifest, 'run.yaml')).toMatchObject({
      workflow: 'review',
      spec: { mergeRequest: { iid: 7 }, limits: { maxIterations: 3 }, trigger: { kind: 'Manual' } },
    });
  });

  it.each([
    [undefined, /not an AgentRun/],
    [{ ...manifest, kind: 'Pod' }, /kind/],
    [{ ...manifest, spec: { workflowRef: { name: 'review' } } }, /spec\.mergeRequest/],
  ])('of something else is refused', (value, message) => {
    expect(() => readManifest(value, 'run.yaml')).toThrow(message);
  });
});
