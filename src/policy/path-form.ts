// The one form of a path in which rules and requests are compared, so that no spelling (escaped letters,
// doubled slashes, a final slash) leads around a rule. Pure. Invariant: the form of a form is the same form.

/** Longer than any part of a rule (src/api), also if each of its bytes is escaped. */
const MAX_PART_LENGTH = 3 * 3 * 2_048;
/** Escaped, these mean something else than plain. */
const KEPT_IN_PATH = "%/";
const KEPT_IN_QUERY = "%&=+";
const SPELLED = /%|[^\x21-\x7e]/;
const ALL_SPELLED = /%[0-9a-f]{2}|%|[^\x21-\x7e]/gi;

/** How a server may read a path: an escaped slash (%2F) is a letter for some, and divides segments for others. */
export type Reading = "letter" | "divides";

/** Each match is what divides segments, or else one segment, as its group. */
const PARTS: Readonly<Record<Reading, RegExp>> = {
  letter: /\/+|([^/]+)/g,
  divides: /(?:\/|%2f)+|((?:[^/%]|%(?!2f))+)/gi,
};

/** A rule about the path in either reading is meant. */
export function readingsOf(path: string): readonly Reading[] {
  return /%2f/i.test(path) ? ["letter", "divides"] : ["letter"];
}

/** The segments without empty ones. They are read one by one: a reader stops at the first that no rule has. */
export function* segmentsOf(path: string, reading: Reading = "letter"): Iterable<string> {
  for (const [, segment] of path.matchAll(PARTS[reading])) if (segment !== undefined) yield plain(segment, KEPT_IN_PATH);
}

/** The form as a text, without a final slash. Only its beginning if it is longer than `maxLength`. */
export function pathForm(path: string, maxLength = Number.POSITIVE_INFINITY, reading: Reading = "letter"): string {
  let form = "";
  for (const segment of segmentsOf(path, reading)) {
    form += `/${segment}`;
    if (form.length > maxLength) break;
  }
  return form === "" ? "/" : form;
}

/** @param query with its question mark; "" for none */
export function queryForm(query: string): string {
  return plain(query, KEPT_IN_QUERY);
}

/** The text of a rule as the bytes that a request has for it, one for each character. */
export function bytesOf(text: string): string {
  return Buffer.from(text, "utf8").toString("latin1");
}

/** Printable ASCII is plain, and all else is escaped in upper case. */
function plain(text: string, kept: string): string {
  if (text.length > MAX_PART_LENGTH || !SPELLED.test(text)) return text;
  return text.replaceAll(ALL_SPELLED, (found) => {
    const code = found.length === 3 ? Number.parseInt(found.slice(1), 16) : found.charCodeAt(0);
    const char = String.fromCharCode(code);
    const isPlain = code > 0x20 && code < 0x7f && !kept.includes(char);
    return isPlain ? char : `%${code.toString(16).toUpperCase().padStart(2, "0")}`;
  });
}
