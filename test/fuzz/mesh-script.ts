// What can happen in the world of the mesh tests, as data: a failure prints the script that led to it.
import fc from "fast-check";
import { NAMESPACES, RESOURCES } from "./mesh-checks.ts";
import { PODS } from "./mesh-model.ts";
import { LABELS, type Rules, SUBSETS } from "./mesh-objects.ts";
import { MOST_REPLICAS } from "./mesh-scale.ts";

/** How many different rules a script goes to and fro between. */
const RULE_SETS = 3;
const SLOTS = PODS.slice(0, 4);

const subset = fc.constantFrom(...SUBSETS);
const pod = fc.constantFrom(...SLOTS, ...SLOTS, ...SLOTS, ...PODS);
const somePods = fc.oneof(fc.constant([...PODS]), fc.subarray([...PODS]));
const is = fc.boolean();
const rarely = fc.integer({ min: 0, max: 9 }).map((n) => n === 0);
const namespace = fc.constantFrom(...NAMESPACES);
const team = fc.constantFrom(...NAMESPACES.slice(0, 3));
const plain = <K extends string>(kind: K) => fc.constant({ kind });
const ofPod = <K extends string>(kind: K) => fc.record({ kind: fc.constant(kind), pod });

// Half of the rules divide config maps by labels.
const tiers = fc.oneof(fc.constant(undefined), fc.record({ gold: subset, silver: subset }));
const publics = fc.oneof(fc.constant([]), fc.subarray([...RESOURCES]));
const shape = fc.record({ onlyConfigMaps: is, tiers, publics });
const noShape = fc.constant({ onlyConfigMaps: false, tiers: undefined, publics: [] });

const rulesStep = (shapes: typeof shape | typeof noShape) => ({
  weight: 3,
  arbitrary: fc.record({
    kind: fc.constant("rules"),
    set: fc.nat(RULE_SETS - 1),
    shape: shapes,
    family: fc.constantFrom("same", "same", "same", "same", "other", "none"),
    onLoss: fc.constantFrom(undefined, "Restart" as const, "InPlace" as const),
  }),
});
/** What always can happen, with its weight. */
const ordinary = [
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("born"), pod, subset, controlled: is }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("connects"), pod, toOlder: is }) },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant("delivered"), pod, again: rarely }) },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant("answers"), pod, newestFirst: is, again: rarely }) },
  { weight: 3, arbitrary: plain("reconcile") },
  { weight: 8, arbitrary: fc.record({ kind: fc.constant("round"), pods: somePods }) },
  { weight: 1, arbitrary: plain("workloads") },
];
// What is on their way still arrives, after some messages of the new streams or before.
const comeBack = fc.record({
  kind: fc.constant("come back"),
  pods: somePods,
  toOlder: is,
  newestFirst: is,
  messages: fc.nat(8),
});
const restarts = fc.record({ kind: fc.constant("restarts"), pod, remains: fc.constantFrom("before", "saved", "torn", "none") });
const disk = fc.record({ kind: fc.constant("disk"), pod, state: fc.constantFrom("works", "works", "hangs", "fails") });
const writes = fc.record({
  kind: fc.constant("writes"),
  pods: somePods,
  namespaces: fc.subarray([...NAMESPACES, ""], { minLength: 1 }),
  resource: fc.constantFrom(...RESOURCES),
  labels: fc.constantFrom(...LABELS),
});
const managerRestarts = fc.record({
  kind: fc.constant("manager restarts"),
  fate: fc.constantFrom("gone", "deposed", "deluded"),
  isFollowed: is,
});
const forgetsTables = fc.record({ kind: fc.constant("forgets tables"), pod, is: fc.constantFrom(true, true, true, false) });
/** As far as routes of the one that led before may come. */
const goToOlder = fc.record({
  kind: fc.constant("come back"),
  pods: somePods,
  toOlder: fc.constant(true),
  newestFirst: is,
  messages: fc.integer({ min: 4, max: 8 }),
});
const managerSleeps = fc.record({
  kind: fc.constant("manager restarts"),
  fate: fc.constant("deluded" as const),
  isFollowed: fc.constant(true),
});
const disturbances = [
  fc.record({ kind: fc.constant("relabelled"), pod, subset }),
  fc.record({ kind: fc.constant("loses a label"), pod, which: fc.constantFrom("selected", "injected", "both") }),
  ofPod("dies"),
  ofPod("asked to end"),
  ofPod("scaled down"),
  ofPod("fails"),
  ofPod("born bare"),
  comeBack,
  ofPod("hangs up"),
  ofPod("cut off"),
  restarts,
  disk,
  writes,
  ofPod("writes end"),
  fc.record({ kind: fc.constant("leads"), pod, is }),
  forgetsTables,
  managerRestarts,
  plain("older reconciles"),
  fc.record({ kind: fc.constant("status lost"), is }),
  fc.record({ kind: fc.constant("apps late"), is, older: is }),
  fc.record({ kind: fc.constant("pods late"), is, older: is }),
  fc.record({ kind: fc.constant("budget"), isSpent: is }),
  fc.record({ kind: fc.constant("pause"), is, isAtRest: is }),
  fc.record({ kind: fc.constant("namespace born"), namespace, team }),
  fc.record({ kind: fc.constant("namespace relabelled"), namespace, team }),
  fc.record({ kind: fc.constant("namespace dies"), namespace }),
  fc.record({ kind: fc.constant("time"), ms: fc.constantFrom(1_000, 12_000, 31_000) }),
  plain("app deleted"),
  plain("app torn away"),
  plain("app broken"),
];
/** What happens to the StatefulSet of a scaled family, and when the placement controller looks at it. */
const scaling = [
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("scale"), replicas: fc.nat(MOST_REPLICAS), name: pod }) },
  { weight: 6, arbitrary: plain("place") },
];
export type Step =
  | Value<ReturnType<typeof rulesStep>["arbitrary"]>
  | Value<(typeof ordinary)[number]["arbitrary"]>
  | Value<(typeof disturbances)[number]>
  | Value<(typeof scaling)[number]["arbitrary"]>;
