import type { ToolOutput } from '../agent/tools/port.ts';
import { HttpError } from '../http/client.ts';

/**
 * Text of any length as it comes, in constant memory. When it breaks off, what has come is kept and the answer says
 * what is missing; when nothing comes, it says what that means.
 */
export function textStream(
  body: AsyncIterable<Uint8Array>,
  options: {
    /** With its dot. */
    readonly suffix: string;
    /** As messages call it: `log`. */
    readonly what: string;
    /** A sentence; left out: nothing is said of it. */
    readonly whenEmpty?: string;
  },
): Extract<ToolOutput, { kind: 'Stream' }> {
  const { suffix, what, whenEmpty } = options;
  let missing: string | undefined;
  async function* chunks(): AsyncGenerator<Uint8Array> {
    let bytes = 0;
    try {
      for await (const chunk of body) {
        bytes += chunk.length;
        yield chunk;
      }
      if (bytes === 0) missing = whenEmpty;
    } catch (error) {
      if (!(error instanceof HttpError)) throw error;
      missing = `The ${what} broke off after ${bytes} bytes (${error.message}); the rest is missing.`;
    }
  }
  return { kind: 'Stream', chunks: chunks(), suffix, binary: false, incomplete: () => missing };
}
