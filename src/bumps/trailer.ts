/** Whether one of the message's lines, after the first, is this trailer. */
export const hasTrailer = (message: string, trailer: string): boolean =>
  message
    .split(/\r?\n/)
    .slice(1)
    .some((line) => line.trim() === trailer.trim());
