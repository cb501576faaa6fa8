// A list filter that hides nothing, and so has no reason to break what it cannot read: such a body passes as it is. Invariants:
// nothing is lost or written twice; once a part has gone, what cannot be read breaks the body, which would otherwise end as a
// shorter list; no more is held than the filter inside holds until it has seen that there is a list. Called by the strip layer.
import { type ByteFilter, type Emit, isCodecError } from "../../kube/codec/types.ts";

export class LenientFilter implements ByteFilter {
  /** Undefined once the body passes as it is. */
  #filter: ByteFilter | undefined;
  /** The beginning; undefined once something has been emitted. */
  #held: Uint8Array[] | undefined = [];

  constructor(filter: ByteFilter) {
    this.#filter = filter;
  }

  get dropped(): number {
    return this.#filter?.dropped ?? 0;
  }

  get kept(): number {
    return this.#filter?.kept ?? 0;
  }

  push(chunk: Uint8Array, emit: Emit): void {
    const filter = this.#filter;
    if (filter === undefined) {
      emit(chunk);
      return;
    }
    this.#held?.push(chunk);
    this.#attempt((write) => filter.push(chunk, write), emit);
  }

  end(emit: Emit): void {
    const filter = this.#filter;
    if (filter !== undefined) this.#attempt((write) => filter.end(write), emit);
  }

  #attempt(run: (emit: Emit) => void, emit: Emit): void {
    try {
      run((slice) => {
        if (slice.length > 0) this.#held = undefined;
        emit(slice);
      });
    } catch (error) {
      if (this.#held === undefined || !isCodecError(error)) throw error;
      this.#filter = undefined;
      for (const slice of this.#held) emit(slice);
      this.#held = undefined;
    }
  }
}
