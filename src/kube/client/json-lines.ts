// Newline-delimited JSON from chunks of bytes, as the API server frames its watches. The chunk boundaries do
// not change the values, not even inside a multi-byte character. Used by watch.ts.
import { MeshError } from "../../base/errors.ts";

const NEWLINE = 0x0a;
/** An etcd value is at most a few MB. A longer line is not a watch event. */
const MAX_LINE_BYTES = 32 * 1024 * 1024;

/**
 * The values of the complete lines of each chunk.
 * @throws MeshError `WATCH_TRUNCATED` if the stream ends inside a line, `WATCH_MALFORMED` for a line that is
 * not JSON or is too
 *   long
 */
export async function* parseJsonLines(
  chunks: AsyncIterable<Uint8Array>,
  maxLineBytes = MAX_LINE_BYTES,
): AsyncGenerator<unknown[]> {
  let pending: Uint8Array[] = [];
  let pendingBytes = 0;
  for await (const chunk of chunks) {
    const values: unknown[] = [];
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      const line = Buffer.concat([...pending, chunk.subarray(start, end)]);
      pending = [];
      pendingBytes = 0;
      start = end + 1;
      if (!isBlank(line)) values.push(parseLine(line));
    }
    if (start < chunk.length) {
      pending.push(chunk.subarray(start));
      pendingBytes += chunk.length - start;
    }
    if (pendingBytes > maxLineBytes)
      throw new MeshError("WATCH_MALFORMED", `reading a watch: a line is over ${maxLineBytes} bytes`);
    if (values.length > 0) yield values;
  }
  if (!isBlank(Buffer.concat(pending))) throw new MeshError("WATCH_TRUNCATED", "reading a watch: it ended inside an event");
}

function isBlank(line: Buffer): boolean {
  return line.every((byte) => byte === 0x20 || byte === 0x0d || byte === 0x09);
}

function parseLine(line: Buffer): unknown {
  try {
    return JSON.parse(line.toString("utf8"));
  } catch (cause) {
    throw new MeshError("WATCH_MALFORMED", "reading a watch: a line is not JSON", { cause });
  }
}
