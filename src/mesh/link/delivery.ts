// The delivery of one resource type to one proxy: the desired resource, the sent update and the answer. Pure.
// Invariants: at most one update is outstanding, and all others that have no answer are in doubt. Only the newest
// desired resource is sent. Only the proxy's own messages can reduce what it may be enforcing. Nonces grow, also
// over streams, so a late answer meets no other update.
import type { UpdateMessage } from "../contract/messages.ts";
import type { ResourceType, Versioned } from "../contract/resource-type.ts";

export interface Delivery<R extends Versioned = Versioned> {
  readonly desired: R | undefined;
  readonly acknowledged: R | undefined;
  readonly outstanding: Outstanding<R> | undefined;
  /** Resources newer than `acknowledged` that the proxy may enforce although no ACK has come. */
  readonly inDoubt: readonly R[];
  /** The proxy may also enforce resources that are not listed. Its first ACK ends that. */
  readonly mayHoldMore: boolean;
  /** The highest version that the proxy has reported. */
  readonly version: number;
  readonly refusedDigest: string;
  readonly problems: readonly string[];
  /** The nonce of the last update; 0 if there was none. */
  readonly lastNonce: number;
}

interface Outstanding<R> {
  readonly resource: R;
  /** Undefined after the end of the stream. */
  readonly update: UpdateMessage | undefined;
}

export interface Updates {
  /** The delta from `base`, or the whole without one, with a nonce higher than the stream's last one. */
  get<R extends Versioned>(type: ResourceType<R>, base: R | undefined, next: R, lastNonce: number): UpdateMessage;
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

export function withDesired<R extends Versioned>(delivery: Delivery<R>, desired: R): Delivery<R> {
  const { refusedDigest, problems } = delivery;
  return { ...delivery, desired, problems: desired.digest === refusedDigest ? problems : [] };
}

/** The update to send next, which is then outstanding; undefined if there is none. @param mayDiff it may be a delta */
export function nextUpdate<R extends Versioned>(
  before: Delivery<R>,
  type: ResourceType<R>,
  updates: Updates,
  mayDiff: boolean,
): { readonly delivery: Delivery<R>; readonly update: UpdateMessage | undefined } {
  // The ACK may wait for a write that hangs. The desired resource allows that write, so it is sent without that ACK.
  const delivery = isUndone(before) ? withoutOutstanding(before) : before;
  const { desired, acknowledged } = delivery;
  const isCertain = delivery.inDoubt.length === 0 && !delivery.mayHoldMore;
  const isSent = isCertain && desired?.digest === acknowledged?.digest;
  if (desired === undefined || delivery.outstanding !== undefined || desired.digest === delivery.refusedDigest || isSent)
    return { delivery, update: undefined };
  const base = mayDiff && isCertain ? acknowledged : undefined;
  const update = updates.get(type, base, desired, delivery.lastNonce);
  return { delivery: { ...delivery, lastNonce: update.nonce, outstanding: { resource: desired, update } }, update };
}

/** The proxy may still enforce the outstanding resource, and no answer will come. */
export function withoutStream<R extends Versioned>(delivery: Delivery<R>): Delivery<R> {
  const { outstanding } = delivery;
  return outstanding === undefined ? delivery : { ...delivery, outstanding: { ...outstanding, update: undefined } };
}

/** The proxy enforces this resource and no other. Undefined if no update with this nonce is outstanding. */
export function acknowledge<R extends Versioned>(delivery: Delivery<R>, nonce: number): Delivery<R> | undefined {
  if (delivery.outstanding?.update?.nonce !== nonce) return undefined;
  const { resource } = delivery.outstanding;
  const { desired, lastNonce } = delivery;
  const version = Math.max(delivery.version, resource.version);
  return createDelivery({ desired, lastNonce, acknowledged: resource, version });
}

/**
 * `isRefused`: the proxy enforces what it has enforced before. Otherwise it lacks the base of the delta.
 * Undefined if no update with this nonce is outstanding.
 */
export function refuse<R extends Versioned>(
  delivery: Delivery<R>,
  { nonce, problems, needsWhole }: { readonly nonce: number; readonly problems: readonly string[]; readonly needsWhole: boolean },
): { readonly delivery: Delivery<R>; readonly isRefused: boolean } | undefined {
  if (delivery.outstanding?.update?.nonce !== nonce) return undefined;
  const { resource, update } = delivery.outstanding;
  const without = { ...delivery, outstanding: undefined };
  if (needsWhole && update.baseDigest !== "") return { delivery: without, isRefused: false };
  return { delivery: { ...without, refusedDigest: resource.digest, problems }, isRefused: true };
}

// True if the acknowledged resource is desired again, and the outstanding update differs from it.
function isUndone({ desired, acknowledged, outstanding, inDoubt }: Delivery): boolean {
  if (outstanding === undefined || acknowledged === undefined || inDoubt.length > 0) return false;
  return desired?.digest === acknowledged.digest && outstanding.resource.digest !== acknowledged.digest;
}

// The proxy may still enforce the sent resource, until it acknowledges a newer update.
function withoutOutstanding<R extends Versioned>(delivery: Delivery<R>): Delivery<R> {
  const { outstanding, inDoubt } = delivery;
  const resources = outstanding === undefined ? inDoubt : [...inDoubt, outstanding.resource];
  return { ...delivery, outstanding: undefined, inDoubt: resources };
}
