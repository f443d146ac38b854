/** What a question shows, as a model would read it. */

/** Text of a titled block, without its fence; undefined: the question has none. */
export function shownBlock(user: string, title: string): string | undefined {
  const start = user.indexOf(`## ${title}\n\n`);
  if (start < 0) return undefined;
  const [fence = '', ...lines] = user.slice(start + title.length + 5).split('\n');
  const end = lines.indexOf(fence);
  return end < 0 ? undefined : `${lines.slice(0, end).join('\n')}\n`;
}

export interface ShownScalar {
  readonly path: string;
  readonly key: string;
  readonly value: string;
}

/** The inventory as it is shown; empty without lever 1, where files stand as they are. */
export function shownScalars(user: string): readonly ShownScalar[] {
  let path = '';
  return (shownBlock(user, 'Inventory') ?? '').split('\n').flatMap((line): readonly ShownScalar[] => {
    const file = /^FILE (\S+) -- editable scalars/.exec(line)?.[1];
    if (file !== undefined) path = file;
    const [, key, value = ''] = /^ {2}(\S+) = ?(.*)$/.exec(line) ?? [];
    return path === '' || key === undefined ? [] : [{ path, key, value }];
  });
}
