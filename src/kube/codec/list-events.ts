// Turns a list into watch events, one for each kept object, as if all of them came or went. The bytes of an
// object stay; a built-in object gets the type that it lacks inside a list. Pure; called by the proxy when it
// continues a watch for its client, and through event-joiner.ts when a watch begins with what there is.
import { parseResourceVersion } from "../resource-version.ts";
import { isListType, type ObjectType } from "./base/object-type.ts";
import { asBuffer, codecError, type Emit, type Encoding, type Keep } from "./base/types.ts";
import type { WatchEventType } from "./base/watch-event.ts";
import { type KeyName, keyName } from "./json/string.ts";
import { goToMember, readText, walkerAt } from "./json/text.ts";
import { createListFilter } from "./list-filter.ts";
import { encodeEnvelope } from "./protobuf/envelope.ts";
import { createFrameEncoder, encodeProtobufFrame } from "./protobuf/frame.ts";
import { encodeBytes, encodeString } from "./protobuf/wire.ts";

const KIND = keyName("kind");
const API_VERSION = keyName("apiVersion");
const METADATA_FIRST = Buffer.from('{"metadata":');
const END = Buffer.from("}\n");
const OBJECT_META = 1;
// Of ObjectMeta.
const RESOURCE_VERSION = 6;
const ANNOTATIONS = 12;
/** https://kubernetes.io/docs/reference/using-api/api-concepts/#streaming-lists */
const INITIAL_EVENTS_END = "k8s.io/initial-events-end";

/** An object of a list as a watch event. */
export interface ListEvent {
  /** The object's. */
  readonly version: bigint;
  readonly frame: Uint8Array;
}

export interface EventReader {
  push(chunk: Uint8Array): void;
  /** The list is complete. Returns the type of its items. */
  end(): ObjectType;
  readonly kept: number;
  readonly dropped: number;
}

/**
 * Reads a list at `version` as it arrives. Both methods throw MeshError `CODEC_MALFORMED` (also for a list of
 * another version), `CODEC_TRUNCATED`, `CODEC_TOO_LARGE`, `CODEC_NOT_A_LIST` (also for a Table, or a list of
 * objects of several kinds).
 * @param onEvent called with the kept objects in the order of the list
 */
export function createEventReader(
  encoding: Encoding,
  eventType: "ADDED" | "DELETED",
  version: bigint,
  keep: Keep,
  onEvent: (event: ListEvent) => void,
): EventReader {
  let listType: Partial<ObjectType> = {};
  let frameOf: ((element: Uint8Array) => Uint8Array) | undefined;
  const filter = createListFilter(encoding, keep, {
    versions: true,
    // Nothing of the list itself is wanted.
    maxHeldBytes: 0,
    onType(part) {
      for (const key of Object.keys(part)) if (key in listType) throw malformed(`the key ${key} occurs twice`);
      listType = { ...listType, ...part };
    },
    onVersion(of) {
      if (parseResourceVersion(of) !== version) throw malformed("its version is not the requested one");
    },
    rewrite(element, meta, part) {
      if (part === "row") throw codecError("CODEC_NOT_A_LIST", "reading a list: it is a Table");
      const of = parseResourceVersion(meta.resourceVersion);
      if (of === undefined || of > version) throw malformed("an object has no version, or a later one than the list");
      frameOf ??=
        encoding === "json" ? createJsonEncoder(eventType, listType) : createFrameEncoder(eventType, itemType(listType));
      onEvent({ version: of, frame: frameOf(element) });
      return element;
    },
  });
  const ignore: Emit = () => undefined;
  return {
    push: (chunk) => filter.push(chunk, ignore),
    end() {
      filter.end(ignore);
      return itemType(listType);
    },
    get kept() {
      return filter.kept;
    },
    get dropped() {
      return filter.dropped;
    },
  };
}

/**
 * The kept objects of a whole list at `version`, and the type of its items.
 * @throws MeshError as `createEventReader`
 */
export function listEvents(
  encoding: Encoding,
  eventType: "ADDED" | "DELETED",
  body: Uint8Array,
  version: bigint,
  keep: Keep,
): { readonly events: readonly ListEvent[]; readonly type: ObjectType } {
  const events: ListEvent[] = [];
  const reader = createEventReader(encoding, eventType, version, keep, (event) => events.push(event));
  reader.push(body);
  return { events, type: reader.end() };
}

/** @param isInitialEnd it says that the initial events are over */
export function bookmarkFrame(
  encoding: Encoding,
  { kind, apiVersion }: ObjectType,
  version: bigint,
  { isInitialEnd = false }: { readonly isInitialEnd?: boolean } = {},
): Uint8Array {
  const resourceVersion = String(version);
  if (encoding === "json") {
    const metadata = { resourceVersion, ...(isInitialEnd ? { annotations: { [INITIAL_EVENTS_END]: "true" } } : {}) };
    return Buffer.from(`${JSON.stringify({ type: "BOOKMARK", object: { kind, apiVersion, metadata } })}\n`);
  }
  const annotation = Buffer.concat([encodeString(1, INITIAL_EVENTS_END), encodeString(2, "true")]);
  const annotations = isInitialEnd ? encodeBytes(ANNOTATIONS, annotation) : Buffer.alloc(0);
  const metadata = Buffer.concat([encodeString(RESOURCE_VERSION, resourceVersion), annotations]);
  return encodeProtobufFrame("BOOKMARK", encodeEnvelope({ kind, apiVersion }, encodeBytes(OBJECT_META, metadata)));
}

// PodList => Pod
function itemType({ kind: listKind = "", apiVersion = "" }: Partial<ObjectType>): ObjectType {
  const kind = listKind.slice(0, -"List".length);
  if (!isListType({ kind: listKind, apiVersion }) || kind === "" || apiVersion === "")
    throw codecError("CODEC_NOT_A_LIST", `reading a list: its kind is ${JSON.stringify(listKind)}`);
  return { apiVersion, kind };
}

// Lists of custom resources name their type behind the items, which have a type each.
function createJsonEncoder(eventType: WatchEventType, listType: Partial<ObjectType>): (element: Uint8Array) => Uint8Array {
  const typed = `{"type":"${eventType}","object":{`;
  let untyped: string | undefined;
  return (bytes) => {
    const element = asBuffer(bytes);
    const { kind, apiVersion } = ownType(element);
    const isTyped = kind !== "" && apiVersion !== "";
    if (!isTyped && kind + apiVersion !== "") throw malformed("an object has only a kind or only an apiVersion");
    if (!isTyped) untyped ??= `${typed}${typeText(listType)}`;
    const rest = element.subarray(element.indexOf("{") + 1);
    return Buffer.concat([Buffer.from(isTyped ? typed : (untyped ?? "")), rest, END]);
  };
}

function typeText(listType: Partial<ObjectType>): string {
  const { kind, apiVersion } = itemType(listType);
  return `"kind":${JSON.stringify(kind)},"apiVersion":${JSON.stringify(apiVersion)},`;
}

// API servers write the type of an object before its metadata. If one did not, the object's own type would be
// read, which is the last one.
function ownType(element: Buffer): ObjectType {
  if (METADATA_FIRST.equals(element.subarray(0, METADATA_FIRST.length))) return { kind: "", apiVersion: "" };
  const textOf = (name: KeyName) => {
    const walker = walkerAt(element);
    return goToMember(walker, name) ? (readText(walker) ?? "") : "";
  };
  return { kind: textOf(KIND), apiVersion: textOf(API_VERSION) };
}

function malformed(what: string): Error {
  return codecError("CODEC_MALFORMED", `reading a list: ${what}`);
}
