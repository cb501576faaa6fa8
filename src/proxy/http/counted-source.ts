// Counts the bytes of a body.
import type { ByteSink, ByteSource, SourceControl } from "./byte-stream.ts";

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
