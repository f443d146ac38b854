import type { AgentWorkflow } from '../crds/agent-workflow.ts';
import type { MergeRequests, Notes, Threads } from '../notes/port.ts';

/** A message attribute as SQS has it, to be sent on as it came. */
export interface NativeAttribute {
  /** `String`, `Number`, `Binary`, or one of them with a suffix. */
  readonly type: string;
  readonly value: string | Uint8Array;
}

export interface QueueMessage {
  readonly id: string;
  readonly receipt: string;
  readonly body: string;
  readonly receiveCount: number;
  /** Of a FIFO queue: messages of one group come one after the other. */
  readonly groupId?: string;
  /** Native SQS attributes (raw delivery), those that are text. */
  readonly attributes: Readonly<Record<string, string>>;
  /** All native attributes; left out when there are none. */
  readonly native?: Readonly<Record<string, NativeAttribute>>;
}

/** Where messages come from. */
export interface Inbox {
  /** Long poll; an empty list after the wait. Rejects with the signal's reason when aborted. */
  receive(options: {
    /** 1 to 10. */
    readonly max: number;
    readonly waitSeconds: number;
    /** How long nobody else sees them; the queue's own setting when left out. */
    readonly visibilitySeconds?: number;
    readonly signal: AbortSignal;
  }): Promise<readonly QueueMessage[]>;
  delete(message: QueueMessage): Promise<void>;
  /** At most 10, in one request. Rejects with how many are still there, and why. */
  deleteAll(messages: readonly QueueMessage[]): Promise<void>;
  /** 0 hands it back at once. */
  changeVisibility(message: QueueMessage, seconds: number): Promise<void>;
}

export interface OutgoingMessage {
  readonly body: string;
  readonly native?: Readonly<Record<string, NativeAttribute>>;
  readonly groupId?: string;
  /** Sent twice within five minutes, it is there once. */
  readonly deduplicationId?: string;
}

export type SendOutcome =
  | { readonly kind: 'Sent' }
  /** The message itself is refused, and will be again. */
  | { readonly kind: 'TooLarge' | 'Refused'; readonly message: string }
  /** The queue could not be reached, or will take it later. It may have taken it. */
  | { readonly kind: 'Failed'; readonly message: string };

/** Where messages go. */
export interface Outbox {
  /** Sends at most 10 in this order; an outcome for each, in the same order. Never rejects. */
  send(messages: readonly OutgoingMessage[], signal?: AbortSignal): Promise<readonly SendOutcome[]>;
}

export interface Queue extends Inbox, Outbox {}

export type Handled =
  /** A run exists or a skip is recorded, for every workflow concerned: the message may go. */
  | { readonly kind: 'Durable' }
  /** Will be no better when read again; `message` says what and where. */
  | { readonly kind: 'Undecodable'; readonly message: string };

/** GitLab as the bridge uses it: facts and answers with the operator's own token, threads with their bot's. */
export interface BridgeGitLab {
  readonly mergeRequests: MergeRequests;
  readonly threads: Threads;
  /** Notes of the workflow's bot on a project, or why they cannot be had. */
  notes(
    workflow: AgentWorkflow,
    project: string,
  ): Promise<
    { readonly kind: 'Ok'; readonly value: Notes } | { readonly kind: 'Invalid'; readonly message: string }
  >;
}
