import { ANNOTATIONS, type KubeObject, LABELS } from './meta.ts';

/** Whether a sandbox is kept for the next run of a session: no run owns it, and it says of which session it is. */
export function lingers({ metadata: { annotations, labels, deletionTimestamp } }: KubeObject): boolean {
  return (
    deletionTimestamp === undefined &&
    labels?.[LABELS.role] === 'active' &&
    labels[LABELS.run] === undefined &&
    annotations?.[ANNOTATIONS.sessionId] !== undefined
  );
}

/** The session that a sandbox lingers for; its namespace is that of the run that left the sandbox. */
export function lingeringSession(
  sandbox: KubeObject,
): { readonly namespace: string; readonly name: string } | undefined {
  const { annotations } = sandbox.metadata;
  const name = annotations?.[ANNOTATIONS.sessionId];
  if (name === undefined || !lingers(sandbox)) return undefined;
  return { namespace: annotations?.[ANNOTATIONS.runName]?.split('/')[0] ?? '', name };
}

/** When a claimed or lingering sandbox may be reaped, in milliseconds since 1970; NaN when it does not say. */
export const reapTime = ({ metadata }: KubeObject): number =>
  Date.parse(metadata.annotations?.[ANNOTATIONS.reapBy] ?? '');
