// Estimates the cost of compiling an RE2 expression: its size with repetitions expanded. Pure. Invariant: the
// time is linear in the text; the estimate is never far too low, but for unusual texts it can be far too
// high. Called before any compilation.

/**
 * Quoted text, escapes with braces, other escapes, character classes, repetitions; then any other character.
 * A part that is not closed extends to the end (RE2 refuses it): otherwise each of many open brackets would
 * cause a search to the end.
 */
const TOKEN =
  /\\Q[\s\S]*?(?:\\E|$)|\\[pPx]\{[^}]*(?:\}|$)|\\[pP]?[\s\S]|\[\^?\]?(?:\[:\^?\w+:\]|\\[\s\S]|[^\]\\])*(?:\]|\\?$)|\{(?<least>\d+)(?:,(?<most>\d*))?\}|[\s\S]/gu;
const FOLDS_CASE = /\(\?[A-Za-z-]*i/;
/** The cost of a character from Unicode tables, in plain characters; and with case folding. */
const TABLE_SIZE = 50;
const FOLDED_SIZE = 1_000;

/** The approximate number of plain characters that take as long to compile. */
export function regexSize(pattern: string): number {
  const perOdd = FOLDS_CASE.test(pattern) ? FOLDED_SIZE : TABLE_SIZE;
  const outer: { sum: number; last: number }[] = [];
  let group = { sum: 1, last: 0 };
  for (const { 0: token, groups } of pattern.matchAll(TOKEN)) {
    if (groups?.least !== undefined) {
      const times = Math.max(1, Number(groups.least) + (groups.most === "" ? 1 : 0), Number(groups.most ?? 0));
      group.sum += group.last * (times - 1) + 1;
      group.last *= times;
    } else if (token === "(") {
      outer.push(group);
      group = { sum: 1, last: 0 };
    } else if (token === ")") {
      const last = group.sum + 1;
      const around = outer.pop() ?? { sum: 0, last: 0 };
      group = { sum: around.sum + last, last };
    } else if (token === "*" || token === "+" || token === "?") {
      group.sum++; // the last part stays: (a*){1000}
    } else {
      group.last = sizeOf(token, perOdd);
      group.sum += group.last;
    }
  }
  return outer.reduce((sum, group) => sum + group.sum, group.sum);
}

function sizeOf(token: string, perOdd: number): number {
  if (token.length === 1 || token.startsWith("\\Q")) return token.length;
  // Beyond ASCII a range or an escape can stand for thousands of characters.
  const odd = token.match(/[^\0-\x7f]|\\[pPx]/gu)?.length ?? 0;
  return token.length + odd * perOdd;
}
