// A minimal push stream with back-pressure: the source writes into a sink, the sink answers whether it wants more, and
// asks again through `resume`. Synchronous and without queues of its own, so a filter in the middle costs one call a chunk.

/** Takes the bytes of one body. After `end` or `abort` nothing more is called. */
export interface ByteSink {
  /** Returns false when the sink is full: stop until `SourceControl.resume` is called. A full sink still accepts writes. */
  write(chunk: Uint8Array): boolean;
  /** The body is complete. */
  end(): void;
  /** The body broke off: the receiver must see an error, never a clean end. */
  abort(error: Error): void;
}

/** How a sink drives its source. */
export interface SourceControl {
  /** The sink wants more after it had answered false. */
  resume(): void;
  /** The receiver is gone: free everything upstream at once. */
  cancel(error: Error): void;
}

/** A body that is yet to come. `open` may be called once; a body that is never opened must be cancelled through `cancel`. */
export interface ByteSource {
  /** Nothing is written before `open` has returned: the first bytes come in a later microtask. */
  open(sink: ByteSink): SourceControl;
  /** Gives the body up unread. */
  cancel(error: Error): void;
}
