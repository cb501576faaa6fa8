// A list filter that hides nothing, around one that may fail. Invariant: no byte is lost or written twice.
import { type ByteFilter, type Emit, isCodecError } from "../../kube/codec/codec.ts";

/**
 * Lets a list pass as it is if a filter that hides nothing cannot read it. No byte is lost or written twice.
 * After the first part has left, an unreadable rest breaks the body, which would otherwise end as a shorter
 * list.
 */
export class LenientFilter implements ByteFilter {
  /** Undefined once the body passes as it is. */
  #filter: ByteFilter | undefined;
  /** The beginning; undefined once bytes have left. */
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
