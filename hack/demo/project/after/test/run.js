import { cases } from './cart.test.js';

let failed = 0;
for (const [name, run] of Object.entries(cases)) {
  try {
    run();
    console.log(`\u001b[32mPASS\u001b[0m ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`\u001b[31mFAIL\u001b[0m ${name}`);
    console.log(String(error.stack).replaceAll(/^/gm, '     '));
  }
}
console.log(`${Object.keys(cases).length} tests, ${failed} of them red`);
process.exit(failed === 0 ? 0 : 1);
