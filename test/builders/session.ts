import type { SessionToSave } from '../../src/agent/session.ts';
import type { AgentSession } from '../../src/crds/agent-session.ts';
import type { ObjectMeta } from '../../src/crds/meta.ts';

type Envelope = SessionToSave['envelope'];

/** A saved conversation in one line, of the merge request that `aRun` works on. */
export function anEnvelope(changes: Partial<Envelope> = {}): Envelope {
  return {
    format_version: 1,
    session_id: 's-1',
    workflow: 'analyze-failures',
    project: 'group/app',
    iid: 42,
    model: 'test-script',
    provider: 'openai',
    updated_at: '2026-03-01T10:00:00.000Z',
    usage: { input_tokens: 10, output_tokens: 2, cache_read_tokens: 0, cache_creation_tokens: 0 },
    contents: [
      { role: 'user', content: 'What failed?' },
      { role: 'assistant', content: 'It is the cache.' },
    ],
    ...changes,
  };
}

/** The object of that conversation. */
export function aSession(
  status: AgentSession['status'] = { expiresAt: '2026-03-31T10:00:00Z' },
  metadata: Partial<ObjectMeta> = {},
): AgentSession {
  return {
    apiVersion: 'hummingbird.dev/v1alpha1',
    kind: 'AgentSession',
    metadata: { name: 's-1', namespace: 'agents', uid: 'session-1', ...metadata },
    spec: { workflowRef: { name: 'analyze-failures' }, mergeRequest: { project: 'group/app', iid: 42 } },
    status,
  };
}
