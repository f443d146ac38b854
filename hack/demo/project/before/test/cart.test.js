import assert from 'node:assert/strict';
import { linePrice, total } from '../src/cart.js';

export const cases = {
  'a line costs its unit price times its quantity': () => {
    assert.equal(linePrice({ unitPrice: 2.5, quantity: 4 }), 10);
  },
  'ten of a kind get the volume discount': () => {
    assert.equal(linePrice({ unitPrice: 2.5, quantity: 10 }), 22.5);
  },
  'a cart adds its lines up': () => {
    assert.equal(
      total([
        { unitPrice: 1, quantity: 1 },
        { unitPrice: 2, quantity: 2 },
      ]),
      5,
    );
  },
  'a voucher never makes the shop pay': () => {
    assert.equal(total([{ unitPrice: 1, quantity: 1 }], 5), 0);
  },
};
