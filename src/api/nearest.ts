// Finds the known word nearest to a misspelt one, by Levenshtein distance. Pure.

/** No known word is longer. A comparison costs the product of the lengths, and any user may send a word. */
const MAX_LETTERS = 64;

/** The nearest known word, if at most a third of the letters differ; else one that contains it, or a part. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  if (word.length > MAX_LETTERS) return undefined;
  const limit = Math.max(1, Math.ceil(word.length / 3));
  let best: string | undefined;
  let bestDistance = limit + 1;
  for (const candidate of known) {
    if (candidate === word || Math.abs(candidate.length - word.length) >= bestDistance) continue;
    const distance = editDistance(word.toLowerCase(), candidate.toLowerCase(), bestDistance);
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best ?? known.find((candidate) => isPart(word, candidate) || isPart(candidate, word));
}

/** Shorter parts are found in too many words. */
const LEAST_PART = 5;

function isPart(part: string, whole: string): boolean {
  return part.length >= LEAST_PART && part.length < whole.length && whole.toLowerCase().includes(part.toLowerCase());
}

/** `; did you mean "x"?`, or "" if no word is near. */
export function didYouMean(word: string, known: readonly string[]): string {
  const candidate = nearest(word, known);
  return candidate === undefined ? "" : `; did you mean ${JSON.stringify(candidate)}?`;
}

/** Levenshtein distance, or `max` if it is larger. */
function editDistance(a: string, b: string, max: number): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = cell(row, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, cell(row, j) + 1, cell(next, j - 1) + 1));
    }
    if (Math.min(...next) >= max) return max;
    row = next;
  }
  return cell(row, b.length);
}

function cell(row: readonly number[], index: number): number {
  return row[index] ?? Number.POSITIVE_INFINITY;
}
