// The contracts of the codecs: pure code that reads as little as possible of Kubernetes' wire formats and hands on the
// original bytes. Invariant: what cannot be read with certainty is dropped or refused, never passed. Called by the proxy.
import { MeshError } from "../../base/errors.ts";

/** The wire formats whose objects can be told apart without decoding them. */
export type Encoding = "json" | "protobuf";

/** What the filter reads of an object. "" stands for a field that is not there. */
export interface ItemMeta {
  readonly namespace: string;
  readonly name: string;
  /** Only where the reader was asked for labels; has no prototype, so that a label `constructor` is only there if it is set. */
  readonly labels?: Readonly<Record<string, string>>;
  /** Only where the reader was asked for versions. */
  readonly resourceVersion?: string;
}

/** What a reader reads besides namespace and name; nothing of it costs anything unless it is asked for. */
export interface ReadOptions {
  /** Fills `ItemMeta.labels`. An object whose labels readers could read differently is then not readable. */
  readonly labels?: boolean | undefined;
  /** Fills `ItemMeta.resourceVersion`. */
  readonly versions?: boolean | undefined;
}

/** True for an object that the client may see. Asked once an object; must not throw. */
export type Keep = (meta: ItemMeta) => boolean;

/**
 * What goes out for a kept element of a list, which is an item or a Table's row; the same array leaves it as it is. In protobuf
 * an element may only become shorter, and by two bytes at least.
 */
export type Rewrite = (element: Uint8Array, meta: ItemMeta, part: ListPart) => Uint8Array;
export type ListPart = "item" | "row";

/** Takes bytes that go to the client. The codec never writes into a slice again that it has emitted. */
export type Emit = (slice: Uint8Array) => void;

/**
 * A push transformer over one response body, which may be split at any byte. Both methods throw MeshError `CODEC_*`; after
 * the first error the filter throws that error for ever.
 */
export interface ByteFilter {
  push(chunk: Uint8Array, emit: Emit): void;
  /** Emits what is held. Throws `CODEC_TRUNCATED` when the document is not complete. */
  end(emit: Emit): void;
  /** Objects taken out so far: foreign ones and those that could not be read. */
  readonly dropped: number;
  readonly kept: number;
}

/** Default bound of one list item and of one watch frame in bytes; etcd's own limit for an object is about 1.5 MiB. */
export const DEFAULT_MAX_BYTES = 16 * 1024 * 1024;

/**
 * - `CODEC_MALFORMED` the bytes are not what their content type says
 * - `CODEC_TRUNCATED` the bytes end inside the document
 * - `CODEC_TOO_LARGE` one item, frame or header is over its bound
 * - `CODEC_NOT_A_LIST` a whole, readable document that is neither a list nor a Status
 * - `CODEC_AMBIGUOUS` an object to be renamed that has the same key twice or in another case
 */
export type CodecErrorCode = "CODEC_MALFORMED" | "CODEC_TRUNCATED" | "CODEC_TOO_LARGE" | "CODEC_NOT_A_LIST" | "CODEC_AMBIGUOUS";

/** A MeshError whose code is one of the codec's. */
export function codecError(code: CodecErrorCode, message: string, options?: ErrorOptions): MeshError {
  return new MeshError(code, message, options);
}

/** True for what `codecError` makes. */
export function isCodecError(thrown: unknown): thrown is MeshError {
  return thrown instanceof MeshError && thrown.code.startsWith("CODEC_");
}

/** The bytes as a Buffer over the same memory: its slice decoders are fast, and one class keeps the hot loops monomorphic. */
export function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** An empty map whose keys may have any name. */
export function noLabels(): Record<string, string> {
  return Object.create(null) as Record<string, string>;
}
