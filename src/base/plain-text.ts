// Text from elsewhere as it may stand in a message, a condition or a log: one line, bounded. Pure.

/** Without control and line-breaking characters, each of which becomes a space, and at most `maxChars` UTF-16 units long. */
export function plainText(text: string, maxChars: number): string {
  // Cut first: what is cut off need not be looked at.
  return text
    .slice(0, maxChars)
    .toWellFormed()
    .replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, " ");
}
