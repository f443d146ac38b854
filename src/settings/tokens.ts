/**
 * Three token tiers as three nominal types: handing one to a function that wants another does not compile.
 * The value stays inside a closure, so that logging or serialising a token shows only its tier.
 */
declare const tier: unique symbol;

interface Token<Tier extends string> {
  readonly [tier]: Tier;
  reveal(): string;
  toString(): string;
  toJSON(): string;
}

/** Access checks and simple replies of the operator itself. */
export type OrchestratorToken = Token<'orchestrator'>;
/** Notes of one workflow on one project. */
export type ActionToken = Token<'action'>;
/** The model's read tools. */
export type ToolToken = Token<'tool'>;

function token<T extends string>(tierName: T, value: string): Token<T> {
  const shown = `[${tierName} token]`;
  return { reveal: () => value, toString: () => shown, toJSON: () => shown } as Token<T>;
}

export const orchestratorToken = (value: string): OrchestratorToken => token('orchestrator', value);
export const actionToken = (value: string): ActionToken => token('action', value);
export const toolToken = (value: string): ToolToken => token('tool', value);
