// A siege: all attacks together, honest clients meanwhile, and the figures of both. The attack on the
// sidecars changes sides every few seconds: now at the measured sidecar, now at the other one of the same
// machine. So what is added to the operator's times is the sidecar's and not the machine's, which the
// attackers load in the same way in both halves.
import { setTimeout as sleep } from "node:timers/promises";
import { seededRandom } from "../support/random.ts";
import type { Attack, Targets } from "./attack.ts";
import type { Outcomes } from "./attacker.ts";
import { startAttackers } from "./attackers.ts";
import { controlClient } from "./honest/control.ts";
import { managerClients } from "./honest/manager-clients.ts";
import { startMover } from "./honest/mover.ts";
import { type HonestClient, type Pace, seriesNow, startPace } from "./honest/pace.ts";
import { OPERATOR_CLIENTS, sidecarClients } from "./honest/sidecar-clients.ts";
import type { Figures, Summaries } from "./judge.ts";
import type { Series } from "./series.ts";
import { type Turn, turnsOf } from "./turns.ts";
import { rssOf, watchVitals } from "./vitals.ts";
import type { World } from "./world.ts";

export interface SiegeOptions {
  readonly attacks: readonly Attack[];
  readonly seconds: number;
  readonly seed: number;
  /** Part of each attack's rate and bound; the default is 1. */
  readonly strength?: number;
  /** How long the attack stays at one sidecar. */
  readonly windowSeconds: number;
  readonly onLine?: (line: string) => void;
}

export interface SiegeReport extends Figures {
  readonly outcomes: Outcomes;
}

/** After the attack has turned, its last connections end. */
const SETTLE_MS = 1_000;

export async function runSiege(world: World, options: SiegeOptions): Promise<SiegeReport> {
  const { attacks, seconds, seed, strength = 1, windowSeconds, onLine = () => undefined } = options;
  const nextTurn = turnsOf(attacks, seededRandom(seed));
  const attackers = await startAttackers(attacks, { seed, strength });
  const manager = startAll(managerClients(world));
  const sidecar = startAll(sidecarClients(world));
  const [control] = startAll([controlClient(world)]) as [Measured];
  const mover = startMover(world);
  const vitals = watchVitals(world);
  try {
    for (const client of [...manager, control]) client.pace.into(client.under);
    const endMs = performance.now() + seconds * 1000;
    while (performance.now() < endMs - 2 * SETTLE_MS) {
      const turn = nextTurn();
      for (const { pace } of sidecar) pace.into(undefined);
      attackers.aim(turn.attacks, targetsOf(world, turn.at));
      await sleep(SETTLE_MS);
      for (const { pace, under, aside } of sidecar) pace.into(turn.at === "measured" ? under : aside);
      await sleep(Math.min(windowSeconds * 1000 - SETTLE_MS, Math.max(0, endMs - performance.now())));
      onLine(lineOf(world, turn));
    }
    const outcomes = await attackers.outcomes();
    // Before the clients, since those that wait for a manager that is gone take their time.
    const seen = await vitals.stop();
    const deaths = Object.fromEntries(
      [world.manager, world.measured, world.decoy].map(({ name, deaths }) => [name, [...deaths]]),
    );
    await attackers.stop();
    await Promise.all([...manager, ...sidecar, control].map(({ pace }) => pace.stop()));
    await mover.stop();
    const aside = sidecar.filter(({ name }) => OPERATOR_CLIENTS.includes(name));
    return {
      outcomes,
      manager: summaries(manager, "under"),
      sidecar: summaries(sidecar, "under"),
      aside: summaries(aside, "aside"),
      moves: mover.series.summary(),
      control: control.under.summary(),
      vitals: seen,
      deaths,
    };
  } finally {
    await attackers.stop();
  }
}

interface Measured {
  readonly name: string;
  readonly pace: Pace;
  /** While the attack is at the measured sidecar; for the manager's clients always. */
  readonly under: Series;
  readonly aside: Series;
}

function startAll(clients: readonly HonestClient[]): Measured[] {
  return clients.map((client) => ({ name: client.name, pace: startPace(client), under: seriesNow(), aside: seriesNow() }));
}

function summaries(all: readonly Measured[], of: "under" | "aside"): Summaries {
  return Object.fromEntries(all.map((one) => [one.name, one[of].summary()]));
}

export function targetsOf({ manager, measured, decoy, apiServer, tenants }: World, at: "measured" | "decoy"): Targets {
  const { server, caPem, token } = apiServer;
  return {
    webhook: manager.webhook,
    mesh: manager.mesh,
    managerHealth: manager.health,
    sidecar: (at === "measured" ? measured : decoy).target,
    kube: { server, caPem, token },
    tenants,
  };
}

function lineOf({ manager, measured, decoy }: World, { attacks, at }: Turn): string {
  const ends = [manager, measured, decoy].map(
    ({ name, deaths, supervised }) => `${name} ended ${deaths.length} times, RSS ${rssOf(supervised)} MB`,
  );
  return `${attacks.length} attacks, those on a sidecar on the ${at} one: ${ends.join(", ")}`;
}