type Value<A> = A extends fc.Arbitrary<infer T> ? T : never;

/** Mistakes that take several disturbances of their own, and hardly show among others. */
const focuses = [
  // a registration while an ACK waits for a write: what was gained meanwhile is not acknowledged
  weigh(5, [writes, comeBack]),
  // writes of a process that was killed, also in what it had gained and not stored
  weigh(5, [writes, disk, restarts]),
  // two that believe they lead, and proxies that go to and fro between them
  weigh(2, [managerSleeps, goToOlder, comeBack]),
  weigh(2, [managerSleeps, goToOlder, plain("older reconciles")]),
  // a manager that knows no tables, and proxies that promise and do not tell theirs
  weigh(4, [forgetsTables, managerRestarts]),
];
const few = fc.subarray(disturbances, { minLength: 1, maxLength: 8 }).map((chosen) => weigh(2, chosen));
const focused = fc
  .tuple(fc.constantFrom(...focuses), fc.subarray(disturbances, { maxLength: 2 }))
  .map(([focus, others]) => [...focus, ...weigh(1, others)]);

function weighAll(all: readonly { readonly weight: number; readonly arbitrary: fc.Arbitrary<unknown> }[]) {
  return all.flatMap(({ weight, arbitrary }) => weigh(weight, [arbitrary]));
}

function weigh(weight: number, chosen: readonly fc.Arbitrary<unknown>[]) {
  return chosen.map((arbitrary) => ({ weight, arbitrary: arbitrary as fc.Arbitrary<Step> }));
}

// Only some disturbances a script, and in half of them nothing but namespaces: where all of them happen, nothing gets far enough for
// the rare orders of events.
const stepsOf = (isScaled: boolean) =>
  fc.tuple(fc.oneof(few, focused), is).chain(([weighted, isShaped]) => {
    const ofRules = [rulesStep(isShaped ? shape : noShape), ...ordinary];
    const usual = weighAll(isScaled ? [...scaling, ...ordinary] : ofRules);
    return fc.array<Step>(fc.oneof(...usual, ...weighted), { minLength: 1, maxLength: 120, size: "max" });
  });

const owners = fc.record(Object.fromEntries(NAMESPACES.map((name) => [name, subset])));
const bySet = <T>(value: fc.Arbitrary<T>) => fc.array(value, { minLength: RULE_SETS, maxLength: RULE_SETS });
const named = fc.subarray([...RESOURCES], { minLength: 1 });

const buckets = bySet(fc.option(subset, { nil: undefined }));
const familyOf = fc.record({ named, other: named, homes: bySet(subset), buckets });

const scriptOf = (isScaled: boolean) =>
  fc.record({
    rules: fc.array(owners, { minLength: RULE_SETS, maxLength: RULE_SETS }),
    /** The app is a sharded family: the named resources, others that it may name, and by rules the homes of the cluster scope and of a bucket. */
    family: isScaled ? familyOf : fc.option(familyOf),
    /** The family follows the size of a StatefulSet. Then it has no other rules. */
    isScaled: fc.constant(isScaled),
    lockName: fc.constantFrom(undefined, "op"),
    namespaces: fc.subarray([...NAMESPACES], { minLength: 1 }),
    /** In some worlds there is a pod without a proxy, from before the app. */
    pods: fc.array(fc.record({ subset, controlled: is, isBare: fc.integer({ min: 0, max: 29 }).map((n) => n === 0) }), {
      minLength: SLOTS.length,
      maxLength: SLOTS.length,
    }),
    isQuietAtFirst: fc.constantFrom(true, true, true, false),
    steps: stepsOf(isScaled),
    endsDeleted: is,
  });
/** A beginning, what happens then, and the end. In a third of the scripts a family is scaled. */
export const script = fc.constantFrom(false, false, true).chain<Value<ReturnType<typeof scriptOf>>>(scriptOf);
export type Script = Value<typeof script>;

/** The rules of a step of a script. */
export function rulesOf(run: Script, next: Extract<Step, { readonly kind: "rules" }>, paused: boolean | undefined): Rules {
  const { tiers: byTier, ...others } = next.shape;
  const shape = { ...others, ...(byTier === undefined ? {} : { tiers: byTier }) };
  return {
    ...(familyRules(run, next.set, next.family) ?? { owners: run.rules[next.set] ?? {}, ...shape }),
    ...(next.onLoss === undefined ? {} : { onLoss: next.onLoss }),
    ...(paused === undefined ? {} : { paused }),
    ...(run.lockName === undefined ? {} : { lockName: run.lockName }),
  };
}

/** The rules as a family's; undefined if the script has none, or turns it into another app. */
export function familyRules({ rules, family }: Script, set: number, as = "same"): Rules | undefined {
  if (family === null || as === "none") return undefined;
  const owners = { ...rules[set], "": family.homes[set] ?? "" };
  return { owners, sharded: as === "same" ? family.named : family.other, bucket: family.buckets[set] };
}
