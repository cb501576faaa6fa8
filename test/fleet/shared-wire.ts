// The codec that many simulated proxies in one process share. Each snapshot is decoded once, since only the manager is measured.
// Invariant: the bytes on the wire are those that a real proxy reads and writes. Used by simulated-proxy.ts.

import type { ProxyMessage, ResourceMessage } from "../../src/mesh/contract/messages.ts";
import { ROUTE } from "../../src/mesh/contract/route-type.ts";
import type { Snapshot } from "../../src/mesh/ownership/snapshot.ts";
import { CONNECT } from "../../src/wire/load-proto.ts";

export interface WireCounts {
  /** To the proxy. */
  bytes: number;
  /** From the proxy. */
  bytesSaid: number;
}

export interface SharedWire {
  /** The method of the stream, counting, for one proxy. */
  method(counts: WireCounts): typeof CONNECT;
  /** Equal snapshots have one table. @param base of a delta */
  snapshot(resource: ResourceMessage, base?: Snapshot): Snapshot;
}

export function createSharedWire(): SharedWire {
  const snapshots = new Map<string, Snapshot>();
  const decode = (resource: ResourceMessage, base: Snapshot | undefined): Snapshot | undefined =>
    base === undefined ? ROUTE.decode(resource.body, resource) : ROUTE.delta?.apply(base, resource.body, resource);
  return {
    method: (counts) => ({
      ...CONNECT,
      requestSerialize(message: ProxyMessage) {
        const bytes = CONNECT.requestSerialize(message);
        counts.bytesSaid += bytes.length;
        return bytes;
      },
      responseDeserialize(bytes: Buffer) {
        counts.bytes += bytes.length;
        return CONNECT.responseDeserialize(bytes);
      },
    }),
    snapshot(resource, base) {
      const { digest, version } = resource;
      const known = snapshots.get(digest) ?? decode(resource, base);
      if (known === undefined) throw new Error("routes have no deltas");
      snapshots.set(digest, known);
      return { ...known, version };
    },
  };
}
