/**
 * Order of two resourceVersions of one resource: negative, 0, positive; undefined when they cannot be ordered.
 * Kubernetes promises since 1.35 that they are decimal numbers that grow (KEP-5504); other servers may differ.
 */
export function compareVersions(a: string | undefined, b: string | undefined): number | undefined {
  if (a === undefined || b === undefined) return undefined;
  if (a === b) return 0;
  if (!DECIMAL.test(a) || !DECIMAL.test(b)) return undefined;
  // Without leading zeros the longer number is the greater; equal lengths compare as text.
  return a.length - b.length || (a < b ? -1 : 1);
}

const DECIMAL = /^(0|[1-9][0-9]*)$/;
