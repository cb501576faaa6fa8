// Renews the proof that the API server at home accepts this pod, while its subset owns a cluster. The operator's own requests, such
// as the renewals of its lock, are proofs too. If they are too rare, the proxy sends a request with the token of the last proof.
import { type Clock, sleep } from "../../base/clock.ts";
import type { Runnable } from "../../base/lifecycle.ts";
import { parseRequestInfo } from "../../kube/request-info.ts";
import { PROOF_MS } from "../../mesh/ownership/clusters.ts";
import { createRecord, type Handler } from "../call/call.ts";
import { discardBody } from "../http/byte-stream.ts";
import { CallAbort } from "../http/call-signal.ts";
import type { HomeProof } from "./home-proof.ts";

/** A proof that counts for less than this is renewed. */
const RENEW_BELOW_MS = PROOF_MS - 2_000;
const LOOK_MS = 1_000;
const ANSWER_MS = 3_000;

const REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
const REVIEW = Buffer.from(JSON.stringify({ apiVersion: "authentication.k8s.io/v1", kind: "SelfSubjectReview" }));

export interface KeepProofDeps {
  readonly home: HomeProof;
  readonly send: Handler;
  /** The pod's subset owns a cluster. */
  readonly isNeeded: () => boolean;
  readonly clock: Clock;
}

export function createProofKeeper({ home, send, isNeeded, clock }: KeepProofDeps): Runnable {
  const stopping = new AbortController();
  let running: Promise<void> = Promise.resolve();
  const look = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      const { authorization } = home;
      if (authorization !== undefined && isNeeded() && home.leftMs() < RENEW_BELOW_MS) await ask(authorization);
      await sleep(clock, LOOK_MS, stopping.signal).catch(() => undefined);
    }
  };
  const ask = async (authorization: string): Promise<void> => {
    const timeout = new CallAbort();
    const timer = clock.after(ANSWER_MS, () => timeout.abort(new Error("no answer to a review of the pod's own token")));
    const sent = home.mark();
    try {
      const info = parseRequestInfo("POST", REVIEWS);
      const headers = { authorization, "content-type": "application/json", accept: "application/json" };
      const reply = await send({
        method: "POST",
        target: REVIEWS,
        info,
        headers,
        body: REVIEW,
        signal: timeout,
        record: createRecord(info),
      });
      discardBody(reply.body);
      if (reply.status === 201) home.answered(authorization, sent);
    } catch {
      // The log says already that the API server is not reachable.
    } finally {
      timer.cancel();
    }
  };
  return {
    name: "home",
    async start() {
      running = look();
    },
    async stop() {
      stopping.abort();
      await running;
    },
  };
}
