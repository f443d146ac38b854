import { expect, it } from 'vitest';
import { SKIP_REASONS } from '../../../src/bridge/decide/reasons.ts';
import { read } from '../sources.ts';
import { CASES, decisionsOn, ROUTING_PAGE, routingPage } from './page.ts';

it('the routing page is what the code decides now', () => {
  expect(read(ROUTING_PAGE), 'stale: npm run generate').toBe(routingPage());
});

it('the routing page shows an event for every reason', () => {
  const shown = CASES.flatMap(decisionsOn).flatMap((decision) => {
    if (decision.kind === 'Skip') return [decision.reason];
    return decision.kind === 'Answer' && decision.skip !== undefined ? [decision.skip.reason] : [];
  });
  expect(Object.keys(SKIP_REASONS).filter((reason) => !shown.some((one) => one === reason))).toEqual([]);
});
