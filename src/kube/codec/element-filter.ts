// Which elements of a list pass, and as what: what the filters of both encodings do with an element once it has been read.
import type { ItemMeta, Keep, ListPart, ReadOptions, Rewrite } from "./types.ts";

export interface ListFilterOptions extends ReadOptions {
  /** Upper bound of one item in bytes; default 16 MiB. More is `CODEC_TOO_LARGE`. */
  readonly maxItemBytes?: number | undefined;
  /** Protobuf only: how many kept bytes to hold for an exact length before filler is used; default 4 MiB. */
  readonly maxHeldBytes?: number | undefined;
  /** What kept elements become; the default leaves them. */
  readonly rewrite?: Rewrite | undefined;
  /** Nothing is left out, for a filter that only rewrites: what cannot be read passes as it is, and the count stays. */
  readonly keepsAll?: boolean | undefined;
}

export class ElementFilter {
  kept = 0;
  /** Foreign elements and those that could not be read. */
  dropped = 0;
  /** Nothing is left out. */
  readonly keepsAll: boolean;
  readonly #keep: Keep;
  readonly #rewrite: Rewrite | undefined;

  constructor(keep: Keep, { rewrite, keepsAll = false }: ListFilterOptions) {
    this.#keep = keep;
    this.#rewrite = rewrite;
    this.keepsAll = keepsAll;
  }

  /** Counts the element. False if it is left out, as one without readable metadata is. */
  passes(meta: ItemMeta | undefined): boolean {
    const passes = meta === undefined ? this.keepsAll : this.#keep(meta);
    if (passes) this.kept++;
    else this.dropped++;
    return passes;
  }

  /** What goes out for a kept element; undefined if it goes as it is. */
  rewritten(bytes: Buffer, start: number, end: number, meta: ItemMeta | undefined, part: ListPart): Uint8Array | undefined {
    if (this.#rewrite === undefined || meta === undefined) return undefined;
    const element = bytes.subarray(start, end);
    const written = this.#rewrite(element, meta, part);
    return written === element ? undefined : written;
  }
}
