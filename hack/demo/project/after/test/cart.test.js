import assert from 'node:assert/strict';
import { linePrice, total } from '../src/cart.js';

export const cases = {
  'a line costs its unit price times its quantity': () => {
    assert.equal(linePrice({ unitCents: 250, quantity: 4 }), 1000);
  },
  'ten of a kind get the volume discount': () => {
    assert.equal(linePrice({ unitCents: 250, quantity: 10 }), 2250);
  },
  'a cart adds its lines up': () => {
    assert.equal(
      total([
        { unitCents: 100, quantity: 1 },
        { unitCents: 200, quantity: 2 },
      ]),
      500,
    );
  },
  'a voucher never makes the shop pay': () => {
    assert.equal(total([{ unitCents: 100, quantity: 1 }], 500), 0);
  },
};
