/** A line of a stream was longer than its bound. */
export class LineTooLongError extends Error {
  override readonly name = 'LineTooLongError';
}

/**
 * Splits UTF-8 bytes at newlines, whatever the chunks' borders. Empty lines are dropped, a last line without a
 * newline is yielded. Holds at most one line: throws LineTooLongError when one exceeds `maxBytes`.
 */
export async function* splitLines(
  chunks: AsyncIterable<Uint8Array>,
  maxBytes: number,
): AsyncGenerator<string, void, void> {
  let held: Uint8Array[] = [];
  let heldBytes = 0;
  const hold = (bytes: Uint8Array) => {
    heldBytes += bytes.byteLength;
    if (heldBytes > maxBytes) throw new LineTooLongError(`a line exceeds ${maxBytes} bytes`);
    if (bytes.byteLength > 0) held.push(bytes);
  };
  const take = () => {
    const line = Buffer.concat(held).toString('utf8').trim();
    held = [];
    heldBytes = 0;
    return line;
  };
  for await (const chunk of chunks) {
    let from = 0;
    for (let newline = chunk.indexOf(10); newline !== -1; newline = chunk.indexOf(10, from)) {
      hold(chunk.subarray(from, newline));
      from = newline + 1;
      const line = take();
      if (line !== '') yield line;
    }
    hold(chunk.subarray(from));
  }
  const last = take();
  if (last !== '') yield last;
}
