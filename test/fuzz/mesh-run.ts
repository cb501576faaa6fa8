// Runs a script in the world of the mesh tests: makes its beginning, takes its steps, and at the end brings quiet. It keeps what is
// desired, by which the end is judged, and what was promised: see mesh-promises.ts.
import { createMeshWorld, type MeshWorld, SHOP } from "./mesh-model.ts";
import type { Rules } from "./mesh-objects.ts";
import { createPromises, type Promises } from "./mesh-promises.ts";
import { activeText, expectScaled, MOST_REPLICAS, placeNow, type Scale, scaleTo } from "./mesh-scale.ts";
import { familyRules, rulesOf, type Script, type Step } from "./mesh-script.ts";

/** What the script has left of the app and the namespaces. Of pods the cluster knows. */
export interface Desired {
  rules: Rules;
  /** Names of namespaces that have died: none is made anew. (docs/design.md, limitations) */
  readonly dead: Set<string>;
  /** Of a scaled family. */
  readonly scale: Scale | undefined;
}

export interface Run {
  readonly world: MeshWorld;
  readonly desired: Desired;
  readonly promises: Promises;
  readonly script: Script;
}

/** Makes the world of the script's beginning. */
export async function begin(script: Script): Promise<Run> {
  const world = createMeshWorld(script.namespaces);
  const lock = script.lockName === undefined ? {} : { lockName: script.lockName };
  const rules = familyRules(script, 0) ?? { owners: script.rules[0] ?? {} };
  const scale = script.isScaled ? { replicas: MOST_REPLICAS, stored: undefined } : undefined;
  const owners = scale === undefined ? {} : placeNow(world, scale);
  const desired: Desired = { rules: { ...rules, ...owners, ...lock }, dead: new Set(), scale };
  const promises = createPromises(world, desired);
  for (const [index, { subset, controlled, isBare }] of script.pods.entries()) {
    const name = `p${index}`;
    world.setPod(name, { subset, controlled, ...(isBare ? { injected: null } : {}) });
    if (isBare) startBare(world, name);
  }
  world.setApp(desired.rules);
  if (script.isQuietAtFirst) {
    await world.settle(6);
    promises.keepWhatIs();
  }
  return { world, desired, promises, script };
}

function startBare(world: MeshWorld, name: string): void {
  world.setPodStatus(name, { phase: "Running", conditions: [{ type: "Ready", status: "True" }] });
}

export async function perform(run: Run, step: Step): Promise<void> {
  const { world, promises } = run;
  if (!("pod" in step)) return performAround(run, step);
  const proxy = world.proxies.get(step.pod);
  const known = world.cluster.wanted.get(step.pod) ?? {};
  const isThere = world.hasPod(step.pod);
  switch (step.kind) {
    case "born":
      if (!isThere) world.setPod(step.pod, { subset: step.subset, controlled: step.controlled });
      return;
    case "born bare":
      // Injection refuses it beside an app. After the app, a snapshot that is on its way may still partition it: see the limitations.
      if (isThere || world.hasApp() || !world.isWhole() || world.hasMessages()) return;
      world.setPod(step.pod, { injected: null });
      return startBare(world, step.pod);
    case "relabelled":
      if (!isThere) return;
      promises.release(step.pod);
      return world.setPod(step.pod, { ...known, subset: step.subset });
    case "loses a label":
      if (proxy === undefined) return;
      promises.release(step.pod);
      world.setPod(step.pod, {
        ...known,
        ...(step.which === "injected" ? {} : { selected: false }),
        ...(step.which === "selected" ? {} : { injected: null }),
      });
      return;
    case "dies":
      return world.deletePod(step.pod);
    case "asked to end":
      return world.cluster.terminate(step.pod);
    case "scaled down":
      return world.cluster.scaleDown(step.pod);
    case "fails":
      return world.evictPod(step.pod);
    case "connects":
      return world.connect(step.pod, step.toOlder);
    case "hangs up":
      return proxy?.hangUp();
    case "cut off":
      return proxy?.cut();
    case "delivered":
      return proxy?.deliver(step.again);
    case "answers":
      return proxy?.answer(step.newestFirst, step.again);
    case "restarts":
      if (step.remains === "torn" || step.remains === "none") promises.release(step.pod);
      return proxy?.restart(step.remains);
    case "disk":
      return proxy?.setDisk(step.state);
    case "writes end":
      return proxy?.endWrites();
    case "forgets tables":
      if (proxy === undefined) return;
      promises.release(step.pod);
      proxy.forgetsTables = step.is;
      return;
    case "leads":
      return proxy?.report(step.is);
    default:
      return step satisfies never;
  }
}

