// What can happen in the world of the mesh tests, as data: a failure prints the script that led to it.
import fc from "fast-check";
import { type MeshWorld, NAMESPACES, RESOURCES } from "./mesh-model.ts";
import { LABELS, type PodLabels, type Rules, SUBSETS } from "./mesh-objects.ts";

const PODS = ["p0", "p1", "p2", "p3"];
/** How many different rules a script goes to and fro between. */
const RULE_SETS = 3;

const subset = fc.constantFrom(...SUBSETS);
const pod = fc.constantFrom(...PODS);
const plain = <K extends string>(kind: K) => fc.constant({ kind });
const ofPod = <K extends string>(kind: K) => fc.record({ kind: fc.constant(kind), pod });

// Half of the rules divide config maps by labels.
const tiers = fc.oneof(fc.constant(undefined), fc.record({ gold: subset, silver: subset }));

const publics = fc.oneof(fc.constant([]), fc.subarray([...RESOURCES]));

/** What always can happen, with its weight. */
const ordinary = [
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("rules"),
      set: fc.nat(RULE_SETS - 1),
      onlyConfigMaps: fc.boolean(),
      tiers,
      publics,
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("born"), pod, subset }) },
  { weight: 2, arbitrary: ofPod("connects") },
  { weight: 5, arbitrary: ofPod("delivered") },
  { weight: 5, arbitrary: ofPod("answers") },
  { weight: 4, arbitrary: plain("reconcile") },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("round"), pods: fc.subarray([...PODS]) }) },
];
const disturbances = [
  fc.record({ kind: fc.constant("relabelled"), pod, subset }),
  fc.record({ kind: fc.constant("loses a label"), pod, which: fc.constantFrom("selected", "injected", "both") }),
  ofPod("dies"),
  ofPod("evicted"),
  ofPod("hangs up"),
  ofPod("cut off"),
  fc.record({ kind: fc.constant("restarts"), pod, stored: fc.boolean() }),
  fc.record({ kind: fc.constant("disk"), pod, works: fc.boolean() }),
  fc.record({
    kind: fc.constant("writes"),
    pod,
    namespace: fc.constantFrom(...NAMESPACES),
    resource: fc.constantFrom(...RESOURCES),
    labels: fc.constantFrom(...LABELS),
  }),
  ofPod("writes end"),
  fc.record({ kind: fc.constant("manager restarts"), lingers: fc.boolean() }),
  fc.record({ kind: fc.constant("status lost"), is: fc.boolean() }),
  fc.record({ kind: fc.constant("watch late"), is: fc.boolean() }),
  fc.record({ kind: fc.constant("namespace born"), namespace: fc.constantFrom(...NAMESPACES) }),
  plain("app deleted"),
  plain("app broken"),
];
type Step = Value<(typeof ordinary)[number]["arbitrary"]> | Value<(typeof disturbances)[number]>;
type Value<A> = A extends fc.Arbitrary<infer T> ? T : never;

// Only some disturbances a script: where all of them happen, nothing gets far enough for the rare orders of events.
const steps = fc.subarray(disturbances).chain((chosen) => {
  const weighted = chosen.map((arbitrary) => ({ weight: 1, arbitrary }));
  return fc.array<Step>(fc.oneof(...ordinary, ...weighted), { minLength: 20, maxLength: 100 });
});

const owners = fc.record(Object.fromEntries(NAMESPACES.map((namespace) => [namespace, subset])));

/** A beginning and what happens then. */
export const script = fc.record({
  rules: fc.array(owners, { minLength: RULE_SETS, maxLength: RULE_SETS }),
  namespaces: fc.subarray([...NAMESPACES], { minLength: 1 }),
  pods: fc.array(subset, { minLength: PODS.length, maxLength: PODS.length }),
  isQuietAtFirst: fc.boolean(),
  steps,
});
export type Script = Value<typeof script>;

