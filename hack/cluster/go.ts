import { run } from './run.ts';

/** Runs Go without a C compiler, outside any workspace, at low priority; resolves with its stdout. */
export function goCommand(
  args: readonly string[],
  cwd: string,
  env: Record<string, string> = {},
): Promise<string> {
  return run(['nice', 'go', ...args], { cwd, env: { CGO_ENABLED: '0', GOWORK: 'off', ...env } });
}

export async function requireGo(what: string): Promise<void> {
  try {
    await run(['go', 'version']);
  } catch {
    throw new Error(
      `Go 1.26 or later is needed to build ${what} and is not in PATH: install it from https://go.dev/dl ` +
        'or, on Debian, with "apt-get install golang-go" (any Go from 1.21 on fetches the version it needs by itself)',
    );
  }
}
