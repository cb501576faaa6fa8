// The decision about each element of a list, and its rewriting, for both encodings.
import type { Version } from "../../resource-version.ts";
import type {
  ByteFilter,
  Emit,
  ItemMeta,
  Keep,
  ListCounts,
  ListFilter,
  ListPart,
  ObjectType,
  ReadOptions,
  Rewrite,
} from "./types.ts";

export interface ListFilterOptions extends ReadOptions {
  /** Bound of one item, default 16 MiB. A larger item is `CODEC_TOO_LARGE`. */
  readonly maxItemBytes?: number | undefined;
  /** Protobuf only: how many kept bytes to hold for an exact length before filler is used; default 4 MiB. */
  readonly maxHeldBytes?: number | undefined;
  readonly rewrite?: Rewrite | undefined;
  /** For a filter that only rewrites: unreadable elements pass unchanged, and `remainingItemCount` stays. */
  readonly keepsAll?: boolean | undefined;
  /** Called once, before `end` returns, with the list's version; undefined if none can be compared. */
  readonly onVersion?: ((version: Version | undefined) => void) | undefined;
  /** Called with the list's kind and with its apiVersion when they are read, perhaps after the elements. */
  readonly onType?: ((part: Partial<ObjectType>) => void) | undefined;
  /** JSON only: `items` comes after the array's opening bracket, `tail` before its closing bracket. */
  readonly onPart?: ((part: "items" | "tail") => void) | undefined;
  /** The list's `metadata.shardInfo` is left out: it repeats the request's shard selector. */
  readonly cutShardInfo?: boolean | undefined;
}

export class ElementFilter implements ListCounts {
  kept = 0;
  dropped = 0;
  readonly keepsAll: boolean;
  readonly #keep: Keep;
  readonly #rewrite: Rewrite | undefined;

  constructor(keep: Keep, { rewrite, keepsAll = false }: ListFilterOptions) {
    this.#keep = keep;
    this.#rewrite = rewrite;
    this.keepsAll = keepsAll;
  }

  /** Counts the element and decides whether to keep it. Unreadable elements stay only with `keepsAll`. */
  admit(meta: ItemMeta | undefined): boolean {
    const isKept = meta === undefined ? this.keepsAll : this.#keep(meta);
    if (isKept) this.kept++;
    else this.dropped++;
    return isKept;
  }

  /** The new bytes of a kept element; undefined if it stays as it is. */
  rewritten(bytes: Buffer, start: number, end: number, meta: ItemMeta | undefined, part: ListPart): Uint8Array | undefined {
    if (this.#rewrite === undefined || meta === undefined) return undefined;
    const element = bytes.subarray(start, end);
    const written = this.#rewrite(element, meta, part);
    return written === element ? undefined : written;
  }
}

/** Throws its first error at every later call: it could read the middle of an object as an object. */
export class FailOnceFilter implements ListFilter {
  readonly counts: ListCounts;
  readonly #body: ByteFilter;
  #failure: { readonly error: unknown } | undefined;

  constructor(counts: ListCounts, body: ByteFilter) {
    this.counts = counts;
    this.#body = body;
  }

  get heldBytes(): number {
    return this.#body.heldBytes;
  }

  push(chunk: Uint8Array, emit: Emit): void {
    this.#run(chunk, emit);
  }

  end(emit: Emit): void {
    this.#run(undefined, emit);
  }

  #run(chunk: Uint8Array | undefined, emit: Emit): void {
    if (this.#failure !== undefined) throw this.#failure.error;
    try {
      if (chunk === undefined) this.#body.end(emit);
      else this.#body.push(chunk, emit);
    } catch (error) {
      this.#failure = { error };
      throw error;
    }
  }
}
