// How one resource type gets to one proxy: what it is to enforce, what it was sent, and what it said to that. Pure. Invariants: at most one
// update is unanswered, and one that undoes it; newer resources are coalesced to the newest; what is known only gets narrower by what the
// proxy itself has said. Owned by the proxy registry, one for each type and proxy.
import type { UpdateMessage } from "../../wire/messages.ts";
import type { ResourceType, Versioned } from "../../wire/resource-type.ts";
import type { UpdateBodies } from "./update-bodies.ts";

export interface Delivery<R extends Versioned = Versioned> {
  desired: R | undefined;
  acknowledged: R | undefined;
  outstanding: Outstanding<R> | undefined;
  /** What the proxy may have come to enforce after `acknowledged`, without an ACK. */
  inDoubt: readonly R[];
  /** The proxy may enforce anything besides; over with its first ACK. */
  mayHoldMore: boolean;
  /** The highest version that the proxy has spoken of. */
  version: number;
  refusedDigest: string;
  problems: readonly string[];
  /** The nonce of the last update; 0 if there was none. */
  lastNonce: number;
}

interface Outstanding<R> {
  readonly resource: R;
  readonly nonce: number;
  readonly isDelta: boolean;
}

export function createDelivery<R extends Versioned>(known: Partial<Delivery<R>> = {}): Delivery<R> {
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
    ...known,
  };
}

/** The proxy is to enforce this from now on. */
export function setDesired<R extends Versioned>(delivery: Delivery<R>, resource: R): void {
  delivery.desired = resource;
  if (resource.digest !== delivery.refusedDigest) delivery.problems = [];
}

/**
 * The update that is due, which then is outstanding; undefined if there is none.
 * @param mayDiff whether it may be a delta
 */
export function nextUpdate<R extends Versioned>(
  delivery: Delivery<R>,
  type: ResourceType<R>,
  bodies: UpdateBodies,
  mayDiff: boolean,
): UpdateMessage | undefined {
  const { desired, acknowledged } = delivery;
  if (desired === undefined) return undefined;
  if (isUndone(delivery)) giveUpOutstanding(delivery); // its ACK may wait for a write that hangs, and the write is allowed again
  if (delivery.outstanding !== undefined || desired.digest === delivery.refusedDigest) return undefined;
  const isCertain = delivery.inDoubt.length === 0 && !delivery.mayHoldMore;
  if (isCertain && desired.digest === acknowledged?.digest) return undefined;
  const base = mayDiff && isCertain ? acknowledged : undefined;
  const delta = base && bodies.delta(type, base, desired);
  const nonce = ++delivery.lastNonce;
  delivery.outstanding = { resource: desired, nonce, isDelta: delta !== undefined };
  const { version, digest } = desired;
  return {
    nonce,
    resource: { type: type.name, version, digest, body: delta ?? bodies.whole(type, desired) },
    baseDigest: delta === undefined ? "" : (base?.digest ?? ""),
  };
}

/** The proxy has acknowledged: it enforces this and nothing else. False if that was not outstanding. */
export function acknowledge(delivery: Delivery, nonce: number): boolean {
  if (delivery.outstanding?.nonce !== nonce) return false;
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

/** The proxy has refused. "needs-whole": it only lacks the delta's base. Undefined if that was not outstanding. */
export function refuse(
  delivery: Delivery,
  { nonce, problems, needsWhole }: { readonly nonce: number; readonly problems: readonly string[]; readonly needsWhole: boolean },
): "needs-whole" | "refused" | undefined {
  if (delivery.outstanding?.nonce !== nonce) return undefined;
  const { resource, isDelta } = delivery.outstanding;
  delivery.outstanding = undefined;
  if (needsWhole && isDelta) return "needs-whole";
  delivery.refusedDigest = resource.digest;
  delivery.problems = problems;
  return "refused";
}

// The proxy was sent something else meanwhile, and is to have again what it acknowledged last.
function isUndone({ desired, acknowledged, outstanding, inDoubt }: Delivery): boolean {
  if (outstanding === undefined || acknowledged === undefined || inDoubt.length > 0) return false;
  return desired?.digest === acknowledged.digest && outstanding.resource.digest !== acknowledged.digest;
}

// The proxy may come to enforce what is on its way all the same, until it acknowledges something newer.
function giveUpOutstanding(delivery: Delivery): void {
  if (delivery.outstanding !== undefined) delivery.inDoubt = [...delivery.inDoubt, delivery.outstanding.resource];
  delivery.outstanding = undefined;
}
