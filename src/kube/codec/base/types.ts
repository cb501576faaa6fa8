// The types of the codecs' input and output, and their errors.
import { MeshError } from "../../../base/errors.ts";
import type { Version } from "../../resource-version.ts";

/** The wire formats whose objects the filter can find without decoding them. */
export type Encoding = "json" | "protobuf";

/** "" stands for a missing field. */
export interface ItemMeta {
  readonly namespace: string;
  readonly name: string;
  /** Present if labels were requested. Without a prototype, so that `constructor` is a label like any. */
  readonly labels?: Readonly<Record<string, string>>;
  readonly resourceVersion?: string;
}

/** The fields to read in addition to namespace and name. Each option costs time only if it is set. */
export interface ReadOptions {
  /** Fills `ItemMeta.labels`. An object is then unreadable if two readers may read its labels differently. */
  readonly labels?: boolean | undefined;
  readonly versions?: boolean | undefined;
}

/** True for an object that the client may see. Called once for each object. Its errors end the filter. */
export type Keep = (meta: ItemMeta) => boolean;

/** The new bytes of a kept element, or the same array. A protobuf element may only lose two bytes or more. */
export type Rewrite = (element: Uint8Array, meta: ItemMeta, part: ListPart) => Uint8Array;
/** What an element is: an item of a list, or a row of a Table. */
export type ListPart = "item" | "row";

/** Takes bytes that go to the client. The codec never writes again into a slice that it has emitted. */
export type Emit = (slice: Uint8Array) => void;

/** Transforms one response body, which may be split at any byte. Both methods throw MeshError `CODEC_*`. */
export interface ByteFilter {
  push(chunk: Uint8Array, emit: Emit): void;
  /** Emits the remaining bytes. Throws `CODEC_TRUNCATED` when the document is not complete. */
  end(emit: Emit): void;
  /** The memory for bytes that have come and may be needed again. */
  readonly heldBytes: number;
}

/** Leaves objects out of one list. After the first error it always throws that error. */
export interface ListFilter extends ByteFilter {
  readonly counts: ListCounts;
}

/** How many objects a filter has let pass, and how many it has left out: foreign and unreadable ones. */
export interface ListCounts {
  readonly kept: number;
  readonly dropped: number;
}

/** Joins lists that differ only in their items into one list. */
export interface ListJoiner {
  /**
   * The filter for the next list. Its `end` comes before the next call of `next`.
   * @throws MeshError (by push and end) as `createListFilter`; `CODEC_MALFORMED` for a list that differs in
   * more than its items
   */
  next(keep: Keep): ListFilter;
  end(emit: Emit): void;
}

const WATCH_EVENT_TYPES = ["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"] as const;

/** The types that client-go knows. It ends the watch at any other type. */
export type WatchEventType = (typeof WATCH_EVENT_TYPES)[number];

export function isWatchEventType(text: string | undefined): text is WatchEventType {
  return WATCH_EVENT_TYPES.some((type) => type === text);
}

export interface WatchFrame {
  readonly type: WatchEventType;
  /** The objects with readable metadata: at most one, unless the event has a Table. None for ERROR. */
  readonly objects: readonly ItemMeta[];
  /** The number of other objects. An event with one must not pass whole, unless it is a BOOKMARK. */
  readonly unreadable: number;
  /** The event has a metav1.Table in JSON, whose rows `filterTableFrame` can drop one by one. */
  readonly isTable: boolean;
}

/** Cuts a watch stream into frames. It must not be used after an error. */
export interface FrameSplitter {
  /** A frame is one whole watch event: a JSON document and a newline, or a 4-byte length and a message. */
  push(chunk: Uint8Array, onFrame: (frame: Uint8Array) => void): void;
  /** True if the splitter has no part of an event, so the stream may end. */
  readonly atBoundary: boolean;
  /** The memory for the bytes of an event that is not whole yet. */
  readonly heldBytes: number;
}

/** Default bound of a list item and of a watch frame. etcd's limit for an object is about 1.5 MiB. */
export const DEFAULT_MAX_BYTES = 16 * 1024 * 1024;

/**
 * - `CODEC_MALFORMED` the bytes do not match their content type
 * - `CODEC_TRUNCATED` the bytes end inside the document
 * - `CODEC_TOO_LARGE` one item, frame or header exceeds its bound
 * - `CODEC_NOT_A_LIST` a complete, readable document that is neither a list nor a Status
 * - `CODEC_AMBIGUOUS` an object to be renamed has the same key twice or in another case
 */
type CodecErrorCode = "CODEC_MALFORMED" | "CODEC_TRUNCATED" | "CODEC_TOO_LARGE" | "CODEC_NOT_A_LIST" | "CODEC_AMBIGUOUS";

export function codecError(code: CodecErrorCode, message: string): MeshError {
  return new MeshError(code, message);
}

export function isCodecError(thrown: unknown): thrown is MeshError {
  return thrown instanceof MeshError && thrown.code.startsWith("CODEC_");
}

export interface ListMeta {
  /** Undefined if the version cannot be compared. */
  readonly version: Version | undefined;
  /** The list is a page, and others follow. */
  readonly continues: boolean;
  /** Objects on the pages that follow; undefined if the API server does not say so. */
  readonly remaining: number | undefined;
}

/** https://kubernetes.io/docs/reference/using-api/api-concepts/#streaming-lists */
export const INITIAL_EVENTS_END = "k8s.io/initial-events-end";

/** An empty map whose keys may have any name. */
export function noLabels(): Record<string, string> {
  return Object.create(null) as Record<string, string>;
}

/** runtime.TypeMeta. "" stands for a missing field. */
export interface ObjectType {
  readonly apiVersion: string;
  readonly kind: string;
}

export function isStatusType({ apiVersion, kind }: ObjectType): boolean {
  return kind === "Status" && apiVersion === "v1";
}

/** metav1.Table, the form that kubectl prints. */
export function isTableType({ apiVersion, kind }: ObjectType): boolean {
  return kind === "Table" && apiVersion.startsWith("meta.k8s.io/");
}

// The generic List has RawExtensions. Items of the two metrics lists have another field in ObjectMeta's
// place.
const LISTS_WITHOUT_METADATA: ReadonlySet<string> = new Set(["List", "MetricValueList", "ExternalMetricValueList"]);

/** True for a list of objects with an ObjectMeta each. */
export function isListType({ kind }: ObjectType): boolean {
  return kind.endsWith("List") && !LISTS_WITHOUT_METADATA.has(kind);
}

/** `metadata.name` equal to `from` becomes `to`. */
export interface Rename {
  readonly from: string;
  readonly to: string;
  /** Added after the quoted name in the message of a Status. */
  readonly note?: string;
}

export function renameName(name: string, { from, to }: Rename): string {
  return name === from ? to : name;
}

/** The message with the quoted name replaced. API servers quote names, as in `leases "x" not found`. */
export function renameInMessage(message: string, { from, to, note = "" }: Rename): string {
  return message.replaceAll(`"${from}"`, () => `"${to}"${note}`);
}
