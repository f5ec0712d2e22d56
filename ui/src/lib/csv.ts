// csv - rows as comma-separated values (RFC 4180).
//
// A cell that a spreadsheet would calculate gets an apostrophe: text of a peer is
// not a formula. Numbers stay numbers.

const FORMULA = /^[=+\-@\t\r]/;
const NUMBER = /^[+-]?\d+([.,]\d+)*(e[+-]?\d+)?%?$/i;

function cell(text: string): string {
  const safe = FORMULA.test(text) && !NUMBER.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

export function toCsv(rows: string[][]): string {
  return rows.map((r) => `${r.map(cell).join(',')}\r\n`).join('');
}
