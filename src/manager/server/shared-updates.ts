// The updates in flight. Streams that get the same update share one message with one nonce, so that the
// resource and the message are encoded once for all of them. Invariants: an update is kept only by the
// deliveries that wait for its answer; the nonces of a stream grow. Used by the proxy registry, and for
// encoding by the mesh server.
import type { ManagerMessage, UpdateMessage } from "../../wire/messages.ts";
import type { ResourceType, Versioned } from "../../wire/resource-type.ts";
import { createWeakIndex } from "./weak-index.ts";

export interface SharedUpdates {
  /**
   * An update to `next`: the delta from `base`, or the whole if there is no base or no delta.
   * @param lastNonce the last nonce of the stream; the update has a higher one
   */
  get<R extends Versioned>(type: ResourceType<R>, base: R | undefined, next: R, lastNonce: number): UpdateMessage;
}

export function createSharedUpdates(): SharedUpdates {
  const updates = createWeakIndex<UpdateMessage>();
  const newestNonces = new Map<string, number>();
  const get: SharedUpdates["get"] = (type, base, next, lastNonce) => {
    const key = [type.name, base?.digest ?? "", next.digest, next.version].join(" ");
    const known = updates.get(key);
    if (known !== undefined && known.nonce > lastNonce) return known;
    const update = make(type, base, next, lastNonce);
    updates.set(key, update);
    return update;
  };
  const make: SharedUpdates["get"] = (type, base, next, lastNonce) => {
    const body = base === undefined ? type.encode(next) : type.delta?.encode(base, next);
    if (body === undefined) return get(type, undefined, next, lastNonce);
    const nonce = (newestNonces.get(type.name) ?? 0) + 1;
    newestNonces.set(type.name, nonce);
    const { version, digest } = next;
    return { nonce, resource: { type: type.name, version, digest, body }, baseDigest: base?.digest ?? "" };
  };
  return { get };
}

/** The encoder of messages to proxies, which encodes a shared update once. */
export function encodeUpdatesOnce(encode: (message: ManagerMessage) => Buffer): (message: ManagerMessage) => Buffer {
  const encoded = new WeakMap<UpdateMessage, Buffer>();
  return (message) => {
    if (!("update" in message)) return encode(message);
    const bytes = encoded.get(message.update) ?? encode(message);
    encoded.set(message.update, bytes);
    return bytes;
  };
}
