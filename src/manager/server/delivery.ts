// The delivery of one resource type to one proxy: the desired resource, the sent update and the answer; and
// the updates that deliveries share, so that a resource and its message are encoded once for all proxies.
// Pure. Invariants: at most one update is outstanding; only the newest desired resource is sent; only the
// proxy's own messages can reduce what it may be enforcing; an update is kept only by the deliveries that
// wait for its answer; the nonces of a stream grow.
import type { ManagerMessage, UpdateMessage } from "../../wire/messages.ts";
import type { ResourceType, Versioned } from "../../wire/resource-type.ts";
import { createWeakIndex } from "./weak-index.ts";

export interface Delivery<R extends Versioned = Versioned> {
  desired: R | undefined;
  acknowledged: R | undefined;
  outstanding: Outstanding<R> | undefined;
  /** Resources newer than `acknowledged` that the proxy may enforce although no ACK has come. */
  inDoubt: readonly R[];
  /** The proxy may also enforce resources that are not listed. Its first ACK ends that. */
  mayHoldMore: boolean;
  /** The highest version that the proxy has reported. */
  version: number;
  refusedDigest: string;
  problems: readonly string[];
  /** The nonce of the last update; 0 if there was none. */
  lastNonce: number;
}

interface Outstanding<R> {
  readonly resource: R;
  /** Undefined after the end of the stream, when no answer can come. */
  readonly update: UpdateMessage | undefined;
}

export function createDelivery<R extends Versioned>(fields: Partial<Delivery<R>> = {}): Delivery<R> {
  return {
    desired: undefined,
    acknowledged: undefined,
    outstanding: undefined,
    inDoubt: [],
    mayHoldMore: false,
    version: 0,
    refusedDigest: "",
    problems: [],
    lastNonce: 0,
    ...fields,
  };
}

/** Sets the resource that the proxy has to enforce. */
export function setDesired<R extends Versioned>(delivery: Delivery<R>, resource: R): void {
  delivery.desired = resource;
  if (resource.digest !== delivery.refusedDigest) delivery.problems = [];
}

/**
 * Takes the next update to send, which is then outstanding; undefined if there is none.
 * @param mayDiff true if the update may be a delta
 */
export function takeUpdate<R extends Versioned>(
  delivery: Delivery<R>,
  type: ResourceType<R>,
  updates: SharedUpdates,
  mayDiff: boolean,
): UpdateMessage | undefined {
  const { desired, acknowledged } = delivery;
  if (desired === undefined) return undefined;
  // The ACK may wait for a write that hangs, although the desired resource allows that write.
  if (isUndone(delivery)) giveUpOutstanding(delivery);
  if (delivery.outstanding !== undefined || desired.digest === delivery.refusedDigest) return undefined;
  const isCertain = delivery.inDoubt.length === 0 && !delivery.mayHoldMore;
  if (isCertain && desired.digest === acknowledged?.digest) return undefined;
  const base = mayDiff && isCertain ? acknowledged : undefined;
  const update = updates.get(type, base, desired, delivery.lastNonce);
  delivery.lastNonce = update.nonce;
  delivery.outstanding = { resource: desired, update };
  return update;
}

/** Records that the stream has ended: the proxy may enforce what is outstanding, and will not answer. */
export function endStream(delivery: Delivery): void {
  if (delivery.outstanding !== undefined) delivery.outstanding = { resource: delivery.outstanding.resource, update: undefined };
}

/**
 * Records an ACK: the proxy enforces this resource and no other. False if no update with this nonce is
 * outstanding.
 */
export function acknowledge(delivery: Delivery, nonce: number): boolean {
  if (delivery.outstanding?.update?.nonce !== nonce) return false;
  const { resource } = delivery.outstanding;
  Object.assign(delivery, {
    acknowledged: resource,
    version: Math.max(delivery.version, resource.version),
    outstanding: undefined,
    inDoubt: [],
    mayHoldMore: false,
    problems: [],
    refusedDigest: "",
  });
  return true;
}

/**
 * Records a NACK. "needs-whole": the proxy only lacks the base of the delta. Undefined if no update with this
 * nonce is outstanding.
 */
export function refuse(
  delivery: Delivery,
  { nonce, problems, needsWhole }: { readonly nonce: number; readonly problems: readonly string[]; readonly needsWhole: boolean },
): "needs-whole" | "refused" | undefined {
  if (delivery.outstanding?.update?.nonce !== nonce) return undefined;
  const { resource, update } = delivery.outstanding;
  delivery.outstanding = undefined;
  if (needsWhole && update.baseDigest !== "") return "needs-whole";
  delivery.refusedDigest = resource.digest;
  delivery.problems = problems;
  return "refused";
}

// The outstanding update differs from the acknowledged resource, and the acknowledged resource is desired
// again.
function isUndone({ desired, acknowledged, outstanding, inDoubt }: Delivery): boolean {
  if (outstanding === undefined || acknowledged === undefined || inDoubt.length > 0) return false;
  return desired?.digest === acknowledged.digest && outstanding.resource.digest !== acknowledged.digest;
}

// The proxy may still enforce the sent resource, until it acknowledges a newer update.
function giveUpOutstanding(delivery: Delivery): void {
  if (delivery.outstanding !== undefined) delivery.inDoubt = [...delivery.inDoubt, delivery.outstanding.resource];
  delivery.outstanding = undefined;
}

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
    const shared = updates.get(key);
    if (shared !== undefined && shared.nonce > lastNonce) return shared;
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
