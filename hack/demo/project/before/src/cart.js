/** Price of a line in euros, volume discount included. */
export function linePrice({ unitPrice, quantity }) {
  const discount = quantity >= 10 ? 0.1 : 0;
  return unitPrice * quantity * (1 - discount);
}

/** Total of a cart in euros; a voucher takes a fixed amount off, never below zero. */
export function total(lines, voucher = 0) {
  const sum = lines.reduce((before, line) => before + linePrice(line), 0);
  return Math.max(0, sum - voucher);
}
