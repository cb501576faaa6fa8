// One body behind another. Invariants: the second one is asked for when the first is complete; a first body that
// breaks off, or a second one that cannot be had, breaks the whole.
import type { ByteSink, ByteSource, SourceControl } from "./byte-stream.ts";
import { asError } from "./tap.ts";

/** @param next is not called if the first body does not come to its end */
export function followedBy(first: ByteSource, next: () => Promise<ByteSource>): ByteSource {
  return {
    open: (sink) => new FollowedBody(first, next, sink),
    cancel: (error) => first.cancel(error),
  };
}

class FollowedBody implements SourceControl {
  /** Undefined between the two bodies. */
  #control: SourceControl | undefined;
  #cancelledBy: Error | undefined;

  constructor(first: ByteSource, next: () => Promise<ByteSource>, sink: ByteSink) {
    this.#control = first.open({
      write: (chunk) => sink.write(chunk),
      abort: (error) => sink.abort(error),
      end: () => void this.#follow(next, sink),
    });
  }

  async #follow(next: () => Promise<ByteSource>, sink: ByteSink): Promise<void> {
    this.#control = undefined;
    try {
      const second = await next();
      if (this.#cancelledBy === undefined) this.#control = second.open(sink);
      else second.cancel(this.#cancelledBy);
    } catch (error) {
      if (this.#cancelledBy === undefined) sink.abort(asError(error));
    }
  }

  // A full sink still accepts writes, so nothing has to wait until the second body is open.
  resume(): void {
    this.#control?.resume();
  }

  cancel(error: Error): void {
    this.#cancelledBy = error;
    this.#control?.cancel(error);
  }
}