/** Makes the world of the script's beginning. */
export async function begin(world: MeshWorld, { rules, pods, isQuietAtFirst }: Script): Promise<void> {
  world.setApp({ owners: rules[0] ?? {} });
  pods.forEach((name, index) => {
    world.setPod(PODS[index] ?? "", { subset: name });
  });
  if (isQuietAtFirst) await world.settle(6);
}

/** Labels of the pods and rules of the app, as the script has left them. */
export interface Wished {
  rules: Rules;
  readonly labels: Map<string, PodLabels>;
}

export function wishedAtFirst({ rules, pods }: Script): Wished {
  return { rules: { owners: rules[0] ?? {} }, labels: new Map(pods.map((name, index) => [PODS[index] ?? "", { subset: name }])) };
}

export async function perform(world: MeshWorld, next: Step, { rules }: Script, wished: Wished): Promise<void> {
  const proxy = "pod" in next ? world.proxies.get(next.pod) : undefined;
  switch (next.kind) {
    case "rules":
      wished.rules = {
        owners: rules[next.set] ?? {},
        onlyConfigMaps: next.onlyConfigMaps,
        publics: next.publics,
        ...(next.tiers === undefined ? {} : { tiers: next.tiers }),
      };
      return world.setApp(wished.rules);
    case "born":
      if (world.hasPod(next.pod)) return;
      return relabel(world, next.pod, { subset: next.subset }, wished);
    case "relabelled":
      if (!world.hasPod(next.pod)) return;
      return relabel(world, next.pod, { subset: next.subset }, wished);
    case "loses a label": {
      if (!world.hasPod(next.pod)) return;
      const lost = {
        ...(next.which === "injected" ? {} : { selected: false }),
        ...(next.which === "selected" ? {} : { injected: null }),
      };
      return relabel(world, next.pod, { subset: wished.labels.get(next.pod)?.subset ?? "", ...lost }, wished);
    }
    case "dies":
      return world.deletePod(next.pod);
    case "evicted":
      return world.evictPod(next.pod);
    case "connects":
      return proxy?.connect();
    case "hangs up":
      return proxy?.hangUp();
    case "cut off":
      return proxy?.cut();
    case "delivered":
      return proxy?.deliver();
    case "answers":
      return proxy?.answer();
    case "restarts":
      return proxy?.restart(next.stored);
    case "disk":
      return proxy?.setDiskWorks(next.works);
    case "writes":
      return proxy?.beginWrite(next.namespace, next.resource, next.labels);
    case "writes end":
      return proxy?.endWrites();
    case "reconcile":
      return world.reconcile();
    case "round":
      await world.reconcile();
      for (const name of next.pods) {
        await world.exchange(name);
        world.expectOneOwner(`all messages of ${name}`);
      }
      return;
    case "manager restarts":
      return world.restartManager(next.lingers);
    case "status lost":
      world.statusIsLost = next.is;
      return;
    case "watch late":
      world.watchIsLate = next.is;
      return world.watchApps();
    case "namespace born":
      if (!world.hasNamespace(next.namespace)) world.addNamespace(next.namespace);
      return;
    case "app deleted":
      world.deleteApp();
      return world.reconcile();
    case "app broken":
      return world.breakApp();
    default:
      return next satisfies never;
  }
}

/** Everything that was broken is mended; then nothing goes wrong any more. */
export async function calmDown(world: MeshWorld, wished: Wished): Promise<void> {
  world.statusIsLost = false;
  world.watchIsLate = false;
  world.setApp(wished.rules);
  for (const proxy of world.proxies.values()) {
    await proxy.setDiskWorks(true);
    const { subset: name = "" } = wished.labels.get(proxy.name) ?? {};
    relabel(world, proxy.name, { subset: name }, wished);
  }
  await world.settle();
}

function relabel(world: MeshWorld, name: string, labels: PodLabels, { labels: all }: Wished): void {
  all.set(name, labels);
  world.setPod(name, labels);
}
