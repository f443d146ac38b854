import type { FinishReason, Usage } from './models/port.ts';
import type { Step, StopRule } from './stop-rules.ts';
import type { ToolExecution } from './tools/registry.ts';
import type { EndKind } from './verdict.ts';

/** Everything observable of a loop, for progress, logs, metrics and Kubernetes Events. No tool output, no secrets. */
export type LoopEvent =
  | {
      readonly type: 'IterationStarted';
      readonly iteration: number;
      readonly level: Step['level'];
      readonly ephemeral?: string;
    }
  | {
      readonly type: 'ModelAnswered';
      readonly iteration: number;
      readonly finishReason: FinishReason;
      readonly toolCalls: number;
      readonly usage: Usage;
      readonly totalUsage: Usage;
      /** Of the whole run so far; absent when unknown. */
      readonly costUsd?: number;
    }
  | {
      readonly type: 'ModelRetry';
      readonly iteration: number;
      readonly attempt: number;
      readonly delayMs: number;
      readonly message: string;
    }
  | { readonly type: 'ToolStarted'; readonly iteration: number; readonly id: string; readonly name: string }
  | {
      readonly type: 'ToolFinished';
      readonly iteration: number;
      readonly id: string;
      readonly name: string;
      readonly outcome: ToolExecution['outcome'];
      readonly durationMs: number;
      readonly resultBytes: number;
    }
  | { readonly type: 'Checkpointed'; readonly iteration: number; readonly sequence: number }
  | { readonly type: 'Warning'; readonly message: string }
  | {
      readonly type: 'Ended';
      readonly kind: EndKind;
      readonly reason: StopRule;
      readonly iterations: number;
    };

/** A sink that throws is ignored: watching a run must not end it. */
export type LoopSink = (event: LoopEvent) => void;
