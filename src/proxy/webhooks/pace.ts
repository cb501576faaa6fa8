// Slows down an address that sends much: its next body is read when the earlier ones are paid. Invariant: no body is read while its call waits, and calls of
// peers never wait. The layer stands before `read`. API servers share the thread with strangers, who would fill it with large reviews otherwise.
import { type ClientPace, createClientPace } from "../../base/client-pace.ts";
import { type Clock, sleep } from "../../base/clock.ts";
import { MAX_REVIEW_BYTES } from "../../kube/admission-review.ts";
import type { ReviewLayer } from "./review-call.ts";

/** Of bodies, for each address: room for a thousand reviews of ordinary objects a second, or one of the largest. */
const BYTES_PER_SECOND = 8 * 1024 * 1024;
/** At once, after a pause: two of the largest reviews. */
const BURST_BYTES = 2 * MAX_REVIEW_BYTES;
/** What a call without a body costs, compared with the bytes of bodies. The main thread answers the questions of 2,000 calls a second with a few percent of a core. */
const CALL_BYTES = 4 * 1024;

export function createReviewPace(clock: Clock): ClientPace {
  return createClientPace({ perSecond: BYTES_PER_SECOND, burst: BURST_BYTES, clock });
}

export function pace(clock: Clock, bodies: ClientPace = createReviewPace(clock)): ReviewLayer {
  return (next) => async (call) => {
    const { address, forwardedAs } = call.record;
    if (forwardedAs !== undefined) return next(call);
    const { "content-length": length } = call.headers;
    // A body of unknown length may be the largest. A larger one is no review and passes unread; its announcement costs nothing, so it must not close the address off.
    const announced = call.headers["transfer-encoding"] === undefined ? Number(length ?? 0) : MAX_REVIEW_BYTES;
    const bytes = CALL_BYTES + Math.min(announced, MAX_REVIEW_BYTES);
    const waitMs = bodies.charge(address, bytes);
    if (waitMs > 0) {
      await sleep(clock, waitMs, call.signal).catch((error: unknown) => {
        bodies.giveBack(address, bytes);
        throw error;
      });
    }
    return next(call);
  };
}
