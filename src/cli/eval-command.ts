import { type Command, InvalidArgumentError, Option } from 'commander';
import { LEVERS, type Lever } from '../delivery/levers.ts';

/** What `hummingbird eval` measures, and where its answers come from and go. */
export interface EvalSettings {
  readonly models: readonly string[];
  /** Of an OpenAI-compatible endpoint, with its version. */
  readonly baseUrl: string | undefined;
  readonly apiKeyEnv: string | undefined;
  readonly effort: string | undefined;
  /** Parts of names or paths of cases; none: all cases. */
  readonly cases: readonly string[];
  /** Levers that are taken away. */
  readonly without: readonly Lever[];
  readonly ablations: boolean;
  /** Generated bumps that scripted:adversary is let loose on. */
  readonly episodes: number;
  readonly seed: number;
  readonly record: string | undefined;
  readonly replay: string | undefined;
  readonly json: string | undefined;
}

interface EvalFlags {
  readonly model?: readonly string[];
  readonly baseUrl?: string;
  readonly apiKeyEnv?: string;
  readonly effort?: string;
  readonly case?: readonly string[];
  readonly without?: readonly Lever[];
  readonly inventory: boolean;
  readonly ablations: boolean;
  readonly episodes: number;
  readonly seed: number;
  readonly record?: string;
  readonly replay?: string;
  readonly json?: string;
}

export function addEvalCommand(program: Command, action: (settings: EvalSettings) => Promise<void>): void {
  program
    .command('eval')
    .description('measure models on the shipped prompts and policy, with the cases of evals/cases')
    .option(
      '--model <name>',
      'a model, scripted:perfect or scripted:adversary; may be repeated: side by side',
      several,
    )
    .option('--base-url <url>', 'OpenAI-compatible endpoint of the models, up to and with /v1', address)
    .option('--api-key-env <name>', 'environment variable that holds the API key of the models')
    .option('--effort <level>', 'reasoning effort that the endpoint is asked for')
    .option('--case <text>', 'only cases whose path/name has this in it; may be repeated', several)
    .addOption(
      new Option('--without <lever>', 'take a lever away; may be repeated').choices(LEVERS).argParser(levers),
    )
    .option('--no-inventory', 'the same as --without inventory')
    .option('--ablations', 'print what each lever catches, with scripted models', false)
    .option('--episodes <n>', 'generated bumps for scripted:adversary, besides the cases', count, 10_000)
    .option('--seed <n>', 'where the generated bumps begin', count, 1)
    .option('--record <file>', 'keep the answers of one model')
    .option('--replay <file>', 'take the answers from there and ask nobody')
    .option('--json <file>', 'write the report there as JSON')
    .addHelpText(
      'after',
      `
Exit codes: 0 measured; 1 something is UNSAFE, or could not be measured; 2 flags are wrong.`,
    )
    .action(async (flags: EvalFlags) => action(settingsOf(flags)));
}

function settingsOf(flags: EvalFlags): EvalSettings {
  return {
    models: flags.model ?? [],
    baseUrl: flags.baseUrl,
    apiKeyEnv: flags.apiKeyEnv,
    effort: flags.effort,
    cases: flags.case ?? [],
    without: [...new Set([...(flags.without ?? []), ...(flags.inventory ? [] : (['inventory'] as const))])],
    ablations: flags.ablations,
    episodes: flags.episodes,
    seed: flags.seed,
    record: flags.record,
    replay: flags.replay,
    json: flags.json,
  };
}

const several = (text: string, before: readonly string[] = []): readonly string[] => [...before, text];

function levers(text: string, before: readonly Lever[] = []): readonly Lever[] {
  const lever = LEVERS.find((one) => one === text);
  if (lever === undefined)
    throw new InvalidArgumentError(`there is no such lever; there are ${LEVERS.join(', ')}`);
  return [...before, lever];
}

function address(text: string): string {
  if (!URL.canParse(text) || !/^https?:/.test(text))
    throw new InvalidArgumentError('it must be an http:// or https:// address');
  return text;
}

function count(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('it must be a whole number');
  return Number(text);
}
