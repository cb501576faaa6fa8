// A run of the chaos: for some time things are killed, stopped and edited at random; then it is quiet, and everything must be as it
// was asked for within half a minute, but for work whose operator's informer client-go still holds back, as the audit log has it; and at
// last the judge reads that log. What is done depends on the seed alone; what comes of it depends on the machine as well. Called by `npm run chaos` and test/e2e/alone/chaos.test.ts.
import { setTimeout as sleep } from "node:timers/promises";
import { seededRandom } from "../support/random.ts";
import { circumstances } from "./circumstances.ts";
import { createDeeds, type Deeds } from "./deeds.ts";
import { askingsOf, longestSleepMs } from "./informers.ts";
import { faultText, judge } from "./judge.ts";
import { CANARY, ENDINGS } from "./ledger.ts";
import { type Outcome, untilAsAsked } from "./until-as-asked.ts";
import { APP, type ChaosWorld, startChaosWorld } from "./world.ts";

export interface ChaosOptions {
  readonly seconds: number;
  readonly seed: number;
  /** Also deletes pods' objects while their processes go on; default false. */
  readonly lostNodes?: boolean;
  /** Told what is done, with the time in seconds in front. */
  readonly onLine?: (line: string) => void;
  /** Where the control plane's folder, with its audit log, is kept; default: nowhere. */
  readonly dir?: string;
  /** Passes on what all processes say to stderr; default false. */
  readonly verbose?: boolean;
}

export interface ChaosReport {
  readonly seed: number;
  /** Faults that the judge found. */
  readonly faults: readonly string[];
  /** What had not become as asked for in time. */
  readonly laggards: readonly string[];
  /** From the last deed to the whole world as asked for. */
  readonly convergedMs: number;
  /** How long of that a leader's informer had asked nothing, and nobody told it anything. */
  readonly sleptMs: number;
  readonly deeds: number;
  readonly edits: number;
  readonly namespaces: number;
  readonly judgedWrites: number;
  readonly handovers: number;
  /** How often the supervisor started something again. */
  readonly restarts: number;
}

const NAMESPACES = 12;
const MAX_NAMESPACES = 40;
/** From the last deed until everything is as asked for. */
const QUIET_MS = 30_000;
/** For how much longer, at most, client-go may hold an informer back: see informers.ts. */
const REFLECTOR_MS = 60_000;

export async function runChaos(options: ChaosOptions): Promise<ChaosReport> {
  const { seconds, seed, lostNodes = false, onLine = () => {} } = options;
  const world = await startChaosWorld({ ...options, random: seededRandom(seed + 2), namespaces: NAMESPACES });
  const start = performance.now();
  const say = (line: string) => onLine(`${((performance.now() - start) / 1000).toFixed(1).padStart(6)} ${line}`);
  try {
    await untilAsAsked(world, { quietMs: 60_000, reflectorMs: 0 });
    say("all as asked for; the chaos begins");
    const over = AbortSignal.timeout(seconds * 1000);
    const deedsOf = createDeeds(world, seededRandom(seed), { lostNodes });
    const pauses = seededRandom(seed + 3);
    const [deeds, edits] = await Promise.all([breakThings(deedsOf, pauses, over, say), editThings(world, seed + 1, over, say)]);
    const outcome = await untilAsAsked(world, { quietMs: QUIET_MS, reflectorMs: REFLECTOR_MS });
    const { left, fromMs, toMs } = outcome;
    const convergedMs = toMs - fromMs;
    const sleptMs = sleptIn(world, outcome);
    say(outcomeText(outcome, sleptMs));
    if (left.length > 0) for (const line of await circumstances(world).catch((error: unknown) => [String(error)])) say(line);
    const verdict = judge({
      writes: world.mesh.podWrites(),
      subsetOf: world.subsetOf,
      placeOf,
      wishesOf: (place) => fixedWishes(place) ?? world.ledger.wishesOf(place),
    });
    const faults = verdict.faults.map(faultText);
    for (const fault of faults) say(`FAULT ${fault}`);
    const processes = [...world.pods.values()].flatMap((pod) => [pod.processes.proxy, pod.processes.operator]);
    return {
      seed,
      faults,
      laggards: left,
      convergedMs,
      sleptMs,
      deeds,
      edits,
      namespaces: world.ledger.namespaces.length,
      judgedWrites: verdict.judged,
      handovers: verdict.handovers,
      restarts: [...world.mesh.managers, ...processes].reduce((sum, process) => sum + (process?.restarts ?? 0), 0),
    };
  } finally {
    await world.stop();
  }
}

