// The contract's gRPC service for many simulated proxies in one process. Equal messages are decoded and encoded once, since the
// manager is under test. The bytes on the wire are those of a real proxy. Used by simulated-proxy.ts.
import type { ServiceDefinition } from "@grpc/grpc-js";
import { type Field, fieldsOf } from "../../../src/manager/proxies/protobuf-fields.ts";
import { createTableBytes, type TableBytes } from "../../../src/proxy/session/table-bytes.ts";
import type { Snapshot } from "../../../src/route/snapshot.ts";
import { loadMeshContract } from "../../../src/wire/load-proto.ts";
import type { ManagerMessage, ProxyMessage, SnapshotDeltaMessage, SnapshotMessage } from "../../../src/wire/messages.ts";
import { snapshotFromWire } from "../../../src/wire/snapshot-codec.ts";
import { applyDelta } from "../../../src/wire/snapshot-delta.ts";

const SNAPSHOT = 1; // of ManagerMessage
const [NONCE, VERSION, DIGEST] = [1, 2, 3]; // of Snapshot
// Shorter messages are decoded faster than looked up.
const MIN_SHARED_BYTES = 1_024;

export interface WireCounts {
  /** To the proxy. */
  bytes: number;
  /** From it. */
  bytesSaid: number;
}

export interface SharedWire {
  /** One proxy's share. */
  service(counts: WireCounts): ServiceDefinition;
  /** Equal snapshots have one table. */
  snapshot(message: SnapshotMessage): Snapshot;
  applied(base: Snapshot, delta: SnapshotDeltaMessage): Snapshot;
  /** For registrations: the hash of a table is computed once. */
  readonly tables: TableBytes;
}

export function createSharedWire(): SharedWire {
  const { service, routeTable } = loadMeshContract();
  const { Connect: method } = service;
  if (method === undefined) throw new Error("the contract has no method Connect");
  const messages = new Map<string, SnapshotMessage>();
  const snapshots = new Map<string, Snapshot>();

  const decode = (bytes: Buffer): ManagerMessage => {
    const plain = () => method.responseDeserialize(bytes) as ManagerMessage;
    if (bytes.length < MIN_SHARED_BYTES) return plain();
    const [field] = fieldsOf(bytes) ?? [];
    if (field?.number !== SNAPSHOT) return plain();
    const fields = fieldsOf(field.value) ?? [];
    const digest = Buffer.from(fields.find(({ number }) => number === DIGEST)?.value ?? []).toString();
    const known = messages.get(digest);
    if (known !== undefined) {
      const [nonce, version] = [lastNumber(fields, NONCE), lastNumber(fields, VERSION)];
      return { message: "snapshot", snapshot: { ...known, nonce, version } };
    }
    const message = plain();
    if ("snapshot" in message) messages.set(digest, message.snapshot);
    return message;
  };
  const shared = (snapshot: () => Snapshot, digest: string, version: number): Snapshot => {
    const known = snapshots.get(digest) ?? snapshot();
    snapshots.set(digest, known);
    return { ...known, version };
  };
  return {
    service: (counts) => ({
      ...service,
      Connect: {
        ...method,
        requestSerialize(message: ProxyMessage) {
          const bytes = method.requestSerialize(message);
          counts.bytesSaid += bytes.length;
          return bytes;
        },
        responseDeserialize(bytes: Buffer) {
          counts.bytes += bytes.length;
          return decode(bytes);
        },
      },
    }),
    snapshot: (message) => shared(() => snapshotFromWire(message), message.digest, message.version),
    tables: createTableBytes(routeTable),
    applied: (base, delta) => shared(() => applyDelta(base, delta), delta.digest, delta.version),
  };
}

// Nonces and versions are short numbers.
function lastNumber(fields: readonly Field[], number: number): number {
  const bytes = [...(fields.findLast((field) => field.number === number)?.whole.subarray(1) ?? [])];
  return bytes.reduce((sum, byte, index) => sum + (byte & 0x7f) * 128 ** index, 0);
}
