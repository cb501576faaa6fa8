// The access log: `--access-log` takes a share of all requests into the log, and /debug/requests the next
// few. Invariants: off by default; no request can turn it on; no token, body or query is ever written.
import type { ProcessContext } from "../../base/process-context.ts";
import type { Waited } from "../../policy/engine/faults.ts";

export type AccessFields = Readonly<Record<string, unknown>>;
export type AccessSink = (fields: AccessFields) => void;

export type AccessLog = ReturnType<typeof createAccessLog>;

type AccessLogOptions = Pick<ProcessContext, "random" | "log"> & { readonly share: number };

export function createAccessLog({ share, random, log }: AccessLogOptions) {
  const taps = new Set<AccessSink>();
  const listeners: ((isTapped: boolean) => void)[] = [];
  const notify = (isTapped: boolean) => {
    for (const listener of listeners) listener(isTapped);
  };
  const write: AccessSink = (fields) => log.info(fields, "request");
  const isPicked = () => share >= 1 || (share > 0 && random() < share);
  return {
    /** Where to write about the request that begins now; undefined: nowhere. */
    pick(): AccessSink | undefined {
      const logged = isPicked();
      if (taps.size === 0) return logged ? write : undefined;
      const sinks = [...taps, ...(logged ? [write] : [])];
      return (fields) => {
        for (const sink of sinks) sink(fields);
      };
    },
    /** Copies all requests that begin from now on, until the returned function is called. */
    tap(sink: AccessSink): () => void {
      // One entry for each call, so that the same function may be subscribed twice.
      const entry: AccessSink = (fields) => sink(fields);
      taps.add(entry);
      if (taps.size === 1) notify(true);
      return () => {
        if (taps.delete(entry) && taps.size === 0) notify(false);
      };
    },
    /** Calls the listener with true when the first reader comes, with false when the last one has left. */
    onTapped: (listener: (isTapped: boolean) => void) => void listeners.push(listener),
    /** Passes on a request that another thread has served. */
    copy(fields: AccessFields): void {
      for (const sink of [...taps]) sink(fields);
    },
  };
}

/** A request that a FaultInjection has delayed must not look like one of a slow server. */
export function delayFields(delay: Waited | undefined): object {
  return delay === undefined ? {} : { delayedSeconds: delay.seconds, delayedBy: delay.rule };
}
