// Identifies pods of the mesh by their certificates. Invariants: only a certificate that leads to a CA of the
// mesh counts, and only the exact URI of a peer in the list. No other client can have a review answered by a
// pod that does not own the object.
import type { Duplex } from "node:stream";
import { TLSSocket } from "node:tls";
import { podUri } from "../../base/pem.ts";
import type { PodPeer } from "../../mesh/contract/peer-type.ts";
import { FORWARDED, PEER_SERVER_NAME, ReviewError, type ReviewLayer } from "./review-call.ts";

export function knowPeer(peers: { readonly current: readonly PodPeer[] }): ReviewLayer {
  const isPeer = createPeerFinder();
  return (next) => (call) => {
    const { peerNames } = call.record;
    if (peerNames === undefined) return next(call);
    // A peer that has just started may be known a moment later: it asks again.
    if (!isPeer(peerNames, peers.current))
      throw new ReviewError(403, "PEER_UNKNOWN", "ctrlmesh: only pods of this app may forward reviews to this pod", "refused");
    const as = call.headers[FORWARDED];
    if (as !== "owner" && as !== "holder")
      throw new ReviewError(400, "BAD_REQUEST", `ctrlmesh: ${FORWARDED} is neither owner nor holder`, "refused");
    call.record.forwardedAs = as;
    return next(call);
  };
}

const namesOfClients = new WeakMap<TLSSocket, readonly string[] | undefined>();

/** The URIs of a client that has asked for the peers' name: none if it is not verified. Else undefined. */
export function peerNamesOf(client: Duplex): readonly string[] | undefined {
  if (!(client instanceof TLSSocket)) return undefined;
  if (!namesOfClients.has(client)) namesOfClients.set(client, readNames(client));
  return namesOfClients.get(client);
}

function readNames(client: TLSSocket): readonly string[] | undefined {
  if (Reflect.get(client, "servername") !== PEER_SERVER_NAME) return undefined;
  return client.authorized ? urisOf(client.getPeerX509Certificate()?.subjectAltName) : [];
}

const URI = "URI:";

/** The URIs of alternative names as node:tls writes them: names with commas are in quotes. */
export function urisOf(subjectAltName = ""): readonly string[] {
  return subjectAltName.split(", ").flatMap((name) => (name.startsWith(URI) ? [name.slice(URI.length)] : []));
}

/** Whether a name is a peer's. The URIs are made once for each list. */
function createPeerFinder(): (names: readonly string[], peers: readonly PodPeer[]) => boolean {
  let list: readonly PodPeer[] = [];
  let uris: ReadonlySet<string> = new Set();
  return (names, peers) => {
    if (peers !== list) uris = new Set(peers.map(podUri));
    list = peers;
    return names.some((name) => uris.has(name));
  };
}
