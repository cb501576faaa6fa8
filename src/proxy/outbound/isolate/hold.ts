// The wait of one call for the owner of an unknown namespace. Beside it, the API server is asked whether the
// namespace exists: an unknown namespace is either newer than the snapshot or not there. Invariant: a new
// decision follows the first of both answers, and a wait has its bounds in time and number.
import { onAbort } from "../../../base/abort.ts";
import type { Clock } from "../../../base/clock.ts";
import { MeshError } from "../../../base/errors.ts";
import { parseRequestInfo } from "../../../kube/request-info.ts";
import { identityHeaders } from "../../api-server/headers.ts";
import { addWait, createRecord, type Handler, objectPath, type ResourceCall } from "../../call/call.ts";
import { discardBody } from "../../http/byte-stream.ts";
import type { CallSignal } from "../../http/call-signal.ts";
import type { Reply } from "../../http/handler.ts";
import type { Session } from "../../session/session.ts";

export interface HoldDeps {
  /** Asks the API server. */
  readonly ask: Handler;
  readonly session: Session;
  readonly clock: Clock;
  /** How many more calls may wait. */
  readonly places: { free: number };
}

/** How long a call waits. */
const HOLD_MS = 2_000;

export interface Hold {
  readonly deadlineMs: number;
  /** The API server's 404, if it has come. The caller has to read or cancel its body. */
  takeMissing(): Reply | undefined;
  /**
   * Resolves with the next snapshot, the API server's 404, or the end of the wait. Rejects when the client
   * goes.
   */
  next(): Promise<void>;
  /** To be called once. */
  end(): void;
}

/**
 * Begins to wait and asks the API server. To be ended after the decision.
 * @returns undefined if too many calls wait already
 */
export function beginHold(call: ResourceCall, namespace: string, deps: HoldDeps): Hold | undefined {
  const { session, clock, ask, places } = deps;
  if (places.free <= 0) return undefined;
  places.free--;
  const release = session.beginHold(namespace);
  const asking = new AbortController();
  const deadlineMs = clock.monotonicMs() + HOLD_MS;
  let over = false; // nobody takes the API server's answer
  let missing: Reply | undefined;
  let wake: () => void = () => undefined;
  void askMissing(call, namespace, asking.signal, ask).then((reply) => {
    if (over) discardBody(reply?.body ?? null);
    else if (reply !== undefined) {
      missing = reply;
      wake();
    }
  });
  return {
    deadlineMs,
    takeMissing() {
      const taken = missing;
      missing = undefined;
      over ||= taken !== undefined;
      return taken;
    },
    async next() {
      const startedMs = clock.monotonicMs();
      const woken = (listener: () => void) => {
        wake = listener;
      };
      await nextChange(session, clock, deadlineMs - startedMs, call.signal, woken);
      addWait(call.record, clock.monotonicMs() - startedMs);
    },
    end() {
      release();
      places.free++;
      if (over) return; // the answer is the caller's now
      over = true;
      discardBody(missing?.body ?? null);
      asking.abort(new MeshError("ABORTED", "asking whether a namespace exists: not needed any more"));
    },
  };
}

function nextChange(
  session: Session,
  clock: Clock,
  timeoutMs: number,
  signal: CallSignal,
  onWake: (listener: () => void) => void,
): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const unsubscribe = session.onChange(() => resolve());
  const timer = clock.after(timeoutMs, resolve);
  onWake(resolve);
  const unlink = onAbort(signal, () =>
    reject(new MeshError("ABORTED", "waiting for a namespace's owner: aborted", { cause: signal.reason })),
  );
  return promise.finally(() => {
    unsubscribe();
    timer.cancel();
    unlink();
  });
}

/**
 * Asks as the caller. Only a 404 comes out of here, never an object: for the object, or for the namespace if
 * the call may create the object. Undefined if there is an object or no answer.
 */
async function askMissing(call: ResourceCall, namespace: string, signal: CallSignal, ask: Handler): Promise<Reply | undefined> {
  const target = namesObject(call) ? objectPath(call.info) : `/api/v1/namespaces/${encodeURIComponent(namespace)}`;
  const info = parseRequestInfo("GET", target);
  // The 404 goes to the caller as it is, so the question names the caller's encodings.
  const headers = identityHeaders(call.headers, "accept", "accept-encoding");
  try {
    const reply = await ask({
      method: "GET",
      target,
      info,
      headers,
      body: null,
      signal,
      record: createRecord(info, call.record),
    });
    if (reply.status === 404) return reply;
    discardBody(reply.body);
    return undefined;
  } catch {
    return undefined; // the call itself will meet the same failure
  }
}

// An object that is missing is no answer to a request that would create it.
function namesObject({ info, headers }: ResourceCall): boolean {
  if (!info.nameInPath || info.verb === "watch") return false;
  return info.verb !== "patch" || !String(headers["content-type"] ?? "").includes("apply-patch");
}
