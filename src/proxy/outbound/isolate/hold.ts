// The waits of a call before it is refused: for the owner of an unknown namespace, and, after a loss, for the
// operator's informers to see it. Invariant: each wait has a bound in time.
import { type Clock, sleep } from "../../../base/clock.ts";
import { MeshError } from "../../../base/errors.ts";
import { addWait, askAsCaller, type Handler, identityHeaders, objectPath, type ResourceCall } from "../../call/call.ts";
import { discardBody } from "../../http/byte-stream.ts";
import { CallAbort, type CallSignal, unlessAborted } from "../../http/call-signal.ts";
import type { Reply } from "../../http/handler.ts";
import type { Session } from "../../session/session.ts";

export interface HoldDeps {
  readonly ask: Handler;
  readonly session: Session;
  readonly clock: Clock;
  /** How many more calls may wait. */
  readonly places: { free: number };
}

const HOLD_MS = 2_000;

export interface Hold {
  readonly deadlineMs: number;
  /** The API server's 404, if it has come. The caller has to read or cancel its body. */
  takeMissing(): Reply | undefined;
  /** Resolves with the next snapshot, the 404 or the end of the wait. Rejects when the client goes. */
  next(): Promise<void>;
  /** To be called once. */
  end(): void;
}

/** Also asks whether the unknown namespace exists. Undefined if too many calls wait already. */
export function beginHold(call: ResourceCall, namespace: string, deps: HoldDeps): Hold | undefined {
  const { session, clock, ask, places } = deps;
  if (places.free <= 0) return undefined;
  places.free--;
  const release = session.beginHold(namespace);
  const asking = new CallAbort();
  const deadlineMs = clock.monotonicMs() + HOLD_MS;
  let over = false; // a later answer of the API server is dropped
  let missing: Reply | undefined;
  let wake: () => void = () => undefined;
  void askMissing(call, namespace, asking, ask).then((reply) => {
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
      await unlessAborted(call.signal, "waiting for a namespace's owner", (done) => {
        wake = done;
        const unsubscribe = session.onChange(() => done());
        const timer = clock.after(deadlineMs - startedMs, done);
        return () => {
          unsubscribe();
          timer.cancel();
        };
      });
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

/** The 404 of the object, or of the namespace if the call may create the object. Never returns an object. */
async function askMissing(call: ResourceCall, namespace: string, signal: CallSignal, ask: Handler): Promise<Reply | undefined> {
  const target = namesObject(call) ? objectPath(call.info) : `/api/v1/namespaces/${encodeURIComponent(namespace)}`;
  // The 404 goes to the caller as it is, so the question names the caller's encodings.
  const headers = identityHeaders(call.headers, "accept", "accept-encoding");
  try {
    const reply = await ask(askAsCaller(call, target, headers, signal));
    if (reply.status === 404) return reply;
    discardBody(reply.body);
    return undefined;
  } catch {
    return undefined; // the call itself will meet the same failure
  }
}

// False for a request that may create the object: to that, "not found" is no answer.
function namesObject({ info, headers }: ResourceCall): boolean {
  if (!info.nameInPath || info.verb === "watch") return false;
  return info.verb !== "patch" || !String(headers["content-type"] ?? "").includes("apply-patch");
}

/** Informers learn of a loss in a fraction of this time, unless the pod goes on showing the place for a moment. */
const TOLD_MS = 500;

/**
 * Delays refusals right after a change of the routes, and where the pod still shows a lost place for a moment: an
 * operator that does not know of its loss yet would repeat its write every few milliseconds. The function resolves
 * with false if it did not wait.
 */
export function createRecentLoss(session: Pick<Session, "onChange">, clock: Clock): (isStillShown: boolean) => Promise<boolean> {
  let changedAtMs = Number.NEGATIVE_INFINITY;
  session.onChange(({ snapshot }, before) => {
    // The end of such a moment takes nothing away from writers: the routes are the same.
    if (before !== undefined && before.snapshot.version !== snapshot.version) changedAtMs = clock.monotonicMs();
  });
  return async (isStillShown) => {
    const leftMs = isStillShown ? TOLD_MS : changedAtMs + TOLD_MS - clock.monotonicMs();
    if (leftMs <= 0) return false;
    await sleep(clock, leftMs);
    return true;
  };
}
