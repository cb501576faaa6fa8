// Slows down an address that sends much: each chunk of a body makes the next one wait. Otherwise strangers
// could fill the thread, which serves the API servers too, with large bodies. Invariants: every byte counts,
// of reviews and of all other bodies; calls of peers never wait.
import { createClientPace } from "../../base/client-pace.ts";
import { type Clock, sleep, type Timer } from "../../base/clock.ts";
import { MAX_REVIEW_BYTES } from "../../kube/admission-review.ts";
import type { ByteSource, SourceControl } from "../http/byte-stream.ts";
import type { ReviewLayer } from "./review-call.ts";

/** Bytes of bodies from one address: a thousand ordinary reviews a second, or one of the largest. */
const BYTES_PER_SECOND = 8 * 1024 * 1024;
/** The burst after a pause: two of the largest reviews. */
const BURST_BYTES = 2 * MAX_REVIEW_BYTES;
/** The least cost of a chunk, since a tiny one takes as long as one of this size. */
const CHUNK_BYTES = 512;
/** A call's cost in addition to its body: the main thread can answer 2,000 a second. */
const CALL_BYTES = 4 * 1024;

export function pace(clock: Clock): ReviewLayer {
  const bodies = createClientPace({ perSecond: BYTES_PER_SECOND, burst: BURST_BYTES, clock });
  return (next) => async (call) => {
    const { address, forwardedAs } = call.record;
    if (forwardedAs !== undefined) return next(call);
    const waitMs = bodies.charge(address, CALL_BYTES);
    if (waitMs > 0) await sleep(clock, waitMs, call.signal);
    const { body } = call;
    if (body === null || body instanceof Uint8Array) return next(call);
    return next({ ...call, body: pacedSource(body, (bytes) => bodies.charge(address, bytes), clock) });
  };
}

/** @param charge takes the bytes of a chunk, and returns how long the next chunk has to wait */
function pacedSource(source: ByteSource, charge: (bytes: number) => number, clock: Clock): ByteSource {
  return {
    cancel: (error) => source.cancel(error),
    open(sink) {
      let timer: Timer | undefined;
      let isWanted = true;
      const paid = () => {
        timer = undefined;
        if (isWanted) control.resume();
      };
      const control: SourceControl = source.open({
        write(chunk) {
          isWanted = sink.write(chunk);
          const waitMs = charge(Math.max(chunk.length, CHUNK_BYTES));
          if (waitMs > 0) {
            timer?.cancel();
            timer = clock.after(waitMs, paid);
          }
          return isWanted && timer === undefined;
        },
        end() {
          timer?.cancel();
          sink.end();
        },
        abort(error) {
          timer?.cancel();
          sink.abort(error);
        },
      });
      return {
        resume() {
          isWanted = true;
          if (timer === undefined) control.resume();
        },
        cancel(error) {
          timer?.cancel();
          control.cancel(error);
        },
      };
    },
  };
}
