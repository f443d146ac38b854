import { describe, expect, it } from 'vitest';
import { conformanceTable, summaries } from './conformance.ts';
import { Report } from './tally.ts';

const reportOf = (...assertionResults: readonly object[]) =>
  Report.parse({
    ...{ numPassedTests: 0, numFailedTests: 0, numPendingTests: 0 },
    testResults: [{ name: 'file', status: 'passed', assertionResults }],
  });
const test = (backend: string, status: string, ...methods: readonly string[]) => ({
  ...{ status, fullName: 'name' },
  meta: { conformance: { backend, methods } },
});

describe('the table of conformance', () => {
  it('counts, for each backend and method, the tests that called it and those that passed', () => {
    const pods = reportOf(test('pod', 'passed', 'exec', 'readFile'), test('pod', 'failed', 'exec'));
    const podman = reportOf(test('podman', 'passed', 'exec'), { status: 'passed', fullName: 'another' });
    expect(conformanceTable([podman, pods])).toBe(
      ['sandbox  exec  readFile', 'podman   1/1   -', 'pod      1/2   1/1'].join('\n'),
    );
  });

  it('leaves skipped tests out, and is empty when none ran', () => {
    expect(conformanceTable([reportOf(test('pod', 'skipped', 'exec'))])).toBe('');
  });
});

it('what tests say of their results is said once', () => {
  const told = { status: 'passed', fullName: 'scale', meta: { summary: '0 violations' } };
  expect(summaries([reportOf(told), reportOf(told)])).toEqual(['0 violations']);
});
