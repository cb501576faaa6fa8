// Who may hold the connections of a listener that strangers can reach. The egress proxy uses the same rule for tunnels, with
// clusters and servers in place of addresses. Each address has a fair share: the
// number of places divided by the number of addresses that are present. Invariants: an address below its
// share always gets a place; one that holds no more never loses one; an event costs constant time on average.
import { BoundedMap } from "./bounded-map.ts";
import type { Clock } from "./clock.ts";
import { createRanking } from "./ranking.ts";

export interface PlacesOptions {
  /** Connections at a time. */
  readonly max: number;
  /** Shares of an address whose client has proved its identity. Default 1: a free proof must give nothing. */
  readonly provedShares?: number;
  readonly clock: Pick<Clock, "monotonicMs">;
}

/**
 * An address that must give up a place loses its oldest connection in the first of these stages that has one.
 * "unproved" has proved nothing yet. "busy" has a whole request that is being answered, and is cut only if
 * all connections of the addresses above their share are busy.
 */
export type Stage = "unproved" | "idle" | "busy";

export interface Place {
  become(stage: Stage): void;
  /** The client has proved who it is: its address has more shares for some minutes. */
  noteProof(): void;
  leave(): void;
}

export type Places = ReturnType<typeof createPlaces>;

/** How long a proof counts: longer than a failover and the restarts after it. */
const REMEMBERED_MS = 10 * 60_000;
/** Enough for the nodes of a large cluster. */
const MAX_REMEMBERED = 4_096;

interface HeldPlace {
  readonly cut: () => void;
}

/** An address, and its connections by stage, the oldest first. */
interface Holder extends Readonly<Record<Stage, Set<HeldPlace>>> {
  readonly address: string;
  shares: number;
}

export function createPlaces({ max, provedShares = 1, clock }: PlacesOptions) {
  const holders = new Map<string, Holder>();
  /** When each address has last proved something. */
  const provedMs = new BoundedMap<string, number>(MAX_REMEMBERED);
  const byTotal = createRanking<Holder>();
  /** Addresses with a connection that is not busy. */
  const givers = createRanking<Holder>();
  let takenPlaces = 0;
  let shares = 0;

  const holderOf = (address: string): Holder => {
    const isKnown = clock.monotonicMs() - (provedMs.get(address) ?? Number.NEGATIVE_INFINITY) < REMEMBERED_MS;
    return { address, shares: isKnown ? provedShares : 1, unproved: new Set(), idle: new Set(), busy: new Set() };
  };
  const rank = (holder: Holder) => {
    const level = levelOf(holder);
    byTotal.move(holder, level);
    givers.move(holder, holder.unproved.size + holder.idle.size > 0 ? level : 0);
  };
  const enter = (holder: Holder, heldPlace: HeldPlace) => {
    if (totalOf(holder) === 0) {
      holders.set(holder.address, holder);
      shares += holder.shares;
    }
    holder.unproved.add(heldPlace);
    takenPlaces++;
    rank(holder);
  };
  const remove = (holder: Holder, heldPlace: HeldPlace) => {
    if (stageOf(holder, heldPlace)?.delete(heldPlace) !== true) return;
    takenPlaces--;
    rank(holder);
    if (totalOf(holder) > 0) return;
    holders.delete(holder.address);
    shares -= holder.shares;
  };

  /** False if there is no room for one more connection of the address. */
  const makeRoom = (newcomer: Holder): boolean => {
    const isPresent = totalOf(newcomer) > 0;
    const share = Math.floor(max / (shares + (isPresent ? 0 : newcomer.shares)));
    const isBelowShare = totalOf(newcomer) < share * newcomer.shares;
    // All places are taken, so if one address is below its share, another is above.
    const bound = isBelowShare ? share : levelOf(newcomer);
    const quietGiver = givers.topLevel > bound ? givers.top : undefined;
    const giver = quietGiver ?? (isBelowShare ? byTotal.top : newcomer);
    if (giver === undefined) return false;
    const heldPlace = oldest(giver.unproved) ?? oldest(giver.idle) ?? (isBelowShare ? oldest(giver.busy) : undefined);
    if (heldPlace === undefined) return false;
    remove(giver, heldPlace);
    heldPlace.cut();
    return true;
  };

  return {
    /**
     * Undefined if there is no place for this address.
     * @param cut closes the connection, whose place is already free then
     */
    take(address: string, cut: () => void): Place | undefined {
      const holder = holders.get(address) ?? holderOf(address);
      if (takenPlaces >= max && !makeRoom(holder)) return undefined;
      const heldPlace: HeldPlace = { cut };
      enter(holder, heldPlace);
      return {
        become(stage) {
          if (stageOf(holder, heldPlace)?.delete(heldPlace) !== true) return;
          holder[stage].add(heldPlace);
          rank(holder);
        },
        noteProof() {
          if (stageOf(holder, heldPlace) === undefined) return;
          provedMs.set(address, clock.monotonicMs());
          shares += provedShares - holder.shares;
          holder.shares = provedShares;
          rank(holder);
        },
        leave: () => remove(holder, heldPlace),
      };
    },
    get takenPlaces(): number {
      return takenPlaces;
    },
  };
}

function totalOf({ unproved, idle, busy }: Holder): number {
  return unproved.size + idle.size + busy.size;
}

/** Connections for each share, rounded up. */
function levelOf(holder: Holder): number {
  return Math.ceil(totalOf(holder) / holder.shares);
}

function stageOf({ unproved, idle, busy }: Holder, heldPlace: HeldPlace): Set<HeldPlace> | undefined {
  return [unproved, idle, busy].find((stage) => stage.has(heldPlace));
}

function oldest(stage: ReadonlySet<HeldPlace>): HeldPlace | undefined {
  return stage.values().next().value;
}

/** The address of a socket's other side in one form; undefined if the other side is gone. */
export function clientAddress({ remoteAddress }: { readonly remoteAddress?: string | undefined }): string | undefined {
  return remoteAddress === undefined ? undefined : clientOf(remoteAddress);
}

/**
 * A client's address in the form that is counted: a listener on all addresses sees an IPv4 address as
 * `::ffff:10.0.0.1`. Each IPv6 address counts, not its /64, which all pods of a node may share.
 */
export function clientOf(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/i, "");
}
