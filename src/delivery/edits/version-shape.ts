// Lever 3. A prompt that forbids versions of the model's own making does not keep it from writing them.

// Two or three numbers, or more behind a dot, and what follows a dash or a plus: 1.5, v1.5.1, 1.2.3-rc.1+build.
const VERSION = /^v?\d+(?:\.\d+){1,2}(?:[.+-][A-Za-z0-9.+-]*)?$/;
// The same with letters before it (release1.5), and digests, which pin like versions do and are as easily made up.
const PINS =
  /(?<![A-Za-z0-9]|\d\.)(?:[A-Za-z0-9]*\d(?:\.\d+){1,2}(?:[.+-][A-Za-z0-9.+-]*)?|sha\d+:[0-9a-f]{32,})/g;

/** `1.5` and `v1.5.1-rc.1` are, `8080`, `true` and `latest` are not. */
export const isVersionShaped = (text: string): boolean => VERSION.test(text);

/**
 * Versions and digests that `to` has and `from` has not and that do not occur in the evidence as a whole: 1.5.1 is
 * not found in 1.5.10, v1.5.1, 2.1.5.1 or 1.5.1-rc.1.
 */
export function uncorroborated(to: string, from: string, evidence: string): readonly string[] {
  const known = new Set(pins(from));
  const asked = isVersionShaped(to) ? [to] : pins(to).filter((pin) => !known.has(pin));
  return asked.filter((pin) => !occurs(pin, evidence));
}

/** Also inside of longer values: `registry.example.org/app:1.5.1` has one. */
const pins = (text: string): readonly string[] =>
  (text.match(PINS) ?? []).map((pin) => pin.replace(/[.+-]+$/, ''));

function occurs(pin: string, evidence: string): boolean {
  for (let at = evidence.indexOf(pin); at >= 0; at = evidence.indexOf(pin, at + 1)) {
    const before = evidence.slice(Math.max(0, at - 2), at);
    const after = evidence.slice(at + pin.length, at + pin.length + 2);
    if (!/[A-Za-z0-9]$|\d\.$/.test(before) && !/^[A-Za-z0-9]|^\.\d|^[+-][A-Za-z0-9]/.test(after)) return true;
  }
  return false;
}
