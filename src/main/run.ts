import { randomUUID } from 'node:crypto';
import type { Model } from '../agent/models/port.ts';
import { createGoogleCredentials } from '../agent/models/vertex/credentials.ts';
import { loadBuiltinPrompt } from '../agent/prompt-files.ts';
import type { Progress } from '../cli/progress.ts';
import type { RunParts } from '../cli/run.ts';
import type { RunWish } from '../cli/run-event.ts';
import { runNote } from '../cli/run-note.ts';
import { effectiveRun } from '../controllers/run/effective.ts';
import { pricesOf } from '../controllers/run/prices.ts';
import { isAutomatic } from '../controllers/run/rivals.ts';
import type { AgentRun } from '../crds/agent-run.ts';
import type { AgentWorkflow } from '../crds/agent-workflow.ts';
import { API_VERSION } from '../crds/meta.ts';
import { createHttpClient, type HttpClient, HttpError } from '../http/client.ts';
import type { Redactor } from '../http/redaction.ts';
import { systemClock } from '../kube/clock.ts';
import { createNotesFactory } from '../notes/gitlab-notes.ts';
import { type Environment, namesFile, readEnvSecrets } from '../settings/environment.ts';
import { type Config, loadConfig } from '../settings/file.ts';
import { FILE_NAMESPACE } from '../settings/file-workflow.ts';
import { readMarkerKeys, SettingsError } from '../settings/operator.ts';
import { createReferences, type References, type Resolved } from '../settings/references.ts';
import { backendOf, checkRunSettings, type RunSettings } from '../settings/run.ts';
import type { ToolToken } from '../settings/tokens.ts';
import { toolsOf } from '../sources/factory.ts';
import { headCommit } from '../sources/gitlab/head.ts';
import { proxiesOf } from './proxies.ts';
import { openModel } from './references.ts';
import { backendWanted, checkEnvironment, chooseWorkflow } from './run-choice.ts';
import { openEarlier, sessionsOf, wishOf } from './run-input.ts';
import { openSandboxes } from './run-sandbox.ts';
import { declaredSources } from './sources.ts';

export interface JoinedRun {
  readonly parts: RunParts;
  close(): Promise<void>;
}

/** What a run outside the operator is handed beside its settings. */
export interface RunSurroundings {
  readonly env: Environment;
  readonly redactor: Redactor;
  progress(maxIterations: number): Progress;
  readonly signal: AbortSignal;
}

/**
 * Joins the adapters for one run. Everything that people can mend is looked at before anything is started: throws
 * SettingsError for it.
 */
export async function joinRun(settings: RunSettings, around: RunSurroundings): Promise<JoinedRun> {
  const { env, redactor, signal } = around;
  checkRunSettings(settings);
  const earlier = await openEarlier(settings);
  const wish = await wishOf(settings, earlier?.session.envelope);
  const config = await loadConfig(settings.config, {
    env,
    ...modelOverride(settings.model ?? wish.spec.model?.name),
  });
  const configured = chooseWorkflow(config, wish, settings);
  const { workflow } = configured;
  const backend = backendOf(settings, backendWanted(wish) ?? configured.backend, env);
  const publish = settings.publish === 'note';
  checkEnvironment(configured, wish, { env, publish });

  const http = createHttpClient({ redactor, proxies: proxiesOf(env) });
  try {
    const references = createReferences({
      readSecret: readEnvSecrets(configured.needs, env),
      readConfigMapKey: async () => undefined,
      readBuiltinPrompt: (name) => loadBuiltinPrompt(name),
      onSecret: (value) => redactor.add(value),
    });
    for (const need of config.needs) if (!namesFile(need)) redactor.add(env[need.name] ?? '');
    const { project } = wish.spec.mergeRequest;
    const onSecret = (value: string): void => redactor.add(value);
    const sources = granted(await declaredSources({ references, http, onSecret }, workflow, project));
    const sha =
      wish.spec.mergeRequest.sha ?? (await askHead(config, http, sources.gitlab?.token, wish, signal));
    const run = runOf(wish, configured.name, sha, settings.message);
    const effective = effectiveRun(run, workflow);
    const model = granted(
      await openModel(
        { references, http, google: createGoogleCredentials({ http, secrets: redactor }) },
        workflow,
        undefined,
      ),
    );
    const sessionId = earlier?.session.envelope?.session_id ?? run.metadata.uid ?? '';
    const progress = around.progress(effective.maxIterations);
    const sandboxes = await openSandboxes({
      settings,
      config,
      backend,
      run,
      sessionId,
      env,
      redactor,
      progress,
      effective,
    });
    const parts: RunParts = {
      ...{ run, effective, model, sessionId, progress },
      prices: pricesOf(workflow.spec.model, systemClock.now().getTime()),
      prompt: granted(await references.prompt(workflow)),
      tools: toolsOf(
        sources,
        {
          ...{ http, gitlabUrl: config.settings.gitlab_url },
          markerPrefix: config.settings.session_marker_prefix,
        },
        { ...run.spec.mergeRequest, sha },
      ),
      openSandbox: sandboxes.open,
      note: publish
        ? await noteOf({
            config,
            http,
            references,
            workflow,
            run,
            model,
            sessionId,
            redactor,
            env,
            effective,
          })
        : undefined,
      sessions: sessionsOf(settings, earlier?.store),
      earlier,
      redact: (text) => redactor.redact(text),
      clock: systemClock,
    };
    return {
      parts,
      async close() {
        await sandboxes.close();
        await http.close();
      },
    };
  } catch (error) {
    await http.close();
    throw error;
  }
}

