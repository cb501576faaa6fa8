// The judgement of a siege: what was promised about the manager and the sidecars, and whether it was kept.
// Pure.
import type { Summary } from "./series.ts";
import type { Vitals } from "./vitals.ts";

export interface Bounds {
  /** Of every honest client of the manager. */
  readonly managerP99Ms: number;
  readonly managerRssMb: number;
  /** How long no call of one honest client may succeed. */
  readonly longestGapMs: number;
  /** How much an attack on a sidecar may add to its operator's p99. */
  readonly addedP99Ms: number;
  readonly sidecarRssMb: number;
  /** The age of the manager's lease, which it holds for 15 s. */
  readonly leaseMs: number;
  readonly moveMs: number;
}

/** What the issue promises. */
export const PROMISED: Bounds = {
  managerP99Ms: 1_000,
  managerRssMb: 400,
  longestGapMs: 5_000,
  addedP99Ms: 1,
  sidecarRssMb: 200,
  leaseMs: 10_000,
  moveMs: 30_000,
};

/**
 * For half a minute on any machine, with programs that run from their sources. Of so few calls the p99 is the
 * slowest; it must be before the API server gives up, after 10 s.
 */
export const LOOSE: Bounds = {
  managerP99Ms: 9_000,
  managerRssMb: 480,
  longestGapMs: 8_000,
  addedP99Ms: 2_000,
  sidecarRssMb: 260,
  leaseMs: 14_000,
  moveMs: 30_000,
};

export type Summaries = Readonly<Record<string, Summary>>;

export interface Figures {
  /** The honest clients of each side. */
  readonly manager: Summaries;
  readonly sidecar: Summaries;
  /** The operator's calls while the same attack goes to another sidecar. */
  readonly aside: Summaries;
  readonly moves: Summary;
  /**
   * Calls of a process that nobody attacks: what the machine itself takes. Added to the bounds of times,
   * except of what an attack adds.
   */
  readonly control: Summary;
  readonly vitals: Vitals;
  /** The last words of processes that have ended, by program. */
  readonly deaths: Readonly<Record<string, readonly string[]>>;
}

export interface Verdict {
  readonly what: string;
  readonly value: string;
  readonly bound: string;
  readonly isKept: boolean;
}

const MANAGER = "manager";

export function judge({ manager, sidecar, aside, moves, control, vitals, deaths }: Figures, promised: Bounds): Verdict[] {
  const bounds = {
    ...promised,
    managerP99Ms: promised.managerP99Ms + control.p99Ms,
    longestGapMs: promised.longestGapMs + control.longestGapMs,
  };
  const atMost = (what: string, value: number, bound: number, unit: string): Verdict => {
    const rounded = Math.round(value * 10) / 10;
    return { what, value: `${rounded} ${unit}`, bound: `${bound} ${unit}`, isKept: rounded <= bound };
  };
  const served = (name: string, { count, failed, failure, longestGapMs }: Summary): Verdict => {
    const value = `${longestGapMs} ms (${failed} of ${count} failed${failure === "" ? "" : `: ${failure}`})`;
    const isKept = count > 0 && failed < count && longestGapMs <= bounds.longestGapMs;
    return { what: `${name}: longest time without service`, value, bound: `${bounds.longestGapMs} ms`, isKept };
  };
  return [
    ...Object.entries(manager).flatMap(([name, summary]) => [
      atMost(`${name}: p99`, summary.p99Ms, bounds.managerP99Ms, "ms"),
      served(name, summary),
    ]),
    ...Object.entries(sidecar).map(([name, summary]) => served(name, summary)),
    ...Object.entries(aside).map(([name, quiet]) =>
      atMost(
        `${name}: added to p99 ${quiet.p99Ms} ms`,
        (sidecar[name]?.p99Ms ?? Number.NaN) - quiet.p99Ms,
        bounds.addedP99Ms,
        "ms",
      ),
    ),
    atMost(`moves: longest (${moves.count}, ${moves.failed} failed)`, moves.maxMs, bounds.moveMs, "ms"),
    atMost("oldest lease of the manager", vitals.oldestLeaseMs, bounds.leaseMs, "ms"),
    atMost("changes of the leader", vitals.leaseTransitions, 0, ""),
    ...Object.entries(vitals.rssMb).map(([name, rss]) =>
      atMost(`${name}: RSS`, rss, name === MANAGER ? bounds.managerRssMb : bounds.sidecarRssMb, "MB"),
    ),
    ...Object.entries(deaths).map(([name, all]) => atMost(`${name}: ended by itself`, all.length, 0, "times")),
  ];
}
