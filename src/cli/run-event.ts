import { z } from 'zod';
import { parseEvent } from '../bridge/events/parse.ts';
import { decodeEnvelope } from '../bridge/queue/envelope.ts';
import { AgentRunSpec, RUN_MESSAGE_MAX } from '../crds/agent-run.ts';
import { iid, projectPath, sha } from '../crds/shapes.ts';
import { SettingsError } from '../settings/operator.ts';

/** What to run, however it was said. */
export interface RunWish {
  /** Undefined: the one workflow that serves the project. */
  readonly workflow: string | undefined;
  readonly spec: Omit<AgentRunSpec, 'workflowRef'>;
}

const own = z.strictObject({
  project: projectPath,
  iid,
  sha: sha.optional(),
  message: z.string().max(RUN_MESSAGE_MAX).optional(),
  workflow: z.string().min(1).optional(),
});

const mergeRequestHook = z.object({
  object_kind: z.literal('merge_request'),
  project: z.object({ path_with_namespace: projectPath }),
  user: z.object({ username: z.string() }).nullish(),
  object_attributes: z.object({ iid, last_commit: z.object({ id: sha }).nullish() }),
});

const agentRun = z.object({
  apiVersion: z.literal('hummingbird.dev/v1alpha1'),
  kind: z.literal('AgentRun'),
  spec: AgentRunSpec,
});

/**
 * An event as JSON: `{"project", "iid", "sha"?, "message"?}`, the body of a GitLab webhook (pipeline or merge
 * request), or such a webhook in its SNS envelope. Throws SettingsError that says what is missing; `source` is
 * how people named it (`--event`, a file).
 */
export async function readEvent(text: string, source: string): Promise<RunWish> {
  const json = parseJson(text, source);
  if (hasKey(json, 'Message')) {
    const decoded = await decodeEnvelope({ body: text, attributes: {} });
    if (!decoded.ok) throw wrong(source, decoded.message);
    return fromWebhook(decoded.event.payload, source);
  }
  if (hasKey(json, 'object_kind')) return fromWebhook(json, source);
  const parsed = own.safeParse(json);
  if (!parsed.success)
    throw wrong(source, `${faults(parsed.error)}; the least is {"project": "group/app", "iid": 42}`);
  const { workflow, message, ...mergeRequest } = parsed.data;
  return wishOf({ mergeRequest, message, trigger: { kind: 'Manual' } }, workflow);
}

/** An AgentRun manifest, parsed from YAML. */
export function readManifest(value: unknown, source: string): RunWish {
  const parsed = agentRun.safeParse(value);
  if (!parsed.success) throw wrong(source, `not an AgentRun: ${faults(parsed.error)}`);
  const { workflowRef, ...spec } = parsed.data.spec;
  return wishOf(spec, workflowRef.name);
}

function fromWebhook(payload: unknown, source: string): RunWish {
  if (kindOf(payload) === 'merge_request') {
    const parsed = mergeRequestHook.safeParse(payload);
    if (!parsed.success) throw wrong(source, faults(parsed.error));
    const { project, user, object_attributes: attributes } = parsed.data;
    return wishOf({
      mergeRequest: {
        project: project.path_with_namespace,
        iid: attributes.iid,
        sha: attributes.last_commit?.id,
      },
      trigger: { kind: 'MergeRequest', user: user?.username },
    });
  }
  if (kindOf(payload) !== 'pipeline')
    throw wrong(
      source,
      `a ${String(kindOf(payload))} webhook starts no run; give one of a pipeline or merge request`,
    );
  const read = parseEvent({ source: 'gitlab', eventType: 'pipeline', payload });
  if (!read.ok) throw wrong(source, read.message);
  const { event } = read;
  if (event.kind !== 'Pipeline' || event.mergeRequest === undefined)
    throw wrong(source, 'the pipeline belongs to no merge request');
  if (event.mergeRequest.targetProjectId !== event.project.id)
    throw wrong(source, 'the pipeline ran in a fork: give {"project": …, "iid": …} of the target project');
  return wishOf({
    mergeRequest: { project: event.project.path, iid: event.mergeRequest.iid, sha: event.sha },
    trigger: { kind: 'Pipeline', eventId: String(event.pipelineId), user: event.user?.name },
  });
}

function wishOf(spec: object, workflow?: string): RunWish {
  // Through JSON, so that what is undefined is absent; the name is a placeholder that is taken out again.
  const whole = JSON.parse(JSON.stringify({ ...spec, workflowRef: { name: 'unknown' } }));
  const { workflowRef: _, ...rest } = AgentRunSpec.parse(whole);
  // The same proof as for the API server's JSON: no field is undefined.
  return { workflow, spec: rest as RunWish['spec'] };
}

function parseJson(text: string, source: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw wrong(source, `not JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
}

const hasKey = (value: unknown, key: string): boolean =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, key);

const kindOf = (payload: unknown): unknown =>
  z.object({ object_kind: z.string() }).safeParse(payload).data?.object_kind;

const faults = (error: z.ZodError): string =>
  error.issues
    .slice(0, 5)
    .map(({ path, message }) => `${path.map(String).join('.') || 'it'}: ${message}`)
    .join('; ');

const wrong = (source: string, what: string): SettingsError =>
  new SettingsError(`the event of ${source} cannot be used: ${what}`);
