/** Price of a line in cents, volume discount included. */
export function linePrice({ unitCents, quantity }) {
  const discount = quantity > 10 ? 0.1 : 0;
  return Math.round(unitCents * quantity * (1 - discount));
}

/** Total of a cart in cents; a voucher takes a fixed amount off, never below zero. */
export function total(lines, voucherCents = 0) {
  const sum = lines.reduce((before, line) => before + linePrice(line), 0);
  return Math.max(0, sum - voucherCents);
}
