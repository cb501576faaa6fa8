// The delivery of one resource type to one proxy: the desired resource, the sent update and the answer. Pure.
// Invariants: at most one update is outstanding; only the newest desired resource is sent; only the proxy's
// own messages can reduce what it may be enforcing; the nonces of a stream grow.
import type { UpdateMessage } from "../../wire/messages.ts";
import type { ResourceType, Versioned } from "../../wire/resource-type.ts";
import type { SharedUpdates } from "./shared-resources.ts";

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
  /** Undefined after the end of the stream. */
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

export function setDesired<R extends Versioned>(delivery: Delivery<R>, resource: R): void {
  delivery.desired = resource;
  if (resource.digest !== delivery.refusedDigest) delivery.problems = [];
}

/** Takes the next update to send, which is then outstanding. @param mayDiff it may be a delta */
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

/** The proxy may still enforce the outstanding resource, and no answer will come. */
export function endStream(delivery: Delivery): void {
  if (delivery.outstanding !== undefined) delivery.outstanding = { resource: delivery.outstanding.resource, update: undefined };
}

/** The proxy enforces this resource and no other. False if no update with this nonce is outstanding. */
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

/** "needs-whole": the proxy lacks the base of the delta. Undefined if no such update is outstanding. */
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

// True if the acknowledged resource is desired again, and the outstanding update differs from it.
function isUndone({ desired, acknowledged, outstanding, inDoubt }: Delivery): boolean {
  if (outstanding === undefined || acknowledged === undefined || inDoubt.length > 0) return false;
  return desired?.digest === acknowledged.digest && outstanding.resource.digest !== acknowledged.digest;
}

// The proxy may still enforce the sent resource, until it acknowledges a newer update.
function giveUpOutstanding(delivery: Delivery): void {
  if (delivery.outstanding !== undefined) delivery.inDoubt = [...delivery.inDoubt, delivery.outstanding.resource];
  delivery.outstanding = undefined;
}
