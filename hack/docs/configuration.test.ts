import { expect, it } from 'vitest';
import { CONFIGURATION_PAGE, configurationPage } from './configuration.ts';
import { tableRows } from './markdown.ts';
import { read } from './sources.ts';

it('the page of the configuration keys is committed as it is generated', () => {
  expect(read(CONFIGURATION_PAGE)).toBe(configurationPage());
});

it('it tells of every key what it is and what it does', () => {
  const rows = tableRows(configurationPage());
  expect(rows.length).toBeGreaterThan(50);
  expect(rows.filter(([key, type, , what]) => !key || !type || !what).map(([key]) => key)).toEqual([]);
});

it('it tells every key once', () => {
  const keys = tableRows(configurationPage()).map(([key]) => key);
  expect(keys.filter((key, index) => keys.indexOf(key) !== index)).toEqual([]);
});
