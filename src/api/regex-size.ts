// How large a regular expression in RE2 syntax becomes once its repetitions are written out: about what compiling it costs, and cheap to
// know. Pure. Invariant: never far below the truth, whatever the text; for odd texts it may be far above. Called before any compilation.

/**
 * Quoted text, what has braces of its own, escapes, classes of characters, repetitions; then each other character. What is not closed is
 * taken to the end, which RE2 refuses: else each of many open brackets would be followed to the end in vain.
 */
const TOKEN =
  /\\Q[\s\S]*?(?:\\E|$)|\\[pPx]\{[^}]*(?:\}|$)|\\[pP]?[\s\S]|\[\^?\]?(?:\[:\^?\w+:\]|\\[\s\S]|[^\]\\])*(?:\]|\\?$)|\{(?<least>\d+)(?:,(?<most>\d*))?\}|[\s\S]/gu;
const FOLDS_CASE = /\(\?[A-Za-z-]*i/;
/** What a class that is looked up in Unicode's tables costs, in plain characters; and one in which cases have to be folded. */
const TABLE_SIZE = 50;
const FOLDED_SIZE = 1_000;

/** About how many plain characters compile as slowly. */
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
      group.sum++; // and the last stays the last: (a*){1000}
    } else {
      group.last = sizeOf(token, perOdd);
      group.sum += group.last;
    }
  }
  return outer.reduce((sum, group) => sum + group.sum, group.sum);
}

function sizeOf(token: string, perOdd: number): number {
  if (token.length === 1 || token.startsWith("\\Q")) return token.length;
  // Beyond ASCII a range may hold thousands of characters; so does what an escape stands for.
  const odd = token.match(/[^\0-\x7f]|\\[pPx]/gu)?.length ?? 0;
  return token.length + odd * perOdd;
}
