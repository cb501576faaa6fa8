// Makes the filter for a list response. Called by the proxy's stream layer once the response's content type is known.
import { JsonListFilter } from "./json-list-filter.ts";
import { ProtobufListFilter } from "./protobuf-list-filter.ts";
import type { ByteFilter, Emit, Encoding, Keep, Rewrite } from "./types.ts";

export interface ListFilterOptions {
  /** Upper bound of one item in bytes; default 16 MiB. More is `CODEC_TOO_LARGE`. */
  readonly maxItemBytes?: number;
  /** Protobuf only: how many kept bytes to hold for an exact length before filler is used; default 4 MiB. */
  readonly maxHeldBytes?: number;
  /** What kept elements become; the default leaves them. */
  readonly rewrite?: Rewrite;
}

/**
 * A filter over one list response. Kept items pass byte for byte, or as they are rewritten; foreign ones and those without readable metadata are left
 * out; `remainingItemCount` goes where something may have been left out. A Status passes as it is.
 * @throws MeshError (by push and end) `CODEC_MALFORMED`, `CODEC_TRUNCATED`, `CODEC_TOO_LARGE`, `CODEC_NOT_A_LIST`
 */
export function createListFilter(encoding: Encoding, keep: Keep, options: ListFilterOptions = {}): ByteFilter {
  return new FailOnceFilter(encoding === "json" ? new JsonListFilter(keep, options) : new ProtobufListFilter(keep, options));
}

// After an error the state machine inside may not go on: it could take the middle of an object for an object.
class FailOnceFilter implements ByteFilter {
  readonly #filter: ByteFilter;
  #failure: { readonly error: unknown } | undefined;

  constructor(filter: ByteFilter) {
    this.#filter = filter;
  }

  get dropped(): number {
    return this.#filter.dropped;
  }

  get kept(): number {
    return this.#filter.kept;
  }

  push(chunk: Uint8Array, emit: Emit): void {
    this.#run(() => this.#filter.push(chunk, emit));
  }

  end(emit: Emit): void {
    this.#run(() => this.#filter.end(emit));
  }

  #run(step: () => void): void {
    if (this.#failure !== undefined) throw this.#failure.error;
    try {
      step();
    } catch (error) {
      this.#failure = { error };
      throw error;
    }
  }
}
