// Makes text from outside safe for a message, a condition or a log: one line, with a bound. Pure.

/** Replaces each control or line-breaking character by a space, and cuts the text to `maxChars` UTF-16 units. */
export function plainText(text: string, maxChars: number): string {
  // Cut first: the rest need not be searched.
  return text
    .slice(0, maxChars)
    .toWellFormed()
    .replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, " ");
}
