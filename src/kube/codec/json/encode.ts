// Encodes Statuses and watch frames in JSON.
import type { Status } from "../../status.ts";
import { asBuffer } from "../base/bytes.ts";
import { codecError, INITIAL_EVENTS_END, type ObjectType, type WatchEventType } from "../base/types.ts";
import { keyName } from "./string.ts";
import { textIn } from "./text.ts";

const KIND = keyName("kind");
const API_VERSION = keyName("apiVersion");
const METADATA_FIRST = Buffer.from('{"metadata":');
const END = Buffer.from("}\n");

export function encodeStatus(status: Status): Uint8Array {
  return encodeLine(status);
}

export function encodeErrorFrame(status: Status): Uint8Array {
  return encodeLine({ type: "ERROR", object: status });
}

export function readStatusMessage(body: Uint8Array): string {
  return String(JSON.parse(asBuffer(body).toString("utf8")).message ?? "");
}

export function encodeBookmark({ kind, apiVersion }: ObjectType, resourceVersion: string, isInitialEnd: boolean): Uint8Array {
  const annotations = isInitialEnd ? { annotations: { [INITIAL_EVENTS_END]: "true" } } : {};
  const metadata = { resourceVersion, ...annotations };
  return encodeLine({ type: "BOOKMARK", object: { kind, apiVersion, metadata } });
}

function encodeLine(value: unknown): Buffer {
  return Buffer.from(`${JSON.stringify(value)}\n`);
}

/** Keeps the bytes of an element, and adds `itemType` if the element has no type, as built-in objects do. */
export function createFrameEncoder(eventType: WatchEventType, itemType: () => ObjectType): (element: Uint8Array) => Uint8Array {
  const typed = `{"type":"${eventType}","object":{`;
  let untyped: string | undefined;
  return (bytes) => {
    const element = asBuffer(bytes);
    const { kind, apiVersion } = typeOf(element);
    const isTyped = kind !== "" && apiVersion !== "";
    if (!isTyped && kind + apiVersion !== "")
      throw codecError("CODEC_MALFORMED", "reading a list: an object has only a kind or only an apiVersion");
    if (!isTyped) untyped ??= `${typed}${typeText(itemType())}`;
    const rest = element.subarray(element.indexOf("{") + 1);
    return Buffer.concat([Buffer.from(isTyped ? typed : (untyped ?? "")), rest, END]);
  };
}

function typeText({ kind, apiVersion }: ObjectType): string {
  return `"kind":${JSON.stringify(kind)},"apiVersion":${JSON.stringify(apiVersion)},`;
}

// API servers write the type of an object before its metadata.
function typeOf(element: Buffer): ObjectType {
  if (METADATA_FIRST.equals(element.subarray(0, METADATA_FIRST.length))) return { kind: "", apiVersion: "" };
  return { kind: textIn(element, 0, KIND) ?? "", apiVersion: textIn(element, 0, API_VERSION) ?? "" };
}
