export type { Fault } from './faults.ts';
export { type FakeObjectStorage, startObjectStorage } from './object-storage.ts';
export type { PagingStyle } from './paging.ts';
export { type FakeGitLab, type RecordedRequest, startGitLab } from './server.ts';
export { snsEnvelope } from './sns.ts';
export * from './state.ts';
export * from './webhooks.ts';
