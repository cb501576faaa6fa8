// Ends a body or tunnel without an end of its own (a followed log, a watch that cannot be read) once the
// routes no longer allow it. Invariant: the routes are checked at every change and once at the beginning,
// since they may have changed after the decision.
import { onAbort } from "../../base/abort.ts";
import { MeshError } from "../../base/errors.ts";
import type { Enforced } from "../../mesh/ownership/enforced.ts";
import { asSource, type ByteSource } from "../http/byte-stream.ts";
import { CallAbort, type CallSignal } from "../http/call-signal.ts";
import type { Reply } from "../http/handler.ts";
import type { Session } from "../session/session.ts";

interface End {
  readonly onChange: (listener: () => void) => () => void;
  readonly isOver: () => boolean;
}

export function endBySnapshot(session: Pick<Session, "current" | "onChange">, isOver: (now: Enforced) => boolean): End {
  return { onChange: session.onChange, isOver: () => session.current !== undefined && isOver(session.current) };
}

/** @param how `break` where a clean end looks complete; `lastFrame` and `end` for a body of frames */
export function endWhen(source: ByteSource, end: End, how: "end" | "break" | { readonly lastFrame: Uint8Array }): ByteSource {
  return {
    cancel: (error) => source.cancel(error),
    open(sink) {
      const isLate = end.isOver(); // then no byte leaves
      let over = false;
      const finish = () => {
        const first = !over;
        over = true;
        unsubscribe();
        return first;
      };
      const check = () => {
        if (over || !(isLate || end.isOver()) || !finish()) return;
        control.cancel(routesChanged());
        if (typeof how === "object") sink.write(how.lastFrame);
        if (how === "break") sink.abort(routesChanged());
        else sink.end();
      };
      const unsubscribe = end.onChange(check);
      queueMicrotask(check); // ahead of the source's first bytes, which come in a later one
      const control = source.open({
        write: (chunk) => !over && !isLate && sink.write(chunk),
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

/** The reply, with a body or tunnel that breaks off at the end: a clean end would look complete. */
export function endReply(reply: Reply, end: End): Reply {
  if (reply.tunnel !== undefined) return { ...reply, tunnel: { ...reply.tunnel, signal: abortWhen(reply.tunnel.signal, end) } };
  return reply.body === null ? reply : { ...reply, body: endWhen(asSource(reply.body), end, "break") };
}

/** A signal that fires with `signal`, or once `end` is over. `signal` must fire in the end, to free it. */
export function abortWhen(signal: CallSignal, end: End): CallSignal {
  const both = new CallAbort();
  const check = () => {
    if (end.isOver()) both.abort(routesChanged());
  };
  const unsubscribe = end.onChange(check);
  const unlink = onAbort(signal, () => both.abort(signal.reason));
  onAbort(both, () => {
    unsubscribe();
    unlink();
  });
  check();
  return both;
}

function routesChanged(): MeshError {
  return new MeshError("ABORTED", "reading on: the routes have changed");
}
