import type { LoopEvent } from '../agent/loop-events.ts';

/** Where progress is shown; never on stdout, which is the result's. */
export interface ProgressScreen {
  /** Whether lines can be drawn again. */
  readonly isTTY: boolean;
  readonly columns: number;
  write(text: string): void;
}

export interface Progress {
  /** For the loop's sink. */
  event(event: LoopEvent): void;
  /** A line that stays. */
  say(text: string): void;
  /** Ends the drawing; lines can still be said. */
  done(): void;
}

export interface ProgressOptions {
  readonly screen: ProgressScreen;
  readonly maxIterations: number;
  /** Nothing but `say`. */
  readonly quiet: boolean;
  /** Milliseconds; only differences count. */
  readonly now: () => number;
}

interface State {
  iteration: number;
  inputTokens: number;
  outputTokens: number;
  costUsd: number | undefined;
  readonly tools: Map<string, { readonly name: string; readonly since: number }>;
  waitingSince: number;
}

/** How often the clock in the drawn line moves. */
const REDRAW_MS = 500;

/**
 * On a terminal one line that is drawn again: iteration, tokens, cost, what is going on. Elsewhere a line for
 * every answer and tool call, for logs.
 */
export function createProgress({ screen, maxIterations, quiet, now }: ProgressOptions): Progress {
  const state: State = {
    iteration: 0,
    inputTokens: 0,
    outputTokens: 0,
    costUsd: undefined,
    tools: new Map(),
    waitingSince: now(),
  };
  const drawing = screen.isTTY && !quiet;
  let drawn = false;
  const timer = drawing ? setInterval(draw, REDRAW_MS).unref() : undefined;

  function draw(): void {
    if (!drawing || state.iteration === 0) return;
    screen.write(
      `\r\u001b[K${statusLine(state, maxIterations, now()).slice(0, Math.max(20, screen.columns - 1))}`,
    );
    drawn = true;
  }
  function say(text: string): void {
    if (drawn) screen.write('\r\u001b[K');
    drawn = false;
    screen.write(`${text}\n`);
    draw();
  }

  return {
    say,
    event(event) {
      const line = note(state, event, now(), maxIterations);
      if (quiet) return;
      if (line !== undefined && (!drawing || line.important)) say(line.text);
      else draw();
    },
    done() {
      clearInterval(timer);
      if (drawn) screen.write('\r\u001b[K');
      drawn = false;
      state.iteration = 0;
    },
  };
}

/** Takes the event in, and gives the line that tells it. */
function note(
  state: State,
  event: LoopEvent,
  now: number,
  maxIterations: number,
): { readonly text: string; readonly important: boolean } | undefined {
  const at = `[${state.iteration || 1}/${maxIterations}]`;
  const minor = (text: string) => ({ text, important: false });
  const important = (text: string) => ({ text, important: true });
  switch (event.type) {
    case 'IterationStarted':
      state.iteration = event.iteration;
      state.waitingSince = now;
      return undefined;
    case 'ModelAnswered': {
      state.inputTokens = event.totalUsage.inputTokens;
      state.outputTokens = event.totalUsage.outputTokens;
      state.costUsd = event.costUsd;
      state.waitingSince = now;
      const calls =
        event.toolCalls === 0
          ? 'answer'
          : event.toolCalls === 1
            ? '1 tool call'
            : `${event.toolCalls} tool calls`;
      const { inputTokens, outputTokens } = event.usage;
      return minor(
        `${at} model: ${calls}, ${inputTokens} tokens in, ${outputTokens} out${cost(event.costUsd)}`,
      );
    }
    case 'ModelRetry':
      return important(`${at} model: ${event.message} Trying again in ${event.delayMs / 1000} s.`);
    case 'ToolStarted':
      state.tools.set(event.id, { name: event.name, since: now });
      return undefined;
    case 'ToolFinished':
      state.tools.delete(event.id);
      state.waitingSince = now;
      return minor(
        `${at} ${event.name}: ${event.outcome}, ${seconds(event.durationMs)}, ${event.resultBytes} bytes`,
      );
    case 'Warning':
      return important(`warning: ${event.message}`);
    case 'Checkpointed':
    case 'Ended':
      return undefined;
    default:
      return event satisfies never;
  }
}

function statusLine(state: State, maxIterations: number, now: number): string {
  const { iteration, inputTokens, outputTokens, costUsd, tools, waitingSince } = state;
  const running = [...tools.values()];
  const what = running.length > 0 ? running.map(({ name }) => name).join(', ') : 'model';
  const since = running[0]?.since ?? waitingSince;
  return `iteration ${iteration}/${maxIterations} · ${short(inputTokens)} tokens in, ${short(outputTokens)} out${cost(costUsd, ' · ')} · ${what} ${seconds(now - since)}`;
}

const cost = (usd: number | undefined, separator = ', '): string =>
  usd === undefined ? '' : `${separator}$${usd.toFixed(4)}`;

const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;

const short = (count: number): string => (count < 10_000 ? String(count) : `${(count / 1000).toFixed(1)}k`);
