// Reads the beginning of a body before anybody sees it, so that a body that breaks off early can be replaced.
import type { ByteSink, ByteSource, SourceControl } from "./byte-stream.ts";

/** The body, once it is complete or has more than `maxBytes`. @throws what the source broke off with */
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
    // Once resolved, the promise takes no notice of later calls.
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
