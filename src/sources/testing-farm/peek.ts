/** The first bytes of a body, and the body with them: as it was, to be read once. */
export async function peek(body: AsyncIterable<Uint8Array>): Promise<{
  readonly start: Uint8Array;
  readonly body: AsyncGenerator<Uint8Array>;
}> {
  const chunks = body[Symbol.asyncIterator]();
  const first = await chunks.next();
  async function* whole(): AsyncGenerator<Uint8Array> {
    try {
      for (let next = first; next.done !== true; next = await chunks.next()) yield next.value;
    } finally {
      await chunks.return?.();
    }
  }
  return { start: first.done === true ? new Uint8Array() : first.value, body: whole() };
}
