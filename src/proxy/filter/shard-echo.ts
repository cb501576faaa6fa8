// Whether an API server has taken notice of a shard selector, by the head of the list that it answers: `metadata.shardInfo`
// echoes the selector. Only lists of built-in types carry it (seen on kube-apiserver 1.36: lists of custom resources, Tables
// and PartialObjectMetadata are filtered as well, without a word), so a head that cannot be judged says nothing. A hint for
// speed only: an object that imitates an echo changes nothing of what is shown. Called by narrow.
import { asBuffer, type Encoding } from "../../kube/codec/types.ts";
import type { ByteSource } from "../http/byte-stream.ts";

export type Echo = "honoured" | "ignored" | "unknown";

/** What stands before the items is short: a resourceVersion, a token, a count; then the echo begins. */
export const ECHO_HEAD_BYTES = 2 * 1024;

/** Reads the head of a list, which may be the whole of it. */
export function readEcho(encoding: Encoding, head: Uint8Array): Echo {
  const text = asBuffer(head).toString("latin1", 0, Math.min(head.length, ECHO_HEAD_BYTES));
  return encoding === "json" ? readJsonEcho(text) : readProtobufEcho(text);
}

// Go writes a built-in list in the order of its type's fields, so that the metadata stand before the items.
function readJsonEcho(text: string): Echo {
  const items = text.search(/"(items|rows)":\s*\[/);
  const before = items < 0 ? text : text.slice(0, items);
  if (before.includes('"shardInfo"')) return "honoured";
  const isBuiltIn = items >= 0 && /"metadata":\s*\{/.test(before);
  return isBuiltIn && !/"kind":\s*"(Table|PartialObjectMetadataList)"/.test(before) ? "ignored" : "unknown";
}

// The type, then the ListMeta, whose last field is the echo.
function readProtobufEcho(text: string): Echo {
  if (text.includes("shardRange(")) return "honoured";
  return text.includes("PartialObjectMetadataList") ? "unknown" : "ignored";
}

/** The source; `onHead` is called once with its first bytes, once there are so many or no more. */
export function withHead(source: ByteSource, bytes: number, onHead: (head: Uint8Array) => void): ByteSource {
  const chunks: Uint8Array[] = [];
  let length = 0;
  let isOver = false;
  const finish = () => {
    if (isOver) return;
    isOver = true;
    onHead(chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks));
    chunks.length = 0;
  };
  return {
    cancel: (error) => source.cancel(error),
    open: (sink) =>
      source.open({
        write(chunk) {
          if (!isOver) {
            chunks.push(chunk);
            length += chunk.length;
            if (length >= bytes) finish();
          }
          return sink.write(chunk);
        },
        end() {
          finish();
          sink.end();
        },
        abort: (error) => sink.abort(error),
      }),
  };
}
