import { randomUUID } from 'node:crypto';
import { type ExecResult, type Sandbox, SandboxUnavailableError, SCRATCH } from '../sandbox/port.ts';
import { type TarFile, writeTar } from './chart/tar.ts';
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
 * helm in a sandbox: one command, which brings charts and values along and leaves nothing behind.
 * Nothing is fetched, since there is no network: a chart has to hold all that it needs. Throws
 * `SandboxUnavailableError` where the image has no helm.
 */
export function sandboxHelm(sandbox: Sandbox, options: SandboxHelmOptions = {}): Helm {
  const { timeoutMs = 60_000, maxOutputBytes = 32 * 1024 * 1024, newId = randomUUID } = options;

  async function renderings(
    requests: readonly HelmRequest[],
    signal: AbortSignal | undefined,
  ): Promise<readonly HelmResult[]> {
    const directory = `${SCRATCH}/.helm-${newId()}`;
    const result = await sandbox.exec(command(requests, directory, maxOutputBytes), {
      stdin: writeTar(requests.flatMap(filesOf)),
      timeoutMs,
      maxOutputBytes: requests.length * (maxOutputBytes + MAX_WORDS_BYTES + MAX_HEAD_BYTES),
      ...(signal && { signal }),
    });
    if (result.kind === 'TimedOut') {
      // What was killed has not tidied up after itself.
      await sandbox.exec(`rm -rf ${directory}`, signal && { signal });
      if (requests.length === 1) return [timedOut(result.timeoutMs)];
      // One alone may have no end: each for itself, it takes no other with it.
      return (await Promise.all(requests.map((request) => renderings([request], signal)))).flat();
    }
    refuseSandbox(result);
    return framesOf(result.stdout, requests.length, maxOutputBytes).map((frame) =>
      told(frame, maxOutputBytes),
    );
  }

  return {
    async template(request, signal) {
      const [result] = await renderings([request], signal);
      if (result === undefined) throw new Error('helm: one request has one result');
      return result;
    },
    templates: renderings,
  };
}

/** Of helm's own words, which name the cause last. */
const MAX_WORDS_BYTES = 64 * 1024;
const MAX_HEAD_BYTES = 64;

const filesOf = ({ chart, values }: HelmRequest, index: number): readonly TarFile[] => [
  { path: `${index}/chart.tgz`, bytes: chart },
  ...values.map((text, at) => ({ path: `${index}/values-${at}.yaml`, bytes: Buffer.from(text) })),
];

/**
 * All renderings side by side in directories of their own. Each then tells its exit status and how many bytes follow:
 * of what it rendered, cut one byte behind the bound, and of its words.
 */
function command(requests: readonly HelmRequest[], directory: string, maxOutputBytes: number): string {
  const each = requests.map(
    (request, index) =>
      `( cd ${index} && export HELM_CACHE_HOME=$PWD/cache HELM_CONFIG_HOME=$PWD/config HELM_DATA_HOME=$PWD/data\n` +
      `{ ${words(request)} 2>words; echo $? >status; } | head -c ${maxOutputBytes + 1} >out ) &`,
  );
  return [
    `command -v helm >/dev/null || exit ${NO_HELM}`,
    `d=${directory}; trap 'rm -rf "$d"' EXIT; mkdir "$d" && cd "$d" && tar -xf - || exit ${NO_ROOM}`,
    ...each,
    'wait',
    `for i in ${requests.map((_request, index) => index).join(' ')}; do tail -c ${MAX_WORDS_BYTES} $i/words >$i/last`,
    'echo "$(cat $i/status) $(wc -c <$i/out) $(wc -c <$i/last)"; cat $i/out $i/last; done',
  ].join('\n');
}

/** Words of data are quoted. */
function words({ values, release, namespace, apiVersions, includeCrds, kubeVersion }: HelmRequest): string {
  return [
    ...['helm', 'template', '--skip-tests', '--namespace', quoted(namespace)],
    ...values.flatMap((_text, index) => ['--values', `values-${index}.yaml`]),
    ...(apiVersions ?? []).flatMap((version) => ['--api-versions', quoted(version)]),
    ...(includeCrds === true ? ['--include-crds'] : []),
    ...(kubeVersion === undefined ? [] : ['--kube-version', quoted(kubeVersion)]),
    // A name that begins with a dash is no flag.
    ...['--', quoted(release), 'chart.tgz'],
  ].join(' ');
}

/** Exit statuses that helm does not use. */
const NO_HELM = 97;
const NO_ROOM = 98;

/** Text of a repository as one word of the shell. */
const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

function timedOut(timeoutMs: number): HelmResult {
  return {
    kind: 'Failed',
    reason: 'Timeout',
    message: `helm was not done after ${Math.round(timeoutMs / 1000)} s and was ended: a template has no end, or renders too much`,
  };
}

function refuseSandbox({ exitCode, stderr }: Extract<ExecResult, { readonly kind: 'Exited' }>): void {
  if (exitCode === 0) return;
  if (exitCode === NO_HELM)
    throw new SandboxUnavailableError(
      'the sandbox image has no helm in its PATH; docs/delivery.md says what an image needs for chart bumps',
    );
  const said = new TextDecoder().decode(stderr).trim().slice(0, 300);
  throw new SandboxUnavailableError(
    exitCode === NO_ROOM
      ? `the sandbox cannot hold a chart: ${said}`
      : `the sandbox cannot run helm, exit status ${exitCode}: ${said}`,
  );
}

interface Frame {
  readonly exitCode: number;
  readonly out: Uint8Array;
  readonly words: string;
}

function framesOf(stdout: Uint8Array, count: number, maxOutputBytes: number): readonly Frame[] {
  const frames: Frame[] = [];
  let at = 0;
  for (let index = 0; index < count; index += 1) {
    const end = stdout.indexOf(NEWLINE, at);
    const head = new TextDecoder().decode(stdout.subarray(at, Math.max(at, end)));
    const [, status, out, said] = /^(\d{1,3}) (\d+) (\d+)$/.exec(head) ?? [];
    if (status === undefined || Number(out) > maxOutputBytes + 1)
      throw new SandboxUnavailableError(
        `the sandbox told of helm in a way that cannot be read: ${head.slice(0, 100)}`,
      );
    const middle = end + 1 + Number(out);
    at = middle + Number(said);
    frames.push({
      exitCode: Number(status),
      out: stdout.subarray(end + 1, middle),
      words: new TextDecoder().decode(stdout.subarray(middle, at)).trim(),
    });
  }
  return frames;
}

const NEWLINE = 0x0a;

function told({ exitCode, out, words: said }: Frame, maxOutputBytes: number): HelmResult {
  // Before its exit status: helm itself fails when nobody reads on.
  if (out.length > maxOutputBytes)
    return {
      kind: 'Failed',
      reason: 'TooLarge',
      message: `the chart renders more than the ${maxOutputBytes} bytes that are read`,
    };
  if (exitCode !== 0) return refusal(exitCode, said);
  return { kind: 'Rendered', manifests: new TextDecoder().decode(out) };
}

function refusal(exitCode: number, said: string): HelmResult {
  const message = shortened(said.replace(/^Error: /m, ''));
  if (said.includes("values don't meet the specifications of the schema"))
    return { kind: 'SchemaRefused', message };
  const missing = /missing in charts\/ directory: (.*)/.exec(said)?.[1];
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
