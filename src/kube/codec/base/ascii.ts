// Compares bytes with text without making a string of the bytes. Used by the readers of both encodings.

/** True if these bytes are the characters of `text`, all of them ASCII. */
export function equalsAscii(bytes: Uint8Array, start: number, end: number, text: string): boolean {
  if (end - start !== text.length) return false;
  for (let index = 0; index < text.length; index++) {
    const byte = bytes[start + index] as number;
    if (byte !== text.charCodeAt(index) || byte >= 0x80) return false;
  }
  return true;
}
