import type { RunWish } from '../cli/run-event.ts';
import { type Environment, validateEnv } from '../settings/environment.ts';
import { type Config, workflowsOf } from '../settings/file.ts';
import type { SandboxBackend } from '../settings/file-schema.ts';
import type { ConfiguredWorkflow } from '../settings/file-workflow.ts';
import { SettingsError } from '../settings/operator.ts';
import type { RunSettings } from '../settings/run.ts';

/** The workflow that is named, else the only one that serves the project. Throws SettingsError. */
export function chooseWorkflow(
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
export function checkEnvironment(
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

/** What a manifest says of its sandbox. */
export function backendWanted({ spec }: RunWish): SandboxBackend | undefined {
  if (spec.sandbox?.none === true) return 'none';
  return spec.sandbox?.poolRef === undefined ? undefined : 'k8spool';
}
