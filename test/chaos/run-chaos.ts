// One chaos run. For some time it kills and stops processes and edits objects at random. Then everything must
// converge within half a minute, except work of an operator with an informer that client-go delays. At last
// the ownership check reads the audit log.
//
// The seed alone decides the actions. Their effects also depend on the machine. Called by `npm run chaos` and
// test/nightly/chaos.test.ts.
import { setTimeout as sleep } from "node:timers/promises";
import { seededRandom } from "../support/random.ts";
import { type Actions, createActions } from "./actions.ts";
import { CANARY, ENDINGS } from "./desired-owners.ts";
import { diagnose } from "./diagnosis.ts";
import { REPLICAS } from "./family.ts";
import { longestSleepMs, readsOf } from "./informers.ts";
import { checkOwnership, violationText } from "./ownership-check.ts";
import { fixedOwner, placeInFamily, placeInVirtualApp } from "./places.ts";
import { type Outcome, waitConverged } from "./wait-converged.ts";
import { type ChaosWorld, startChaosWorld } from "./world.ts";

export interface ChaosOptions {
  readonly seconds: number;
  readonly seed: number;
  /**
   * The operator of the VirtualApp has webhooks; the default is true. Then each manager waits longer after
   * its start, since it knows the pods by their tokens.
   */
  readonly webhooks?: boolean;
  /** Also deletes pods whose processes continue; the default is false. */
  readonly lostNodes?: boolean;
  /** Receives each action and edit, with the time in seconds before it. */
  readonly onLine?: (line: string) => void;
  /** Keeps the control plane's folder with its audit log there. By default nothing is kept. */
  readonly dir?: string;
  /** Prints the stderr of all processes; the default is false. */
  readonly verbose?: boolean;
}

export interface ChaosReport {
  readonly seed: number;
  /** The violations of exclusive ownership. */
  readonly violations: readonly string[];
  /** A description of everything that did not converge in time. */
  readonly late: readonly string[];
  /** Time from the last action to convergence. */
  readonly convergedMs: number;
  /** The longest time until convergence for which a leader's informer had no request and no open watch. */
  readonly sleptMs: number;
  readonly actions: number;
  readonly edits: number;
  readonly namespaces: number;
  readonly checkedWrites: number;
  readonly handovers: number;
  /** The same for the family. */
  readonly sharded: { readonly checkedWrites: number; readonly handovers: number };
  /** Reviews of the operator's webhooks that a pod answered, and how often the answering subset changed. */
  readonly reviews: { readonly checked: number; readonly handovers: number };
  /** How often the supervisor restarted a process. */
  readonly restarts: number;
}

const NAMESPACES = 12;
const MIN_NAMESPACES = 8;
const MAX_NAMESPACES = 40;
/** The time limit for convergence after the last action. */
const QUIET_MS = 30_000;
/** The additional time for which client-go may delay an informer (see informers.ts). */
const REFLECTOR_MS = 60_000;

export async function runChaos(options: ChaosOptions): Promise<ChaosReport> {
  const { seconds, seed, webhooks = true, lostNodes = false, onLine = () => {} } = options;
  const world = await startChaosWorld({ ...options, webhooks, random: seededRandom(seed + 2), namespaces: NAMESPACES });
  const start = performance.now();
  const say = (line: string) => onLine(`${((performance.now() - start) / 1000).toFixed(1).padStart(6)} ${line}`);
  try {
    await waitConverged(world, { ownershipMs: 60_000, extraWorkMs: 0 });
    say("everything has converged; the chaos begins");
    const over = AbortSignal.timeout(seconds * 1000);
    const chaos = createActions(world, seededRandom(seed), { lostNodes });
    const pauses = seededRandom(seed + 3);
    const load = world.webhooks?.load(seededRandom(seed + 4), () => world.owners.namespaces, over);
    const [actions, edits] = await Promise.all([
      runActions(chaos, pauses, over, say),
      runEdits(world, seed + 1, over, say),
      load,
    ]);
    const outcome = await waitConverged(world, { ownershipMs: QUIET_MS, extraWorkMs: REFLECTOR_MS });
    const { late, fromMs, toMs } = outcome;
    const convergedMs = toMs - fromMs;
    const sleptMs = sleptIn(world, outcome);
    say(outcomeText(outcome, sleptMs));
    if (late.length > 0) for (const line of await diagnose(world).catch((error: unknown) => [String(error)])) say(line);
    const writes = world.mesh.podWrites();
    const check = checkOwnership({
      writes,
      subsetOf: world.subsetOf,
      placeOf: placeInVirtualApp,
      ownersOf: (place) => fixedOwner(place) ?? world.owners.ownersOf(place),
    });
    const sharded = checkOwnership({
      writes,
      subsetOf: world.family.shardOf,
      placeOf: placeInFamily,
      ownersOf: (place) => fixedOwner(place) ?? world.family.ownersOf(place),
    });
    const reviews = checkReviews(world);
    const violations = [...[...check.violations, ...sharded.violations].map(violationText), ...reviews.violations];
    for (const violation of violations) say(`VIOLATION ${violation}`);
    const processes = [...world.pods.values()].flatMap((pod) => [pod.processes.proxy, pod.processes.operator]);
    return {
      seed,
      violations,
      late,
      convergedMs,
      sleptMs,
      actions,
      edits,
      namespaces: world.owners.namespaces.length,
      checkedWrites: check.checked,
      handovers: check.handovers,
      sharded: { checkedWrites: sharded.checked, handovers: sharded.handovers },
      reviews: { checked: reviews.checked, handovers: reviews.handovers },
      restarts: [...world.mesh.managers, ...processes].reduce((sum, process) => sum + (process?.restarts ?? 0), 0),
    };
  } finally {
    await world.stop();
  }
}

