// Snapshots and deltas as bytes, each encoded once however many proxies are sent it, and the same bytes for all that are sent it under
// the same nonce. Invariant: the bytes are those of a ManagerMessage of the contract; of a field that stands twice the last one counts.
import { MeshError } from "../../base/errors.ts";
import type { Snapshot } from "../../route/snapshot.ts";
import type { ManagerMessage } from "../../wire/messages.ts";
import { snapshotToWire } from "../../wire/snapshot-codec.ts";
import type { SnapshotDelta } from "../../wire/snapshot-delta.ts";
import { createByteCache } from "./byte-cache.ts";
import { fieldsOf, messageField, numberField } from "./protobuf-fields.ts";

export interface SnapshotEncoder {
  snapshot(snapshot: Snapshot, nonce: number): Buffer;
  delta(delta: SnapshotDelta, nonce: number): Buffer;
}

const SNAPSHOT_FIELD = 1;
const DELTA_FIELD = 3;
const NONCE_FIELD = 1;
const VERSION_FIELD = 2;
// Some dozens of the largest ones: enough for all that is told at one time.
const MAX_CACHED_BYTES = 32 * 1024 * 1024;

/** @param serialize the contract's own for ManagerMessage */
export function createSnapshotEncoder(serialize: (message: ManagerMessage) => Uint8Array): SnapshotEncoder {
  const snapshots = createByteCache<Uint8Array>(MAX_CACHED_BYTES);
  const frames = createByteCache<Buffer>(MAX_CACHED_BYTES);
  const deltas = new WeakMap<SnapshotDelta, Uint8Array>();
  const bodyOf = (message: ManagerMessage): Uint8Array => {
    const [field] = fieldsOf(serialize(message)) ?? [];
    if (field === undefined) throw new MeshError("PROTO_INVALID", "encoding a message to a proxy: it is empty");
    return field.value;
  };
  const frame = (field: number, body: Uint8Array, version: number, nonce: number) =>
    messageField(field, [body, numberField(NONCE_FIELD, nonce), numberField(VERSION_FIELD, version)]);
  return {
    snapshot(snapshot, nonce) {
      const key = `${snapshot.digest} ${snapshot.version} ${nonce}`;
      const known = frames.get(key);
      if (known !== undefined) return known;
      let body = snapshots.get(snapshot.digest);
      if (body === undefined) {
        body = bodyOf({ snapshot: snapshotToWire({ ...snapshot, version: 0 }, 0) });
        snapshots.set(snapshot.digest, body, body.length);
      }
      const bytes = frame(SNAPSHOT_FIELD, body, snapshot.version, nonce);
      frames.set(key, bytes, bytes.length);
      return bytes;
    },
    delta(delta, nonce) {
      let body = deltas.get(delta);
      if (body === undefined) {
        body = bodyOf({ delta: { ...delta, version: 0, nonce: 0 } });
        deltas.set(delta, body);
      }
      return frame(DELTA_FIELD, body, delta.version, nonce);
    },
  };
}
