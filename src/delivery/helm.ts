import { randomUUID } from 'node:crypto';
import { type ExecResult, type Sandbox, SandboxUnavailableError, SCRATCH } from '../sandbox/port.ts';
import { writeTar } from './chart/tar.ts';
import type { Helm, HelmRequest, HelmResult } from './port.ts';

export interface SandboxHelmOptions {
  /** Default 60 s: what takes longer has no end. */
  readonly timeoutMs?: number;
  /** Default 32 MiB of manifests. */
  readonly maxOutputBytes?: number;
  /** Ids that are used once. */
  readonly newId?: () => string;
}

/** As much of helm's own words as a sentence for people can carry. */
const MAX_MESSAGE_CHARACTERS = 2000;

/**
 * helm in a sandbox: one command for each rendering, which brings chart and values along and leaves nothing behind.
 * Nothing is fetched, since there is no network: a chart has to hold all that it needs. Throws
 * `SandboxUnavailableError` where the image has no helm.
 */
export function sandboxHelm(sandbox: Sandbox, options: SandboxHelmOptions = {}): Helm {
  const { timeoutMs = 60_000, maxOutputBytes = 32 * 1024 * 1024, newId = randomUUID } = options;
  return {
    async template(request, signal) {
      const directory = `${SCRATCH}/.helm-${newId()}`;
      const result = await sandbox.exec(command(request, directory), {
        stdin: writeTar([
          { path: 'chart.tgz', bytes: request.chart },
          ...request.values.map((text, index) => ({
            path: `values-${index}.yaml`,
            bytes: Buffer.from(text),
          })),
        ]),
        timeoutMs,
        maxOutputBytes,
        ...(signal && { signal }),
      });
      // What was killed has not tidied up after itself.
      if (result.kind === 'TimedOut') await sandbox.exec(`rm -rf ${directory}`, signal && { signal });
      return told(result, maxOutputBytes);
    },
  };
}

/** Directories of its own, so that renderings side by side never meet; words of data are quoted. */
function command(request: HelmRequest, directory: string): string {
  const { values, release, namespace, apiVersions, includeCrds, kubeVersion } = request;
  const words = [
    ...['helm', 'template', '--skip-tests', '--namespace', quoted(namespace)],
    ...values.flatMap((_text, index) => ['--values', `values-${index}.yaml`]),
    ...(apiVersions ?? []).flatMap((version) => ['--api-versions', quoted(version)]),
    ...(includeCrds === true ? ['--include-crds'] : []),
    ...(kubeVersion === undefined ? [] : ['--kube-version', quoted(kubeVersion)]),
    // A name that begins with a dash is no flag.
    ...['--', quoted(release), 'chart.tgz'],
  ];
  return [
    `command -v helm >/dev/null || exit ${NO_HELM}`,
    `d=${directory}; trap 'rm -rf "$d"' EXIT; mkdir "$d" && cd "$d" && tar -xf - || exit ${NO_ROOM}`,
    'export HELM_CACHE_HOME="$d/cache" HELM_CONFIG_HOME="$d/config" HELM_DATA_HOME="$d/data"',
    words.join(' '),
  ].join('\n');
}

/** Exit statuses that helm does not use. */
const NO_HELM = 97;
const NO_ROOM = 98;

/** Text of a repository as one word of the shell. */
const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

function told(result: ExecResult, maxOutputBytes: number): HelmResult {
  if (result.kind === 'TimedOut')
    return {
      kind: 'Failed',
      reason: 'Timeout',
      message: `helm was not done after ${Math.round(result.timeoutMs / 1000)} s and was ended: a template has no end, or renders too much`,
    };
  const words = new TextDecoder().decode(result.stderr).trim();
  if (result.exitCode === NO_HELM)
    throw new SandboxUnavailableError(
      'the sandbox image has no helm in its PATH; docs/delivery.md says what an image needs for chart bumps',
    );
  if (result.exitCode === NO_ROOM)
    throw new SandboxUnavailableError(`the sandbox cannot hold a chart: ${words.slice(0, 300)}`);
  if (result.exitCode !== 0) return refusal(result.exitCode, words);
  if (result.stdoutBytes > maxOutputBytes)
    return {
      kind: 'Failed',
      reason: 'TooLarge',
      message: `the chart renders ${result.stdoutBytes} bytes, more than the ${maxOutputBytes} that are read`,
    };
  return { kind: 'Rendered', manifests: new TextDecoder().decode(result.stdout) };
}

function refusal(exitCode: number, words: string): HelmResult {
  const message = shortened(words.replace(/^Error: /m, ''));
  if (words.includes("values don't meet the specifications of the schema"))
    return { kind: 'SchemaRefused', message };
  const missing = /missing in charts\/ directory: (.*)/.exec(words)?.[1];
  if (missing !== undefined)
    return {
      kind: 'Failed',
      reason: 'Dependency',
      message: `the chart needs charts that are not in it: ${missing}`,
    };
  // 137: something else has killed it, which is most often the memory of the sandbox.
  if (exitCode === 137)
    return {
      kind: 'Failed',
      reason: 'Timeout',
      message: 'helm was killed: the chart is too much for the sandbox',
    };
  return {
    kind: 'Failed',
    reason: 'Template',
    message: message === '' ? `helm ended with exit status ${exitCode} and said nothing` : message,
  };
}

/** Helm names the cause last. */
function shortened(words: string): string {
  if (words.length <= MAX_MESSAGE_CHARACTERS) return words;
  return `${words.slice(0, MAX_MESSAGE_CHARACTERS / 2)} … ${words.slice(-MAX_MESSAGE_CHARACTERS / 2)}`;
}
