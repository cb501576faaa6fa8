// What an attack is, and what it knows of its victims. Invariant: all of it is plain data, since the attackers are processes of their own
// (attacker.ts). The table of all attacks is attacks.ts.

/** A listener of a victim. */
export interface Endpoint {
  readonly host: string;
  readonly port: number;
}

/** A pod without processes, and its token for the manager. */
export interface FakePod {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly token: string;
}

/** The listeners of a sidecar that other pods can reach. */
export interface SidecarTarget {
  /** 5445. */
  readonly reviews: Endpoint;
  /** 5441. */
  readonly health: Endpoint;
  /** A namespace that this pod's subset owns. */
  readonly namespace: string;
}

export interface Targets {
  /** 9443, 5447 and 5448 of the manager. */
  readonly webhook: Endpoint;
  readonly mesh: Endpoint;
  readonly managerHealth: Endpoint;
  readonly sidecar: SidecarTarget;
  /** The API server, where a tenant may write objects in its namespace. */
  readonly kube: { readonly server: string; readonly caPem: string; readonly token: string };
  /** Whose tokens the attackers have. */
  readonly tenants: readonly FakePod[];
}

/** What one visit of an attacker has at hand. */
export interface Site {
  readonly targets: Targets;
  /** The address that this visit comes from. */
  readonly from: string;
  /** Counts the visits of this attack, from 0. */
  readonly number: number;
  readonly random: () => number;
  /** Fires when the attack is over: every connection ends. */
  readonly signal: AbortSignal;
}

export type Side = "manager" | "sidecar";

export interface Attack {
  readonly name: string;
  /** The process that it is meant for. */
  readonly on: Side;
  /** Visits a second, over all addresses. */
  readonly perSecond: number;
  /** Visits at a time, over all addresses; the next ones are left out. */
  readonly maxOpen: number;
  /** Makes what the visits need, before they are timed. */
  readonly prepare?: () => void;
  /** One visit. @returns how it ended, in a word, for the table */
  readonly visit: (site: Site) => Promise<string>;
}
