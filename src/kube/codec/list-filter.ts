// Creates the filter for a list response. Called by the proxy's filters once the content type of the response is known.
import { ElementFilter, type ListFilterOptions } from "./element-filter.ts";
import { JsonListFilter } from "./json-list-filter.ts";
import { ProtobufListFilter } from "./protobuf-list-filter.ts";
import type { ByteFilter, Emit, Encoding, Keep } from "./types.ts";

export type { ListFilterOptions } from "./element-filter.ts";

/**
 * A filter for one list response. Kept items pass byte for byte, or rewritten. Items of other subsets and items without readable
 * metadata are left out, and so is `remainingItemCount` when an item may be left out. A Status passes unchanged.
 * @throws MeshError (by push and end) `CODEC_MALFORMED`, `CODEC_TRUNCATED`, `CODEC_TOO_LARGE`, `CODEC_NOT_A_LIST`
 */
export function createListFilter(encoding: Encoding, keep: Keep, options: ListFilterOptions = {}): ByteFilter {
  const elements = new ElementFilter(keep, options);
  const body = encoding === "json" ? new JsonListFilter(elements, options) : new ProtobufListFilter(elements, options);
  return new FailOnceFilter(elements, body);
}

// After an error the state machine must not continue: it could read the middle of an object as an object.
class FailOnceFilter implements ByteFilter {
  readonly #elements: ElementFilter;
  readonly #body: Pick<ByteFilter, "push" | "end">;
  #failure: { readonly error: unknown } | undefined;

  constructor(elements: ElementFilter, body: Pick<ByteFilter, "push" | "end">) {
    this.#elements = elements;
    this.#body = body;
  }

  get dropped(): number {
    return this.#elements.dropped;
  }

  get kept(): number {
    return this.#elements.kept;
  }

  push(chunk: Uint8Array, emit: Emit): void {
    if (this.#failure !== undefined) throw this.#failure.error;
    try {
      this.#body.push(chunk, emit);
    } catch (error) {
      this.#failure = { error };
      throw error;
    }
  }

  end(emit: Emit): void {
    if (this.#failure !== undefined) throw this.#failure.error;
    try {
      this.#body.end(emit);
    } catch (error) {
      this.#failure = { error };
      throw error;
    }
  }
}
