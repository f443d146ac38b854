import type { QueueMessage } from '../port.ts';

/** Messages that must be handled one after the other. */
export interface Lane {
  readonly key: string;
  readonly messages: readonly QueueMessage[];
}

/** The messages of one receive by group, in their order; one without a group has a lane of its own. */
export function lanesOf(messages: readonly QueueMessage[]): readonly Lane[] {
  const lanes = new Map<string, QueueMessage[]>();
  for (const message of messages) {
    const key = message.groupId === undefined ? `message/${message.id}` : `group/${message.groupId}`;
    const lane = lanes.get(key);
    if (lane) lane.push(message);
    else lanes.set(key, [message]);
  }
  return [...lanes].map(([key, lane]) => ({ key, messages: lane }));
}
