// The connections to peers, with mTLS by the mesh's identity. Invariant: a review goes only to the very pod
// that the list names: its certificate leads to a CA of the mesh and has the pod's URI.
import type { Clock } from "../../base/clock.ts";
import { podUri } from "../../base/pem.ts";
import { formatAddress } from "../../base/settings.ts";
import type { PodPeer } from "../../mesh/contract/peer-type.ts";
import type { Reply } from "../http/handler.ts";
import { urisOf } from "./know-peer.ts";
import { FORWARDED, PEER_SERVER_NAME } from "./review-call.ts";
import type { PeerIdentity } from "./reviews-tls.ts";
import { createServerPool, type Sent, type ServerPool } from "./server-pool.ts";

export type PeerClients = ReturnType<typeof createPeerClients>;

/** A second attempt must fit into the shortest timeout of a webhook, 1 s. */
const CONNECT_MS = 500;
/** A peer with little of its node's CPU takes a part of this time. */
const HANDSHAKE_MS = 1_000;
/** The listener of a peer keeps idle connections for two minutes. */
const IDLE_MS = 60_000;

interface Client {
  readonly address: string;
  readonly pool: ServerPool;
  inFlight: number;
}

/** @param port of every peer's listener */
export function createPeerClients(identity: PeerIdentity, port: number, clock: Clock) {
  /** Clients by URI, which never names another pod. */
  const clients = new Map<string, Client>();
  let list: readonly PodPeer[] = [];

  const clientOf = (peer: PodPeer): Client => {
    const uri = podUri(peer);
    const before = clients.get(uri);
    if (before?.address === peer.address) return before;
    const client: Client = { address: peer.address, pool: createPool(peer, uri), inFlight: 0 };
    if (before !== undefined) void before.pool.close();
    clients.set(uri, client);
    return client;
  };
  const createPool = ({ address }: PodPeer, uri: string) => {
    const options = async () => {
      const { ca, cert, key } = await identity.current();
      const checkServerIdentity = (_host: string, { subjectaltname }: { readonly subjectaltname?: string }) =>
        urisOf(subjectaltname).includes(uri) ? undefined : new Error(`the server at ${address} is not ${uri}`);
      const server = { host: address, port, servername: PEER_SERVER_NAME, minVersion: "TLSv1.3" as const };
      return { ...server, ca, cert, key, checkServerIdentity };
    };
    const times = { connectMs: CONNECT_MS, handshakeMs: HANDSHAKE_MS, idleMs: IDLE_MS };
    return createServerPool({ address: formatAddress({ host: address, port }), options, ...times, clock });
  };
  return {
    inFlightAt: (peer: PodPeer): number => clients.get(podUri(peer))?.inFlight ?? 0,
    /** Closes the connections to all other pods once they are idle. */
    keep(peers: readonly PodPeer[]): void {
      if (peers === list) return;
      list = peers;
      const kept = new Set(peers.map(podUri));
      for (const [uri, { pool }] of clients) {
        if (kept.has(uri)) continue;
        clients.delete(uri);
        void pool.close();
      }
    },
    /** @throws MeshError as `exchange`; `UPSTREAM_UNREACHABLE` if nothing was sent */
    async send(peer: PodPeer, as: "owner" | "holder", sent: Sent): Promise<Reply> {
      const client = clientOf(peer);
      client.inFlight++;
      try {
        return await client.pool.send(sent, [FORWARDED, as]);
      } finally {
        client.inFlight--;
      }
    },
  };
}
