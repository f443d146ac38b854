export interface QueueMessage {
  readonly id: string;
  readonly receipt: string;
  readonly body: string;
  readonly receiveCount: number;
  readonly groupId?: string;
  /** Native SQS attributes (raw delivery). */
  readonly attributes: Readonly<Record<string, string>>;
}

export interface Queue {
  /** Long poll; an empty list after the wait. Rejects with the signal's reason when aborted. */
  receive(options: {
    readonly max: number;
    readonly waitSeconds: number;
    readonly signal: AbortSignal;
  }): Promise<readonly QueueMessage[]>;
  delete(message: QueueMessage): Promise<void>;
  /** 0 hands it back at once. */
  changeVisibility(message: QueueMessage, seconds: number): Promise<void>;
  send(
    body: string,
    options?: { readonly groupId?: string; readonly deduplicationId?: string },
  ): Promise<void>;
}

export type Handled =
  /** A run exists or a skip is recorded, for every workflow concerned: the message may go. */
  | { readonly kind: 'Durable' }
  /** Will be no better when read again; `message` says what and where. */
  | { readonly kind: 'Undecodable'; readonly message: string };
