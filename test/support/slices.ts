// Decodes a response to find the part that a subset should receive: lists and watches in every encoding, as elements with their namespace
// and original bytes. It shares no code with src.
import { bytesOf, decode, decodeList } from "./kube-protobuf.ts";

/** An item, a row or an event. */
export interface Element {
  readonly namespace: string;
  readonly name: string;
  /** ADDED, MODIFIED, ...; "" in a list. */
  readonly type: string;
  /** The resourceVersion. */
  readonly version: string;
  /** The bytes of the element as Latin-1; for a Table only its rows. */
  readonly bytes: string;
  /** True for the bookmark that ends the initial events. */
  readonly initialEnd?: boolean;
}

export interface List {
  readonly elements: readonly Element[];
  /** The answer without its elements. */
  readonly frame: string;
  readonly resourceVersion: string;
  readonly continue: string;
  readonly remaining: boolean;
}

interface Meta {
  readonly namespace?: string;
  readonly name?: string;
  readonly resourceVersion?: string;
  readonly continue?: string;
  readonly remainingItemCount?: number;
  readonly annotations?: Readonly<Record<string, string>>;
}

/** Splits a list. */
export function readList(contentType: string, body: Buffer): List {
  return contentType.includes("protobuf") ? readProtobufList(body) : readJsonList(body.toString("latin1"));
}

/** Reads one object. */
export function readObject(contentType: string, body: Buffer): Element {
  if (!contentType.includes("protobuf")) return jsonElement("", body.toString("latin1"));
  const object = bytesOf(decode(body.subarray(4)), 2) ?? Buffer.alloc(0);
  return protobufElement("", object, object);
}

/** Splits a watch. An incomplete end is left out. */
export function readWatch(contentType: string, body: Buffer): Element[] {
  return contentType.includes("protobuf") ? readProtobufWatch(body) : readJsonWatch(body.toString("latin1"));
}

function readJsonList(body: string): List {
  // The bytes of the API server for an empty PartialObjectMetadataList.
  const text = body.replace(/"items":null}\n$/, '"items":[]}\n');
  const list = JSON.parse(text) as { metadata: Meta; items?: unknown; rows?: unknown };
  const key = list.rows === undefined ? "items" : "rows";
  const start = text.search(new RegExp(`"${key}": ?\\[`));
  const open = text.indexOf("[", start);
  const { parts, end } = splitArray(text, open);
  const { resourceVersion = "", continue: token = "", remainingItemCount } = list.metadata;
  return {
    elements: parts.map((bytes) => jsonElement("", bytes)),
    frame: text.slice(0, open + 1) + text.slice(end),
    resourceVersion,
    continue: token,
    remaining: remainingItemCount !== undefined,
  };
}

/** The elements of the array that opens at `open`, and where it closes. */
function splitArray(text: string, open: number): { parts: string[]; end: number } {
  const parts: string[] = [];
  let depth = 0;
  let start = open + 1;
  for (let at = open; ; at++) {
    const char = text[at];
    if (char === undefined) throw new RangeError("the array does not end");
    if (char === '"') {
      for (at++; text[at] !== '"'; at++) if (text[at] === "\\") at++;
    } else if (char === "[" || char === "{") depth++;
    else if (char === "]" || char === "}") {
      depth--;
      if (depth === 0) return { parts: [...parts, text.slice(start, at).trim()].filter((part) => part !== ""), end: at };
    } else if (char === "," && depth === 1) {
      parts.push(text.slice(start, at).trim());
      start = at + 1;
    }
  }
}

function jsonElement(type: string, bytes: string): Element {
  const value = JSON.parse(Buffer.from(bytes, "latin1").toString("utf8")) as {
    metadata?: Meta;
    object?: { metadata?: Meta };
    kind?: string;
    rows?: readonly { object?: { metadata?: Meta } }[];
  };
  const meta = value.rows?.[0]?.object?.metadata ?? value.metadata ?? value.object?.metadata ?? {};
  const { namespace = "", name = "", resourceVersion: version = "", annotations } = meta;
  // A row has its object's age.
  return {
    namespace,
    name,
    type,
    version,
    bytes: bytes.replace(/^({"cells":\[.*?)"\d+[smhd0-9]*"/, '$1"AGE"'),
    initialEnd: annotations?.["k8s.io/initial-events-end"] === "true",
  };
}

function readJsonWatch(text: string): Element[] {
  return text
    .split("\n")
    .slice(0, -1)
    .filter((line) => line !== "")
    .flatMap((line) => {
      const { type, object } = JSON.parse(Buffer.from(line, "latin1").toString("utf8")) as {
        type: string;
        object: { kind: string };
      };
      const at = line.indexOf('"object":') + '"object":'.length;
      const bytes = line.slice(at, line.lastIndexOf("}"));
      if (object.kind !== "Table") return [jsonElement(type, bytes)];
      const { parts } = splitArray(bytes, bytes.indexOf("[", bytes.indexOf('"rows"')));
      // Only the first Table has the columns, so it is sent even without rows.
      if (type === "BOOKMARK") return parts.map((row) => jsonElement(type, row));
      return parts.map((row) => jsonElement(type, row));
    });
}

function readProtobufList(body: Buffer): List {
  const { items, meta } = decodeList(body);
  const text = (number: number) => bytesOf(meta, number)?.toString() ?? "";
  return {
    elements: items.map((item) => protobufElement("", item, item)),
    frame: "",
    resourceVersion: text(2),
    continue: text(3),
    remaining: meta.some(({ number }) => number === 4),
  };
}

function protobufElement(type: string, object: Buffer, bytes: Buffer): Element {
  const meta = decode(bytesOf(decode(object), 1) ?? Buffer.alloc(0));
  const text = (number: number) => bytesOf(meta, number)?.toString() ?? "";
  const initialEnd = bytes.includes("k8s.io/initial-events-end");
  return { name: text(1), namespace: text(3), version: text(6), type, bytes: bytes.toString("latin1"), initialEnd };
}

function readProtobufWatch(body: Buffer): Element[] {
  const elements: Element[] = [];
  for (let at = 0; at + 4 <= body.length; ) {
    const length = body.readUInt32BE(at);
    if (at + 4 + length > body.length) break;
    const event = decode(body.subarray(at + 4, at + 4 + length));
    const raw = bytesOf(decode(bytesOf(event, 2) ?? Buffer.alloc(0)), 1) ?? Buffer.alloc(0);
    const object = bytesOf(decode(raw.subarray(4)), 2) ?? Buffer.alloc(0);
    elements.push(protobufElement(bytesOf(event, 1)?.toString() ?? "", object, raw));
    at += 4 + length;
  }
  return elements;
}
