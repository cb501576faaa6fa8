// Turns text from outside into one line of bounded length, which is safe for a message, a condition or a log.

/** Enough for a problem that names a field and two namespaces. */
const MAX_TEXT_CHARS = 512;
const MAX_TEXTS = 10;

/**
 * Replaces each control or line-breaking character by a space.
 * @param maxChars in UTF-16 units; a longer text is cut, and then ends in "…"
 */
export function plainText(text: string, maxChars = MAX_TEXT_CHARS): string {
  // The text is cut first, so that only the result is searched.
  const cut = text.length > maxChars ? `${text.slice(0, maxChars - 1).toWellFormed()}…` : text.toWellFormed();
  return cut.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, " ");
}

/** Texts that a pod or a user wrote: the first ones, each as plain text, and how many more there are. */
export function plainTexts(texts: readonly string[]): string[] {
  const more = texts.length - MAX_TEXTS;
  const shown = texts.slice(0, MAX_TEXTS).map((text) => plainText(text));
  return more > 0 ? [...shown, `and ${more} more`] : shown;
}
