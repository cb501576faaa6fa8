// A filter that fails once and for all: after an error the state machine must not continue, since it could
// read the middle of an object as an object.
import type { ElementFilter } from "./element-filter.ts";
import type { ByteFilter, Emit } from "./types.ts";

export class FailOnceFilter implements ByteFilter {
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
