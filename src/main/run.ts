import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { parse } from 'yaml';
import type { Model } from '../agent/models/port.ts';
import { createGoogleCredentials } from '../agent/models/vertex/credentials.ts';
import { loadBuiltinPrompt } from '../agent/prompt-files.ts';
import type { Progress } from '../cli/progress.ts';
import type { RunParts } from '../cli/run.ts';
import { type RunWish, readEvent, readManifest } from '../cli/run-event.ts';
import { runNote } from '../cli/run-note.ts';
import { readEarlierSession } from '../cli/run-session.ts';
import { effectiveRun } from '../controllers/run/effective.ts';
import { pricesOf } from '../controllers/run/prices.ts';
import type { AgentRun } from '../crds/agent-run.ts';
import type { AgentWorkflow } from '../crds/agent-workflow.ts';
import { API_VERSION } from '../crds/meta.ts';
import { createHttpClient, type HttpClient } from '../http/client.ts';
import type { Redactor } from '../http/redaction.ts';
import { systemClock } from '../kube/clock.ts';
import { createNotesFactory } from '../notes/gitlab-notes.ts';
import { type Environment, readEnvSecrets, validateEnv } from '../settings/environment.ts';
import { type Config, loadConfig, workflowsOf } from '../settings/file.ts';
import type { SandboxBackend } from '../settings/file-schema.ts';
import { type ConfiguredWorkflow, FILE_NAMESPACE } from '../settings/file-workflow.ts';
import { readMarkerKeys, SettingsError } from '../settings/operator.ts';
import { createReferences, type References, type Resolved } from '../settings/references.ts';
import { backendOf, checkRunSettings, type RunSettings } from '../settings/run.ts';
import type { ToolToken } from '../settings/tokens.ts';
import { createSourceFactory } from '../sources/factory.ts';
import { headCommit } from '../sources/gitlab/head.ts';
import { flatStore } from '../store/flat.ts';
import { createFolderStore } from '../store/folder.ts';
import { readToken } from './gitlab.ts';
import { openModel } from './references.ts';
import { openSandboxes } from './run-sandbox.ts';

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
  const backend = backendOf(settings, backendWanted(wish) ?? configured.backend);
  const publish = settings.publish === 'note';
  checkEnvironment(configured, wish, { env, publish });

  const http = createHttpClient({ redactor });
  try {
    const references = createReferences({
      readSecret: readEnvSecrets(config.needs, env),
      readConfigMapKey: async () => undefined,
      readBuiltinPrompt: (name) => loadBuiltinPrompt(name),
      onSecret: (value) => redactor.add(value),
    });
    for (const { name } of config.needs) redactor.add(env[name] ?? '');
    const { project } = wish.spec.mergeRequest;
    const token = await readTokenOf(references, workflow, project);
    const sha = wish.spec.mergeRequest.sha ?? (await askHead(config, http, token, wish, signal));
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
      tools: await createSourceFactory({
        http,
        gitlabUrl: config.settings.gitlab_url,
        gitlabToken: async () => token,
      }).toolsFor({
        workflow: { namespace: FILE_NAMESPACE, name: configured.name },
        scope: {
          ...run.spec.mergeRequest,
          sha,
          allowedProjects: workflow.spec.dataSources.gitlab?.allowedProjects ?? [],
        },
      }),
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

async function openEarlier({ resume }: RunSettings): Promise<RunParts['earlier']> {
  if (resume === undefined) return undefined;
  const store = flatStore(createFolderStore(resume));
  return { session: await readEarlierSession(store, resume), store };
}

function sessionsOf(
  { saveSession, resume }: RunSettings,
  earlier: RunParts['sessions'],
): RunParts['sessions'] {
  if (saveSession === undefined || saveSession === resume) return earlier;
  return flatStore(createFolderStore(saveSession));
}

function backendWanted({ spec }: RunWish): SandboxBackend | undefined {
  if (spec.sandbox?.none === true) return 'none';
  return spec.sandbox?.poolRef === undefined ? undefined : 'k8spool';
}

type Envelope = NonNullable<RunParts['earlier']>['session']['envelope'];

async function wishOf(settings: RunSettings, envelope: Envelope): Promise<RunWish> {
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

function chooseWorkflow(
  config: Config,
  { workflow, spec }: RunWish,
  settings: RunSettings,
): ConfiguredWorkflow {
  const { project } = spec.mergeRequest;
  const name = settings.workflow ?? workflow;
  const serving = workflowsOf(config, project);
  const names = (list: readonly ConfiguredWorkflow[]) => list.map((one) => one.name).join(', ');
  if (name === undefined) {
    const [only, ...others] = serving;
    if (only === undefined)
      throw new SettingsError(
        `no workflow of ${config.path} lists the project ${project}: add it under workflows.<name>.projects`,
      );
    if (others.length === 0) return only;
    throw new SettingsError(
      `${project} has several workflows (${names(serving)}): choose one with --workflow`,
    );
  }
  const named = config.workflows.find((one) => one.name === name);
  if (named === undefined)
    throw new SettingsError(`${config.path} has no workflow ${name}; there are: ${names(config.workflows)}`);
  if (serving.includes(named)) return named;
  throw new SettingsError(
    `workflow ${name} of ${config.path} does not list the project ${project}: add it under workflows.${name}.projects`,
  );
}

/** What this run uses of the environment: all that is missing, in one message. */
function checkEnvironment(
  { needs, name }: ConfiguredWorkflow,
  { spec }: RunWish,
  { env, publish }: { readonly env: Environment; readonly publish: boolean },
): void {
  const ofProject = `workflows.${name}.projects.`;
  const own = `${ofProject}${spec.mergeRequest.project}.`.toLowerCase();
  const used = needs.filter(({ where, tier }) => {
    if (tier === 'action' && !publish) return false;
    return !where.startsWith(ofProject) || where.toLowerCase().startsWith(own);
  });
  const markers = { name: 'HUMMINGBIRD_MARKER_KEYS', tier: 'orchestrator', where: '--publish note' } as const;
  validateEnv(publish ? [...used, markers] : used, env);
}

async function readTokenOf(
  references: References,
  workflow: AgentWorkflow,
  project: string,
): Promise<ToolToken | undefined> {
  const token = await readToken(references, workflow, project);
  return token && granted(token);
}

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
  return headCommit({ http, baseUrl: config.settings.gitlab_url, token }, spec.mergeRequest, signal);
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
      ...(mergeRequest.sha === undefined ? {} : { sha: mergeRequest.sha }),
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
