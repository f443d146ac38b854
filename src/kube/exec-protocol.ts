import * as z from 'zod';
import { ExecError } from './exec-error.ts';

/**
 * The remote command protocol over WebSocket, version 5: every message is one channel byte and its bytes;
 * 255 and a channel byte says that this channel has ended in that direction. Older versions have no such
 * message, so that a command which reads its input to the end never ends: they are not offered.
 */
export const EXEC_PROTOCOL = 'v5.channel.k8s.io';

export const CHANNEL = { stdin: 0, stdout: 1, stderr: 2, status: 3, close: 255 } as const;

/** What the API server says about the end of a command. */
export interface ExecStatus {
  readonly exitCode: number;
}

export type Frame =
  | { readonly kind: 'Stdout' | 'Stderr' | 'Status'; readonly bytes: Uint8Array }
  | { readonly kind: 'Closed'; readonly channel: number }
  /** A channel that a server may use and that carries nothing for us. */
  | { readonly kind: 'Ignored' };

/** A view on `message`, no copy. Throws `ExecError` Protocol on what version 5 does not know. */
export function readFrame(message: Uint8Array): Frame {
  const channel = message[0];
  const bytes = message.subarray(1);
  switch (channel) {
    case undefined:
      return { kind: 'Ignored' };
    case CHANNEL.stdout:
      return { kind: 'Stdout', bytes };
    case CHANNEL.stderr:
      return { kind: 'Stderr', bytes };
    case CHANNEL.status:
      return { kind: 'Status', bytes };
    case CHANNEL.stdin:
      return { kind: 'Ignored' };
    case CHANNEL.close: {
      const closed = bytes[0];
      if (closed === undefined || bytes.length !== 1) {
        throw new ExecError(
          'Protocol',
          `exec: the server sent a CLOSE message of ${message.length} bytes; 2 are due`,
        );
      }
      return { kind: 'Closed', channel: closed };
    }
    default:
      throw new ExecError(
        'Protocol',
        `exec: the server sent a message on channel ${channel}, which ${EXEC_PROTOCOL} does not have`,
      );
  }
}

/** One message of standard input; copies, since the channel byte must stand before the bytes in one frame. */
export function stdinFrame(bytes: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(bytes.length + 1);
  frame[0] = CHANNEL.stdin;
  frame.set(bytes, 1);
  return frame;
}

export function closeFrame(channel: number): Buffer {
  return Buffer.from([CHANNEL.close, channel]);
}

const statusShape = z.object({
  status: z.enum(['Success', 'Failure']),
  message: z.string().optional(),
  reason: z.string().optional(),
  code: z.number().optional(),
  details: z
    .object({
      causes: z.array(z.object({ reason: z.string().optional(), message: z.string().optional() })).optional(),
    })
    .optional(),
});

/** `metav1.Status`, as far as exec uses it. */
export type KubeStatus = z.infer<typeof statusShape>;

/** Undefined when the text is no `metav1.Status`. */
export function parseKubeStatus(text: string): KubeStatus | undefined {
  try {
    return statusShape.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

/** The exit code that a status carries; throws `ExecError` when it tells of a failure that is none of the command's. */
export function exitStatus(status: KubeStatus, where: string): ExecStatus {
  if (status.status === 'Success') return { exitCode: 0 };
  const cause = status.details?.causes?.find(({ reason }) => reason === 'ExitCode');
  if (status.reason === 'NonZeroExitCode' && cause !== undefined) {
    const exitCode = Number(cause.message);
    if (Number.isInteger(exitCode) && exitCode >= 0) return { exitCode };
    throw new ExecError(
      'Protocol',
      `exec in ${where}: the status has the exit code "${cause.message}", which is no number`,
    );
  }
  throw refusal(status, where);
}

/** The error that a failed `metav1.Status` means, before or after the upgrade. */
export function refusal(status: KubeStatus, where: string, httpStatus?: number): ExecError {
  const message = status.message ?? status.reason ?? 'no reason given';
  const code = httpStatus ?? status.code;
  return new ExecError(
    failureOf(status, message, httpStatus),
    `exec in ${where}: ${message}`,
    code === undefined ? {} : { status: code },
  );
}

function failureOf(status: KubeStatus, message: string, httpStatus: number | undefined): ExecError['reason'] {
  const code = httpStatus ?? status.code;
  if (code === 401 || code === 403 || status.reason === 'Forbidden' || status.reason === 'Unauthorized')
    return 'Forbidden';
  // The kubelet and the container runtime report these as internal errors with nothing but their text.
  if (
    /completed pod|container not found|container .* (is )?not running|not in running state|is not created or running|pod .* is not running|cannot exec in a (stopped|deleted) state|does not have a host assigned|container .*CONTAINER_EXITED/i.test(
      message,
    )
  ) {
    return 'NotRunning';
  }
  if (
    code === 404 ||
    status.reason === 'NotFound' ||
    /container \S+ is not valid for pod|unable to upgrade connection: pod (does not exist|not found)/i.test(
      message,
    )
  ) {
    return 'NotFound';
  }
  if (/OCI runtime exec failed|failed to (start|create) exec|executable file not found/i.test(message))
    return 'NotStarted';
  // Without an HTTP status it came after the upgrade, when the command may have begun.
  return httpStatus === undefined ? 'Broken' : 'Refused';
}
