// Turns text from outside into one line of bounded length, which is safe for a message, a condition or a log. Pure.

/** Replaces each control or line-breaking character by a space, and cuts the text to `maxChars` UTF-16 units. */
export function plainText(text: string, maxChars: number): string {
  // The text is cut first, so that only the result is searched.
  return text
    .slice(0, maxChars)
    .toWellFormed()
    .replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, " ");
}
