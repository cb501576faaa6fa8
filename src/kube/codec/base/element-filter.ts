// The common part of the list filters of both encodings: whether an element passes, and in which form.
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
  /** Upper bound of one item in bytes; the default is 16 MiB. A larger item is `CODEC_TOO_LARGE`. */
  readonly maxItemBytes?: number | undefined;
  /** Protobuf only: how many kept bytes to hold for an exact length before filler is used; default 4 MiB. */
  readonly maxHeldBytes?: number | undefined;
  readonly rewrite?: Rewrite | undefined;
  /** For a filter that only rewrites: unreadable elements pass unchanged, and `remainingItemCount` stays. */
  readonly keepsAll?: boolean | undefined;
  /** Called once, before `end` returns, with the list's version; undefined if none can be compared. */
  readonly onVersion?: ((version: Version | undefined) => void) | undefined;
  /** Called with the list's kind and its apiVersion where they stand, which may be behind the elements. */
  readonly onType?: ((part: Partial<ObjectType>) => void) | undefined;
  /** JSON only: called before the elements with their commas are emitted, and before the rest is. */
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

  /** Counts the element. False if it is left out. Without readable metadata only `keepsAll` lets it pass. */
  passes(meta: ItemMeta | undefined): boolean {
    const passes = meta === undefined ? this.keepsAll : this.#keep(meta);
    if (passes) this.kept++;
    else this.dropped++;
    return passes;
  }

  /** The new bytes of a kept element; undefined if it stays as it is. */
  rewritten(bytes: Buffer, start: number, end: number, meta: ItemMeta | undefined, part: ListPart): Uint8Array | undefined {
    if (this.#rewrite === undefined || meta === undefined) return undefined;
    const element = bytes.subarray(start, end);
    const written = this.#rewrite(element, meta, part);
    return written === element ? undefined : written;
  }
}

/** After an error it must not continue, since it could read the middle of an object as an object. */
export class FailOnceFilter implements ListFilter {
  readonly counts: ListCounts;
  readonly #body: ByteFilter;
  #failure: { readonly error: unknown } | undefined;

  constructor(counts: ListCounts, body: ByteFilter) {
    this.counts = counts;
    this.#body = body;
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
