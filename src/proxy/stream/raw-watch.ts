// An allowed watch in an encoding whose frames cannot be told apart. It passes as it is; once the subset may not see all of
// it any more, or has gained something, the connection breaks: there is no boundary at which an event could be put in.
// Clients then watch again and are decided upon anew. Called by the isolate layer.
import type { ByteSource } from "../pipeline/byte-stream.ts";
import type { WatchScope } from "./watch-scope.ts";
import type { WatchDeps } from "./watch-stream.ts";

/** The source, cut off by the first route change that touches the collection. */
export function rawWatch(source: ByteSource, scope: WatchScope, deps: Pick<WatchDeps, "resync">): ByteSource {
  return {
    cancel: (error) => source.cancel(error),
    open(sink) {
      let over = false;
      const finish = () => {
        const first = !over;
        over = true;
        unwatch();
        return first;
      };
      const cut = () => {
        if (!finish()) return;
        const error = new Error("watching: the routes have changed");
        control.cancel(error);
        sink.abort(error);
      };
      const unwatch = deps.resync.watching(scope.collection, ({ gained, lost }) => {
        if (gained || lost) cut();
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
