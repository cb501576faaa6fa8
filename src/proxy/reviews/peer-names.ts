// Which pod a client or a server of the mesh is, by its certificate. Invariant: only a certificate that leads
// to a CA of the mesh counts, and only the exact URI of a peer in the list. Called by the layers and by the
// connections to peers.
import type { Duplex } from "node:stream";
import { TLSSocket } from "node:tls";
import { podUri } from "../../base/pod-uri.ts";
import type { PodPeer } from "../../wire/peer-type.ts";
import { PEER_SERVER_NAME } from "./review-call.ts";

const known = new WeakMap<TLSSocket, readonly string[] | undefined>();

/**
 * The URIs of a verified client that uses the name of peers: none if its certificate is not of the mesh.
 * Undefined for all other clients.
 */
export function peerNamesOf(client: Duplex): readonly string[] | undefined {
  if (!(client instanceof TLSSocket)) return undefined;
  if (!known.has(client)) known.set(client, readNames(client));
  return known.get(client);
}

function readNames(client: TLSSocket): readonly string[] | undefined {
  if (Reflect.get(client, "servername") !== PEER_SERVER_NAME) return undefined;
  return client.authorized ? urisOf(client.getPeerX509Certificate()?.subjectAltName) : [];
}

const URI = "URI:";

/**
 * The URIs of a certificate's alternative names, as node:crypto and node:tls write them: names with commas
 * are in quotes.
 */
export function urisOf(subjectAltName = ""): readonly string[] {
  return subjectAltName.split(", ").flatMap((name) => (name.startsWith(URI) ? [name.slice(URI.length)] : []));
}

/** Finds the peer with one of these names. The index is made once for each list. */
export function createPeerFinder(): (names: readonly string[], peers: readonly PodPeer[]) => PodPeer | undefined {
  let list: readonly PodPeer[] = [];
  let index = new Map<string, PodPeer>();
  return (names, peers) => {
    if (peers !== list) {
      list = peers;
      index = new Map(peers.map((peer) => [podUri(peer), peer]));
    }
    return names.map((name) => index.get(name)).find((peer) => peer !== undefined);
  };
}
