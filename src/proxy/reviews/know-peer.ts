// Lets only peers use the name of peers. Invariant: the mark of a forwarded review counts only from a peer in
// the list, so no other client can have a review answered by a pod that does not own the object.
import type { PodPeer } from "../../wire/peer-type.ts";
import { createPeerFinder } from "./peer-names.ts";
import { FORWARDED, ReviewError, type ReviewLayer } from "./review-call.ts";

export function knowPeer(peers: { readonly current: readonly PodPeer[] }): ReviewLayer {
  const find = createPeerFinder();
  return (next) => (call) => {
    const { peerNames } = call.record;
    if (peerNames === undefined) return next(call);
    // A peer that has just started may be known a moment later: it asks again.
    if (find(peerNames, peers.current) === undefined)
      throw new ReviewError(403, "PEER_UNKNOWN", "ctrlmesh: only pods of this app may forward reviews to this pod", "refused");
    const as = call.headers[FORWARDED];
    if (as !== "owner" && as !== "holder")
      throw new ReviewError(400, "BAD_REQUEST", `ctrlmesh: ${FORWARDED} is neither owner nor holder`, "refused");
    call.record.forwardedAs = as;
    return next(call);
  };
}
