// One object's body without managedFields. Invariant: a body that is larger than any object of Kubernetes passes as it is, so that memory
// is bounded. Called by the strip layer.
import { stripObject } from "../../kube/codec/strip-managed-fields.ts";
import { type ByteFilter, DEFAULT_MAX_BYTES, type Emit, type Encoding } from "../../kube/codec/types.ts";

export class ObjectStripper implements ByteFilter {
  readonly dropped = 0;
  readonly kept = 1;
  readonly #encoding: Encoding;
  readonly #maxBytes: number;
  /** Undefined once the body has turned out to be too large. */
  #held: Uint8Array[] | undefined = [];
  #bytes = 0;

  /** @param maxBytes default 16 MiB */
  constructor(encoding: Encoding, maxBytes = DEFAULT_MAX_BYTES) {
    this.#encoding = encoding;
    this.#maxBytes = maxBytes;
  }

  push(chunk: Uint8Array, emit: Emit): void {
    if (this.#held === undefined) {
      emit(chunk);
      return;
    }
    this.#held.push(chunk);
    this.#bytes += chunk.length;
    if (this.#bytes <= this.#maxBytes) return;
    for (const held of this.#held) emit(held);
    this.#held = undefined;
  }

  end(emit: Emit): void {
    if (this.#held === undefined || this.#bytes === 0) return;
    const [first = new Uint8Array()] = this.#held;
    emit(stripObject(this.#encoding, this.#held.length === 1 ? first : Buffer.concat(this.#held)));
  }
}
