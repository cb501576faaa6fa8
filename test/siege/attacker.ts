// A process of attackers, controlled by IPC (attackers.ts). Each attack has a rate and a bound of its own, so that the attackers cannot be the ones
// that use the machine up. Invariant: a change of the targets ends every visit to the old ones.
import { setTimeout as sleep } from "node:timers/promises";
import { seededRandom } from "../support/random.ts";
import type { Attack, Targets } from "./attack.ts";
import { ATTACKS } from "./attacks.ts";

export interface Order {
  readonly names: readonly string[];
  readonly targets: Targets;
  /** Addresses of the attackers. */
  readonly addresses: readonly string[];
  readonly seed: number;
  /** Part of each attack's rate and bound. */
  readonly strength: number;
}

/** The outcomes of an attack's visits and how often each came; "left out" are visits beyond the attack's bound. */
export type Outcomes = Readonly<Record<string, Readonly<Record<string, number>>>>;

const TICK_MS = 50;
const outcomes: Record<string, Record<string, number>> = {};
/** Visits that go on, by attack. */
const open = new Map<string, number>();
let current = new AbortController();

function count(attack: string, outcome: string): void {
  const counts = outcomes[attack] ?? {};
  outcomes[attack] = counts;
  counts[outcome] = (counts[outcome] ?? 0) + 1;
}

function change(attack: string, by: number): void {
  open.set(attack, (open.get(attack) ?? 0) + by);
}

async function keepUp(attack: Attack, { targets, addresses, seed, strength }: Order, signal: AbortSignal): Promise<void> {
  const { name, perSecond, maxOpen, visit } = attack;
  const random = seededRandom(seed);
  const startedMs = performance.now();
  const bound = Math.max(1, Math.round(maxOpen * strength));
  for (let number = 0; !signal.aborted; await sleep(TICK_MS)) {
    for (; number <= ((performance.now() - startedMs) / 1000) * perSecond * strength; number++) {
      if ((open.get(name) ?? 0) >= bound) {
        count(name, "left out");
        continue;
      }
      change(name, 1);
      const from = addresses[number % addresses.length] ?? "127.0.0.11";
      void visit({ targets, from, number, random, signal })
        .catch((error: unknown) => `failed: ${String(error)}`)
        .then((outcome) => {
          change(name, -1);
          if (!signal.aborted) count(name, outcome);
        });
    }
  }
}

/** Before the first order: the names of all attacks that may come. */
interface Preparation {
  readonly prepare: readonly string[];
}

process.on("message", (order: Order | Preparation | "report") => {
  if (order === "report") {
    for (const [name, count] of open) if (count > 0) outcomes[name] = { ...outcomes[name], "still there": count };
    return void process.send?.(outcomes satisfies Outcomes);
  }
  if ("prepare" in order) {
    for (const { name, prepare } of ATTACKS) if (order.prepare.includes(name)) prepare?.();
    return void process.send?.("prepared");
  }
  current.abort();
  current = new AbortController();
  const { signal } = current;
  for (const attack of ATTACKS) if (order.names.includes(attack.name)) void keepUp(attack, order, signal);
});
process.on("disconnect", () => process.exit(0));
