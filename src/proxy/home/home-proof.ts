// Whether the API server at home still accepts this pod. A pod that was removed by force keeps running, and other clusters
// may accept its credentials for much longer. The API server at home refuses the token of a removed pod. Invariant: a
// proof is an answer to a request with a token that is bound to this pod, and counts from when the request was sent.
import { z } from "zod";
import { bearerClaims } from "../../base/bearer-claims.ts";
import type { Clock } from "../../base/clock.ts";
import { PROOF_MS } from "../../mesh/ownership/clusters.ts";

const CLAIMS = z.object({ "kubernetes.io": z.object({ pod: z.object({ uid: z.string() }) }) });

export type HomeProof = ReturnType<typeof createHomeProof>;

export function createHomeProof(podUid: string, clock: Pick<Clock, "monotonicMs" | "now">) {
  // Both clocks: one of them may stand still while the machine is suspended.
  let proven = { monotonicMs: Number.NEGATIVE_INFINITY, nowMs: Number.NEGATIVE_INFINITY };
  let bound: string | undefined;
  let read: { readonly header: string; readonly isBound: boolean } | undefined;
  const isBound = (header: string): boolean => {
    if (read?.header !== header) read = { header, isBound: uidIn(header) === podUid && podUid !== "" };
    return read.isBound;
  };
  return {
    /** The time of a request that is about to be sent. */
    mark: () => ({ monotonicMs: clock.monotonicMs(), nowMs: clock.now() }),
    /** Records a successful answer. @param header the request's Authorization */
    answered(header: string | undefined, sent: { readonly monotonicMs: number; readonly nowMs: number }): void {
      if (header === undefined || !isBound(header)) return;
      bound = header;
      if (sent.monotonicMs > proven.monotonicMs) proven = sent;
    },
    /** Milliseconds for which the last proof still counts; 0 or negative if it does not. */
    leftMs(): number {
      const ages = [clock.monotonicMs() - proven.monotonicMs, Math.abs(clock.now() - proven.nowMs)];
      return PROOF_MS - Math.max(...ages);
    },
    /** The last accepted Authorization that is bound to this pod; undefined before the first. */
    get authorization(): string | undefined {
      return bound;
    },
  };
}

/** Why the pod may not write to other clusters now. */
export function whyUnproven({ authorization }: Pick<HomeProof, "authorization">): string {
  return authorization === undefined
    ? "the API server at home has not accepted a token of this pod yet, so first send a request to that API server"
    : `the API server at home has not accepted this pod for ${PROOF_MS / 1_000} s, so it may have been removed`;
}

/** The token is only decoded: the API server, which has accepted it, has checked its signature. */
function uidIn(header: string): string | undefined {
  const { data } = CLAIMS.safeParse(bearerClaims(header));
  return data?.["kubernetes.io"].pod.uid;
}
