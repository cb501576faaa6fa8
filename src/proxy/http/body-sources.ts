// Bodies around other bodies: with its bytes counted, with another body behind it, or read ahead.
import type { ByteSink, ByteSource, SourceControl } from "./byte-stream.ts";
import { asError } from "./tap.ts";

/** @param end called once, however the body ends, with the number of its bytes */
export function countedSource(source: ByteSource, end: (bytes: number) => void): ByteSource {
  return new CountedSource(source, end);
}

// One object for all roles: every streamed answer passes here.
class CountedSource implements ByteSource, ByteSink, SourceControl {
  readonly #source: ByteSource;
  readonly #end: (bytes: number) => void;
  #sink: ByteSink | undefined;
  #control: SourceControl | undefined;
  #bytes = 0;
  #over = false;

  constructor(source: ByteSource, end: (bytes: number) => void) {
    this.#source = source;
    this.#end = end;
  }

  open(sink: ByteSink): SourceControl {
    this.#sink = sink;
    this.#control = this.#source.open(this);
    return this;
  }

  write(chunk: Uint8Array): boolean {
    this.#bytes += chunk.length;
    return this.#sink?.write(chunk) ?? false;
  }

  end(): void {
    this.#sink?.end();
    this.#finish();
  }

  abort(error: Error): void {
    this.#sink?.abort(error);
    this.#finish();
  }

  resume(): void {
    this.#control?.resume();
  }

  cancel(error: Error): void {
    (this.#control ?? this.#source).cancel(error);
    this.#finish();
  }

  #finish(): void {
    if (this.#over) return;
    this.#over = true;
    this.#end(this.#bytes);
  }
}

/** The body breaks off as soon as `refusal` has an error for a chunk. */
export function checkedSource(source: ByteSource, refusal: () => Error | undefined): ByteSource {
  return {
    cancel: (error) => source.cancel(error),
    open(sink) {
      const control = source.open({
        write(chunk) {
          const error = refusal();
          if (error === undefined) return sink.write(chunk);
          sink.abort(error);
          queueMicrotask(() => control.cancel(error)); // the source may write before `open` returns
          return false;
        },
        end: () => sink.end(),
        abort: (error) => sink.abort(error),
      });
      return control;
    },
  };
}

/** @param next is called only if the first body comes to its end */
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

/** Resolves with the body once it is complete or over `maxBytes`. @throws the error that breaks it earlier */
export function readAhead(source: ByteSource, maxBytes: number): Promise<ByteSource> {
  return new Promise((resolve, reject) => {
    let chunks: Uint8Array[] = [];
    let bytes = 0;
    let sink: ByteSink | undefined;
    let end: { readonly error?: Error } | undefined;
    let control: SourceControl;

    const flush = (to: ByteSink, isGone: () => boolean): void => {
      sink = to;
      const early = chunks;
      chunks = [];
      let isWanted = true;
      for (const slice of early) {
        if (isGone()) return;
        isWanted = to.write(slice);
      }
      if (isGone()) return;
      if (end?.error !== undefined) to.abort(end.error);
      else if (end !== undefined) to.end();
      else if (isWanted) control.resume();
    };
    const body: ByteSource = {
      cancel: (error) => control.cancel(error),
      open(to) {
        let isGone = false;
        queueMicrotask(() => flush(to, () => isGone));
        return {
          resume: () => control.resume(),
          cancel(error) {
            isGone = true;
            control.cancel(error);
          },
        };
      },
    };
    control = source.open({
      write(chunk) {
        if (sink !== undefined) return sink.write(chunk);
        chunks.push(chunk);
        bytes += chunk.length;
        if (bytes <= maxBytes) return true;
        resolve(body);
        return false;
      },
      end() {
        end = {};
        sink?.end();
        resolve(body);
      },
      abort(error) {
        end = { error };
        sink?.abort(error);
        reject(error);
      },
    });
  });
}