/** How long of the wait the leader's informer that asked last had asked nothing. */
function sleptIn({ kube }: ChaosWorld, { leaders, fromMs, toMs }: Outcome): number {
  const askings = askingsOf(kube.audit(), kube.startedAtMs);
  return Math.round(longestSleepMs(askings, leaders, fromMs, toMs));
}

function outcomeText({ left, fromMs, toMs, ownedMs, refused }: Outcome, sleptMs: number): string {
  const all =
    left.length === 0 ? `all as asked for, ${toMs - fromMs} ms after the last deed` : `not as asked for: ${left.join("; ")}`;
  const owned = ownedMs === undefined ? "ownership is not" : `ownership ${ownedMs - fromMs} ms after the last deed`;
  return `${all}; ${owned}; an informer slept for ${sleptMs} ms of that; proxies refused ${refused} watches since for want of a list`;
}

async function breakThings(deeds: Deeds, random: () => number, over: AbortSignal, say: (line: string) => void): Promise<number> {
  let count = 0;
  for (; !over.aborted; count++) {
    say(await deeds.next());
    await sleep(200 + random() * 2_300);
  }
  await deeds.untilQuiet();
  return count;
}

async function editThings(world: ChaosWorld, seed: number, over: AbortSignal, say: (line: string) => void): Promise<number> {
  const random = seededRandom(seed);
  const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] as T;
  const { ledger } = world;
  let count = 0;
  for (; !over.aborted; count++) {
    const dice = random();
    if (dice < 0.12) {
      // One that the rules do not name anyhow, so that its owner changes.
      const namespace = pick(ledger.namespaces.filter((name) => ledger.isLabelled(name) === (ledger.ownerOf(name) === CANARY)));
      await world.relabel(namespace);
      say(`relabelled ${namespace}: it is ${nameOf(ledger.ownerOf(namespace))}'s`);
    } else if (dice < 0.15 && ledger.namespaces.length < MAX_NAMESPACES) {
      const namespace = await world.bearNamespace(random() < 0.5);
      say(`created ${namespace}: it is ${nameOf(ledger.ownerOf(namespace))}'s`);
    } else if (dice < 0.18) {
      await world.editRules(pick(ENDINGS.filter((ending) => ending !== ledger.ending)));
      say(`edited the rules: ${CANARY} has what is labelled, and ${ledger.ending === "" ? "nothing else" : ledger.ending}`);
    } else {
      await world.editFoo(pick(ledger.namespaces), Math.floor(random() * 3), `edit ${count}`);
    }
    await sleep(random() * 300);
  }
  return count;
}

// Everything in a namespace moves together; a lock is its subset's for ever.
function placeOf({
  namespace,
  resource,
  name,
}: {
  readonly namespace: string;
  readonly resource: string;
  readonly name: string;
}) {
  const isLock = resource === "leases" && namespace === APP.namespace;
  return isLock ? `lock ${name}` : namespace;
}

function fixedWishes(place: string) {
  if (place === `lock ${APP.name}---${CANARY}`) return [{ sinceMs: 0, subset: CANARY }];
  return place === `lock ${APP.name}` || place === APP.namespace ? [{ sinceMs: 0, subset: "" }] : undefined;
}

function nameOf(subset: string): string {
  return subset === "" ? "the default subset" : subset;
}
