/**
 * How lists are paged. `offset`: all headers, totals left out over 10,000 rows. `no-link`: `x-page`,
 * `x-per-page` and `x-next-page` only. `keyset`: nothing but a Link with a cursor.
 */
export type PagingStyle = 'offset' | 'no-link' | 'keyset';

const TOTALS_UP_TO = 10_000;
const MAX_PER_PAGE = 100;

export interface Page {
  readonly rows: readonly unknown[];
  readonly headers: Readonly<Record<string, string>>;
}

export function cutPage(rows: readonly unknown[], url: URL, style: PagingStyle): Page {
  const perPage = Math.min(MAX_PER_PAGE, Math.max(1, Number(url.searchParams.get('per_page') ?? 20)));
  if (style === 'keyset') return keysetPage(rows, url, perPage);
  const page = Math.max(1, Number(url.searchParams.get('page') ?? 1));
  const start = (page - 1) * perPage;
  const more = start + perPage < rows.length;
  const pages = Math.ceil(rows.length / perPage);
  const headers: Record<string, string> = {
    'x-page': String(page),
    'x-per-page': String(perPage),
    'x-next-page': more ? String(page + 1) : '',
  };
  if (style === 'offset') {
    const totals = rows.length <= TOTALS_UP_TO;
    headers['x-prev-page'] = page > 1 ? String(page - 1) : '';
    if (totals) Object.assign(headers, { 'x-total': String(rows.length), 'x-total-pages': String(pages) });
    const link = (rel: string, number: number) => {
      const target = new URL(url);
      target.searchParams.set('page', String(number));
      target.searchParams.set('per_page', String(perPage));
      return `<${target.href}>; rel="${rel}"`;
    };
    headers['link'] = [
      ...(page > 1 ? [link('prev', page - 1)] : []),
      ...(more ? [link('next', page + 1)] : []),
      link('first', 1),
      ...(totals ? [link('last', Math.max(1, pages))] : []),
    ].join(', ');
  }
  return { rows: rows.slice(start, start + perPage), headers };
}

function keysetPage(rows: readonly unknown[], url: URL, perPage: number): Page {
  const cursor = url.searchParams.get('cursor');
  const start = cursor === null ? 0 : Number(Buffer.from(cursor, 'base64url').toString());
  const next = start + perPage;
  if (next >= rows.length) return { rows: rows.slice(start), headers: {} };
  const target = new URL(url);
  target.searchParams.set('cursor', Buffer.from(String(next)).toString('base64url'));
  return { rows: rows.slice(start, next), headers: { link: `<${target.href}>; rel="next"` } };
}
