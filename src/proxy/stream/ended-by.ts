// A body that can be ended from outside, at whatever point it has come to: for bodies that are written frame by frame.
import type { ByteSource } from "../pipeline/byte-stream.ts";

/**
 * The source, which ends cleanly once `end` is called.
 * @param subscribe is called when the body is opened; what it returns when it is over
 */
export function endedBy(source: ByteSource, subscribe: (end: () => void) => () => void): ByteSource {
  return {
    cancel: (error) => source.cancel(error),
    open(sink) {
      let over = false;
      const finish = () => {
        const first = !over;
        over = true;
        unsubscribe();
        return first;
      };
      const unsubscribe = subscribe(() => {
        if (!finish()) return;
        control.cancel(new Error("the body is ended"));
        sink.end();
      });
      const control = source.open({
        write: (chunk) => !over && sink.write(chunk),
        end: () => finish() && sink.end(),
        abort: (error) => finish() && sink.abort(error),
      });
      return {
        resume: () => control.resume(),
        cancel: (error) => finish() && control.cancel(error),
      };
    },
  };
}