async function performAround(run: Run, step: Exclude<Step, { readonly pod: string }>): Promise<void> {
  const { world, desired, promises, script } = run;
  const { cluster } = world;
  switch (step.kind) {
    case "rules":
      desired.rules = rulesOf(script, step, desired.rules.paused);
      return world.setApp(desired.rules);
    case "scale":
      return desired.scale && scaleTo(world, desired.scale, step.replicas, step.name);
    case "place":
      return place(run);
    case "pause":
      return pause(run, step);
    case "reconcile":
      return world.reconcile();
    case "writes":
      for (const name of step.pods)
        for (const namespace of step.namespaces) world.proxies.get(name)?.beginWrite(namespace, step.resource, step.labels);
      return;
    case "come back":
      return comeBack(run, step);
    case "older reconciles":
      return world.older && world.reconcile(SHOP, world.older);
    case "round":
      await world.reconcile();
      for (const name of step.pods) {
        await world.exchange(name);
        world.expectOneOwner(`all messages of ${name}`);
      }
      return;
    case "workloads":
      return world.tidy();
    case "manager restarts":
      world.restartManager(step.fate);
      // In half of the cases everybody finds the new one at once.
      for (const proxy of step.isFollowed ? world.proxies.values() : []) {
        proxy.hangUp();
        await world.connect(proxy.name);
        await world.exchange(proxy.name);
        world.expectOneOwner(`${proxy.name} has found the new manager`);
      }
      return;
    case "status lost":
      cluster.isWriteLost = step.is;
      return;
    case "budget":
      cluster.isBudgetSpent = step.isSpent;
      return;
    case "apps late":
    case "pods late": {
      const manager = step.older ? world.older : world.leader;
      if (manager === undefined) return;
      manager[step.kind === "apps late" ? "isAppWatchLate" : "isPodWatchLate"] = step.is;
      return manager.see();
    }
    case "namespace born":
      if (!world.hasNamespace(step.namespace) && !desired.dead.has(step.namespace))
        cluster.setNamespace(step.namespace, step.team);
      return;
    case "namespace relabelled":
      if (world.hasNamespace(step.namespace)) cluster.setNamespace(step.namespace, step.team);
      return;
    case "namespace dies":
      desired.dead.add(step.namespace);
      return cluster.removeNamespace(step.namespace);
    case "time":
      return world.pass(step.ms);
    case "app deleted":
      promises.releaseAll();
      return cluster.deleteApp(SHOP);
    case "app torn away":
      promises.releaseAll();
      world.deleteApp();
      return world.reconcile();
    case "app broken":
      promises.releaseAll();
      return world.breakApp();
    default:
      return step satisfies never;
  }
}

/** As in the cluster: a placement that changes nothing is not written. */
function place({ world, desired }: Pick<Run, "world" | "desired">): void {
  if (desired.scale === undefined || !world.hasApp()) return;
  const before = activeText(desired.scale);
  const owners = placeNow(world, desired.scale);
  if (activeText(desired.scale) === before) return;
  desired.rules = { ...desired.rules, ...owners };
  world.setApp(desired.rules);
}

async function pause({ world, desired, promises }: Run, { is, isAtRest }: { readonly is: boolean; readonly isAtRest: boolean }) {
  const canRest = is && isAtRest && !desired.rules.paused;
  if (canRest) await world.settle(ROUNDS_TO_PAUSE, () => world.isAtRest());
  const isKept = canRest && world.hasApp() && world.isAtRest();
  desired.rules = { ...desired.rules, paused: is };
  world.setApp(desired.rules);
  if (isKept) promises.keepOwners();
}

/** Streams end and others begin; some messages pass on the new ones. */
async function comeBack({ world }: Run, step: Extract<Step, { readonly kind: "come back" }>): Promise<void> {
  const to = step.toOlder ? world.older : world.leader;
  for (const name of step.pods) {
    const proxy = world.proxies.get(name);
    proxy?.hangUp();
    await world.connect(name, step.toOlder);
    for (let times = 0; times < step.messages; times++) {
      proxy?.answer(step.newestFirst);
      await proxy?.deliver();
      if (times === 2) await world.reconcile(SHOP, to);
      world.expectOneOwner(`${times} messages of ${name}, which came back`);
    }
  }
}

/** Everything that was broken is mended; then nothing goes wrong any more, until everything is as desired. */
export async function calmDown({ world, desired }: Pick<Run, "world" | "desired">): Promise<void> {
  const { cluster } = world;
  cluster.isWriteLost = false;
  cluster.isBudgetSpent = false;
  world.endOlder();
  world.leader.isAppWatchLate = false;
  world.leader.isPodWatchLate = false;
  world.leader.see();
  for (const name of cluster.bare()) world.deletePod(name);
  for (const proxy of world.proxies.values()) {
    await proxy.setDisk("works");
    const { subset = "", controlled = false } = cluster.wanted.get(proxy.name) ?? {};
    world.setPod(proxy.name, { subset, controlled });
  }
  await settleFully(world);
  if (cluster.app(SHOP)?.metadata.deletionTimestamp !== undefined) throw new Error("the app is being deleted for ever");
  const { paused: _, ...rules } = desired.rules;
  desired.rules = rules;
  world.setAppIfOther(rules);
  await settleFully(world);
  if (desired.scale !== undefined) await settleScale({ world, desired }, desired.scale);
}

/** Until no shard comes or goes any more. A shard without a pod leaves in the second round at the latest, after its grace time. */
async function settleScale(run: Pick<Run, "world" | "desired">, scale: Scale): Promise<void> {
  for (let round = 0; round < SCALE_ROUNDS; round++) {
    run.world.pass(GRACE_MS);
    place(run);
    await settleFully(run.world);
  }
  expectScaled(run.world, scale);
}

const SCALE_ROUNDS = 4;
const GRACE_MS = 31_000;
const MAX_ROUNDS = 60;
const ROUNDS_TO_PAUSE = 15;

/** Until the manager says that everything is as the spec says, and no pod comes or goes. */
export async function settleFully(world: MeshWorld): Promise<void> {
  await world.settle(MAX_ROUNDS, () => world.isAtRest());
}