/** The longest time until convergence for which a leader's informer had no request and no open watch. */
function sleptIn({ kube }: ChaosWorld, { leaders, fromMs, toMs }: Outcome): number {
  const reads = readsOf(kube.audit(), kube.startedAtMs);
  return Math.round(longestSleepMs(reads, leaders, fromMs, toMs));
}

function outcomeText({ late, fromMs, toMs, ownedMs, refused }: Outcome, sleptMs: number): string {
  const all = late.length === 0 ? `converged ${toMs - fromMs} ms after the last action` : `not converged: ${late.join("; ")}`;
  const owned =
    ownedMs === undefined ? "ownership has not converged" : `ownership converged ${ownedMs - fromMs} ms after the last action`;
  return `${all}; ${owned}; an informer was idle for ${sleptMs} ms of that; after that the proxies refused ${refused} watches because the client must list again`;
}

async function runActions(
  actions: Actions,
  random: () => number,
  over: AbortSignal,
  say: (line: string) => void,
): Promise<number> {
  let count = 0;
  for (; !over.aborted; count++) {
    say(await actions.next());
    await sleep(200 + random() * 2_300);
  }
  await actions.waitIdle();
  return count;
}

async function runEdits(world: ChaosWorld, seed: number, over: AbortSignal, say: (line: string) => void): Promise<number> {
  const random = seededRandom(seed);
  const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] as T;
  const { owners } = world;
  let count = 0;
  for (; !over.aborted; count++) {
    const dice = random();
    if (dice < 0.12) {
      // The rules do not name this namespace, so its owner changes.
      const namespace = pick(owners.namespaces.filter((name) => owners.isLabelled(name) === (owners.ownerOf(name) === CANARY)));
      await world.relabel(namespace);
      say(`relabelled ${namespace}: its owner is ${nameOf(owners.ownerOf(namespace))}`);
    } else if (dice < 0.15 && owners.namespaces.length < MAX_NAMESPACES) {
      const namespace = await world.createNamespace(random() < 0.5);
      say(`created ${namespace}: its owner is ${nameOf(owners.ownerOf(namespace))}`);
    } else if (dice < 0.18) {
      await world.editRules(pick(ENDINGS.filter((ending) => ending !== owners.ending)));
      say(`edited the rules: ${CANARY} has the labelled namespaces and ${owners.ending === "" ? "nothing else" : owners.ending}`);
    } else if (dice < 0.195 && owners.namespaces.length > MIN_NAMESPACES) {
      const namespace = pick(owners.namespaces);
      await world.deleteNamespace(namespace);
      say(`deleted ${namespace}`);
    } else if (dice < 0.225) {
      const { family } = world;
      await family.scale(REPLICAS.least + Math.floor(random() * (REPLICAS.most - REPLICAS.least + 1)));
      say(`scaled the family to ${family.replicas} pods`);
    } else if (dice < 0.25) {
      const canary = { inNamespaces: [pick(owners.namespaces), pick(owners.namespaces)], percent: pick([null, 10, 30]) };
      await world.family.editCanary(canary);
      say(`the family's canary has ${canary.inNamespaces.join(", ")} and ${canary.percent ?? 0} percent`);
    } else if (dice < 0.29) {
      say(await world.policies.change(random));
    } else {
      await world.editFoo(pick(owners.namespaces), Math.floor(random() * 3), `edit ${count}`);
    }
    await sleep(random() * 300);
  }
  await world.policies.clear();
  return count;
}

/** Each review is answered once, and by the owner. */
function checkReviews({ webhooks, subsetOf, owners }: ChaosWorld) {
  if (webhooks === undefined) return { violations: [], checked: 0, handovers: 0 };
  const writes = webhooks.reviews(subsetOf);
  const { violations, checked, handovers } = checkOwnership({
    writes,
    subsetOf,
    ownersOf: owners.ownersOf,
    placeOf: ({ namespace }) => namespace,
  });
  const twice = webhooks.answeredTwice().map((uid) => `review ${uid} was answered twice`);
  return { violations: [...violations.map(violationText), ...twice], checked, handovers };
}

function nameOf(subset: string): string {
  return subset === "" ? "the default subset" : subset;
}