const modelOverride = (model: string | undefined) => (model === undefined ? {} : { model });

async function askHead(
  config: Config,
  http: HttpClient,
  token: ToolToken | undefined,
  { spec }: RunWish,
  signal: AbortSignal,
): Promise<string> {
  if (token === undefined)
    throw new SettingsError(
      'the event names no commit and the workflow has no GitLab source to ask: add "sha" to the event',
    );
  const { project, iid } = spec.mergeRequest;
  try {
    return await headCommit({ http, baseUrl: config.settings.gitlab_url, token }, { project, iid }, signal);
  } catch (error) {
    signal.throwIfAborted();
    const status = refusalOf(error);
    if (status === undefined) throw error;
    throw new SettingsError(
      `${project}!${iid}: GitLab answers ${status}; check the event and the workflow's read token`,
    );
  }
}

/** Status of an answer that waiting does not change. */
function refusalOf(error: unknown): number | undefined {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    const status = cause instanceof HttpError ? cause.status : undefined;
    if (status !== undefined && [401, 403, 404].includes(status)) return status;
  }
  return undefined;
}

function runOf(wish: RunWish, workflow: string, sha: string, message: string | undefined): AgentRun {
  const uid = randomUUID();
  return {
    apiVersion: API_VERSION,
    kind: 'AgentRun',
    metadata: { name: `run-${uid.slice(0, 8)}`, namespace: FILE_NAMESPACE, uid },
    spec: {
      ...wish.spec,
      workflowRef: { name: workflow },
      mergeRequest: { ...wish.spec.mergeRequest, sha },
      ...(message === undefined ? {} : { message }),
    },
  };
}

async function noteOf(parts: {
  readonly config: Config;
  readonly http: HttpClient;
  readonly references: References;
  readonly workflow: AgentWorkflow;
  readonly run: AgentRun;
  readonly model: Model;
  readonly sessionId: string;
  readonly redactor: Redactor;
  readonly env: Environment;
  readonly effective: RunParts['effective'];
}): Promise<RunParts['note']> {
  const { config, http, references, workflow, run, sessionId, redactor } = parts;
  const { mergeRequest, workflowRef } = run.spec;
  const [first, ...rest] = readMarkerKeys(parts.env).map(({ id, key }) => ({ id, secret: key }));
  if (first === undefined) throw new SettingsError('HUMMINGBIRD_MARKER_KEYS holds no key');
  for (const { secret } of [first, ...rest]) redactor.add(secret);
  const token = granted(await references.actionToken(workflow, mergeRequest.project));
  const notes = createNotesFactory({
    http,
    baseUrl: config.settings.gitlab_url,
    marker: { keys: [first, ...rest], prefix: config.settings.session_marker_prefix },
  }).notesFor(mergeRequest.project, token);
  return runNote({
    notes,
    mergeRequest,
    marker: {
      ...{ id: sessionId, wf: workflowRef.name, run: run.metadata.uid ?? '' },
      // As the operator's runs: what people ask for counts for no limit.
      ...(isAutomatic(run) && mergeRequest.sha !== undefined ? { sha: mergeRequest.sha } : {}),
    },
    internal: parts.effective.internalNote,
    model: parts.model.name,
    redact: (text) => redactor.redact(text),
  });
}

function granted<T>(found: Resolved<T>): T {
  if (found.kind === 'Ok') return found.value;
  throw new SettingsError(found.message);
}
