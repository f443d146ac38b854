export type Attempt =
  /** The label goes on the merge request before anything is pushed; where it cannot, nothing is. */
  | { readonly kind: 'Attempt'; readonly number: number; readonly label: string }
  | { readonly kind: 'Exhausted'; readonly made: number };

/**
 * The next push to a merge request, counted by its labels `BRAND/attempt-N`: they outlive the operator, people see
 * them, and taking them off is a person's way to allow more.
 */
export function nextAttempt(
  labels: readonly string[],
  { brand, maxAttempts }: { readonly brand: string; readonly maxAttempts: number },
): Attempt {
  const prefix = `${brand}/attempt-`;
  // The highest one counts: a label that is missing in between does not give its attempt back.
  const made = labels.reduce((highest, label) => Math.max(highest, numberOf(label, prefix)), 0);
  if (made >= maxAttempts) return { kind: 'Exhausted', made };
  return { kind: 'Attempt', number: made + 1, label: `${prefix}${made + 1}` };
}

function numberOf(label: string, prefix: string): number {
  const number = label.startsWith(prefix) ? label.slice(prefix.length) : '';
  return /^\d+$/.test(number) ? Number(number) : 0;
}
