// Turns a whole list into watch events, one for each kept object, as if all of them came or went. The bytes of an object stay; a
// built-in object gets the type that it lacks inside a list. Pure; called by the proxy when it continues a watch for its client.
import { parseResourceVersion } from "../resource-version.ts";
import { keyName } from "./json-string.ts";
import { forEachMember, goToMember, readText, walkerAt } from "./json-text.ts";
import { createListFilter } from "./list-filter.ts";
import { isListType, type ObjectType } from "./object-type.ts";
import { encodeEnvelope, readEnvelope } from "./protobuf-envelope.ts";
import { encodeProtobufFrame } from "./protobuf-frame.ts";
import { BYTES, encodeBytes, encodeString, fieldsOf } from "./protobuf-wire.ts";
import { asBuffer, codecError, type Encoding, type Keep } from "./types.ts";
import type { WatchEventType } from "./watch-event.ts";

const KIND = keyName("kind");
const API_VERSION = keyName("apiVersion");
const METADATA = keyName("metadata");
const RESOURCE_VERSION = keyName("resourceVersion");
const LIST_META = 1;
const LIST_RESOURCE_VERSION = 2; // of ListMeta
const OBJECT_META = 1;
const OBJECT_RESOURCE_VERSION = 6; // of ObjectMeta

/** The type and resourceVersion of a list. */
interface ListHead {
  readonly type: ObjectType;
  readonly resourceVersion: string | undefined;
}

/** An object of a list as a watch event. */
export interface ListEvent {
  /** The object's. */
  readonly version: bigint;
  readonly frame: Uint8Array;
}

/**
 * The kept objects as events, in the order of the list.
 * @param body a whole list at `version`; a Table, or a list of objects of several kinds, is not accepted
 * @throws MeshError `CODEC_MALFORMED` (also for a list of another version), `CODEC_TRUNCATED`, `CODEC_TOO_LARGE`,
 *   `CODEC_NOT_A_LIST`
 */
export function listEvents(
  encoding: Encoding,
  eventType: "ADDED" | "DELETED",
  body: Uint8Array,
  version: bigint,
  keep: Keep,
): ListEvent[] {
  const bytes = asBuffer(body);
  const head = headOf(encoding, bytes);
  const type = itemType(head.type);
  if (parseResourceVersion(head.resourceVersion) !== version) throw malformed("its version is not the requested one");
  const events: ListEvent[] = [];
  const filter = createListFilter(encoding, keep, {
    versions: true,
    rewrite(element, meta, part) {
      if (part === "row") throw codecError("CODEC_NOT_A_LIST", "reading a list: it is a Table");
      const of = parseResourceVersion(meta.resourceVersion);
      if (of === undefined || of > version) throw malformed("an object has no version, or a later one than the list");
      const isJson = encoding === "json";
      const frame = isJson
        ? jsonFrame(eventType, asBuffer(element), type)
        : encodeProtobufFrame(eventType, encodeEnvelope(type, element));
      events.push({ version: of, frame });
      return element;
    },
  });
  const ignore = () => undefined;
  filter.push(bytes, ignore);
  filter.end(ignore);
  return events;
}

/** A bookmark of the version, in the type of the list's items. @throws MeshError `CODEC_*` */
export function bookmarkFrame(encoding: Encoding, list: Uint8Array, version: bigint): Uint8Array {
  const resourceVersion = String(version);
  const { kind, apiVersion } = itemType(headOf(encoding, list).type);
  if (encoding === "json") {
    const object = { kind, apiVersion, metadata: { resourceVersion, creationTimestamp: null } };
    return Buffer.from(`${JSON.stringify({ type: "BOOKMARK", object })}\n`);
  }
  const metadata = encodeString(OBJECT_RESOURCE_VERSION, resourceVersion);
  return encodeProtobufFrame("BOOKMARK", encodeEnvelope({ kind, apiVersion }, encodeBytes(OBJECT_META, metadata)));
}

function headOf(encoding: Encoding, body: Uint8Array): ListHead {
  return encoding === "json" ? jsonHead(asBuffer(body)) : protobufHead(asBuffer(body));
}

// PodList => Pod
function itemType(type: ObjectType): ObjectType {
  const kind = type.kind.slice(0, -"List".length);
  if (!isListType(type) || kind === "" || type.apiVersion === "")
    throw codecError("CODEC_NOT_A_LIST", `reading a list: its kind is ${JSON.stringify(type.kind)}`);
  return { apiVersion: type.apiVersion, kind };
}

function jsonFrame(eventType: WatchEventType, element: Buffer, { kind, apiVersion }: ObjectType): Uint8Array {
  const own = jsonHead(element).type;
  const isTyped = own.kind !== "" && own.apiVersion !== "";
  if (!isTyped && own.kind + own.apiVersion !== "") throw malformed("an object has only a kind or only an apiVersion");
  const type = isTyped ? "" : `"kind":${JSON.stringify(kind)},"apiVersion":${JSON.stringify(apiVersion)},`;
  const rest = element.subarray(element.indexOf("{") + 1);
  return Buffer.concat([Buffer.from(`{"type":"${eventType}","object":{${type}`), rest, Buffer.from("}\n")]);
}

function jsonHead(bytes: Buffer): ListHead {
  const walker = walkerAt(bytes);
  const texts = new Map<string, string>();
  const isObject = forEachMember(walker, () => {
    for (const name of [KIND, API_VERSION, METADATA]) {
      if (walker.matches(name) !== "exact") continue;
      if (texts.has(name.text)) throw malformed(`the key ${name.text} occurs twice`);
      texts.set(name.text, (name === METADATA ? versionOf(bytes, walker.valueStart) : readText(walker)) ?? "");
      return;
    }
  });
  if (!isObject) throw codecError("CODEC_NOT_A_LIST", "reading a list: it is not a JSON object");
  const type = { kind: texts.get("kind") ?? "", apiVersion: texts.get("apiVersion") ?? "" };
  return { type, resourceVersion: texts.get("metadata") };
}

function versionOf(bytes: Buffer, metadataStart: number): string | undefined {
  const walker = walkerAt(bytes, metadataStart);
  return goToMember(walker, RESOURCE_VERSION) ? readText(walker) : undefined;
}

function protobufHead(bytes: Buffer): ListHead {
  const { type, raw } = readEnvelope(bytes);
  let resourceVersion: string | undefined;
  for (const field of fieldsOf(raw)) {
    if (field.number !== LIST_META || field.wireType !== BYTES) continue;
    for (const inner of fieldsOf(field.value())) {
      if (inner.number === LIST_RESOURCE_VERSION && inner.wireType === BYTES) resourceVersion = inner.value().toString("latin1");
    }
  }
  return { type, resourceVersion };
}

function malformed(what: string): Error {
  return codecError("CODEC_MALFORMED", `reading a list: ${what}`);
}
