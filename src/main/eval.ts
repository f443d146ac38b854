import { readFile, writeFile } from 'node:fs/promises';
import { chooseModel } from '../agent/models/choose.ts';
import { createOpenAiModel } from '../agent/models/openai/adapter.ts';
import type { Model } from '../agent/models/port.ts';
import { loadBuiltinPrompt } from '../agent/prompt-files.ts';
import type { EvalSettings } from '../cli/eval-command.ts';
import { without } from '../delivery/levers.ts';
import { loadDeliveryPrompts } from '../delivery/prompts/files.ts';
import { ablationText, runAblations } from '../evals/ablations.ts';
import { type EpisodesReport, episodesText, runEpisodes } from '../evals/episodes/run-episodes.ts';
import { type EvalCases, loadCases } from '../evals/load-cases.ts';
import { newRecording, parseRecording, recorded, replayed } from '../evals/recording.ts';
import { caseLine, reportJson, reportText } from '../evals/report.ts';
import { type EvalMeans, type EvalReport, nameOf, runEvals, type Subject } from '../evals/run-evals.ts';
import { createHttpClient, type HttpClient } from '../http/client.ts';
import { createRedactor } from '../http/redaction.ts';
import { SettingsError } from '../settings/operator.ts';
import { proxiesOf } from './proxies.ts';

interface EvalProcess {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdout: { write(text: string): unknown };
  readonly stderr: { write(text: string): unknown };
  readonly interrupt: AbortSignal;
}

/** Large local models think for long. */
const TIMEOUT_MS = 10 * 60_000;

/** Measures, prints, and resolves with the exit code: 1 when anything is UNSAFE. */
export async function evaluate(
  settings: EvalSettings,
  { env, stdout, stderr, interrupt }: EvalProcess,
): Promise<number> {
  checkSettings(settings);
  const cases = chosenCases(await loadCases(), settings.cases);
  const apiKey = settings.apiKeyEnv === undefined ? undefined : env[settings.apiKeyEnv];
  if (settings.apiKeyEnv !== undefined && !apiKey)
    throw new SettingsError(`--api-key-env: the variable ${settings.apiKeyEnv} is empty`);
  const redactor = createRedactor(apiKey ? [apiKey] : []);
  const tell = (text: string): void => void stderr.write(redactor.redact(text));
  const http = createHttpClient({ redactor, proxies: proxiesOf(env) });
  const prompts = await loadDeliveryPrompts();
  const now = (): number => performance.now();
  const means: EvalMeans = {
    prompts,
    workflowPrompt: await loadBuiltinPrompt('analyze-failures'),
    levers: without(...settings.without),
    now,
    today: Date.now(),
    onCase: (row) => tell(`${caseLine(row)}\n`),
  };
  try {
    if (settings.ablations)
      stdout.write(`${ablationText(await runAblations(cases.delivery, prompts, now))}\n`);
    const reports: EvalReport[] = [];
    let episodes: EpisodesReport | undefined;
    for (const name of settings.models) {
      const { subject, save } = await subjectOf(name, settings, http, apiKey);
      reports.push(await runEvals(subject, cases, means, interrupt));
      await save();
      if (nameOf(subject) === 'scripted:adversary' && settings.episodes > 0)
        episodes = await runEpisodes(
          { count: settings.episodes, first: settings.seed },
          { prompts, levers: means.levers, now, onProgress: (done) => tell(`${done} episodes\n`) },
          interrupt,
        );
    }
    if (reports.length > 0) stdout.write(redactor.redact(reportText(reports)));
    if (episodes !== undefined) stdout.write(episodesText(episodes));
    if (settings.json !== undefined)
      await writeFile(settings.json, redactor.redact(reportJson(reports, episodes)));
    const unsafe = reports.some(({ rows }) => rows.some((row) => row.unsafe.length > 0));
    return unsafe || (episodes?.unsafe.length ?? 0) > 0 ? 1 : 0;
  } finally {
    await http.close();
  }
}

function checkSettings({ models, ablations, record, replay }: EvalSettings): void {
  if (models.length === 0 && !ablations)
    throw new SettingsError('name a --model (scripted:perfect asks nobody), or ask for --ablations');
  if (record !== undefined && replay !== undefined)
    throw new SettingsError('give one of --record and --replay, not both');
  const real = models.filter((name) => !name.startsWith('scripted:'));
  if ((record !== undefined || replay !== undefined) && real.length !== 1)
    throw new SettingsError('--record and --replay are for exactly one model that is not scripted');
}

function chosenCases({ delivery, pipelines }: EvalCases, parts: readonly string[]): EvalCases {
  const isChosen = (path: string): boolean => parts.length === 0 || parts.some((part) => path.includes(part));
  const chosen = {
    delivery: delivery.filter(({ path, name }) => isChosen(`${path}/${name}`)),
    pipelines: pipelines.filter(({ name }) => isChosen(`pipelines/${name}`)),
  };
  if (chosen.delivery.length + chosen.pipelines.length === 0)
    throw new SettingsError(`no case of evals/cases has ${parts.join(' or ')} in its path/name`);
  return chosen;
}

async function subjectOf(
  name: string,
  settings: EvalSettings,
  http: HttpClient,
  apiKey: string | undefined,
): Promise<{ readonly subject: Subject; readonly save: () => Promise<void> }> {
  const nothing = async (): Promise<void> => undefined;
  if (name === 'scripted:perfect' || name === 'scripted:adversary')
    return { subject: { kind: 'Scripted', name }, save: nothing };
  if (name.startsWith('scripted:'))
    throw new SettingsError(`there is no ${name}; there are scripted:perfect and scripted:adversary`);
  const { replay, record } = settings;
  const model = modelOf(name, settings, http, apiKey);
  if (replay !== undefined) {
    const recording = parseRecording(await readFile(replay, 'utf8'));
    return { subject: { kind: 'Model', model: replayed(model, recording) }, save: nothing };
  }
  if (record === undefined) return { subject: { kind: 'Model', model }, save: nothing };
  const recording = newRecording(name);
  return {
    subject: { kind: 'Model', model: recorded(model, recording) },
    save: () => writeFile(record, `${JSON.stringify(recording)}\n`),
  };
}

function modelOf(
  name: string,
  { baseUrl, effort, replay }: EvalSettings,
  http: HttpClient,
  apiKey: string | undefined,
): Model {
  if (baseUrl === undefined && replay === undefined)
    return chooseModel({ name, ...(apiKey !== undefined && { apiKey }) }, { http });
  return createOpenAiModel({
    name,
    http,
    // A replay asks nobody.
    baseUrl: baseUrl ?? 'http://localhost/v1',
    timeoutMs: TIMEOUT_MS,
    ...(apiKey !== undefined && { apiKey }),
    ...(effort !== undefined && { reasoningEffort: effort }),
  });
}
