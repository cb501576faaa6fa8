// What can happen in the model test of watches, as data: a failure prints the script that led to it.
import fc from "fast-check";

export const RESOURCES = ["pods", "widgets"] as const;
/** Their hashes lie far apart. */
export const NAMESPACES = ["ant", "bee", "cow", "dog"];
/** Many others, so that the API server is asked by ranges of hashes. They move only all together. */
export const FAR = Array.from({ length: 40 }, (_, index) => `far-${index}`);
/** Where a namespace is: the subset's, another subset's, on its way from one of them, or not in the route table. */
export type Place = "own" | "theirs" | "mine, moves" | "theirs, moves" | "unknown";

const of = <const K extends string, A>(weight: number, what: K, args: { readonly [P in keyof A]: fc.Arbitrary<A[P]> }) => ({
  weight,
  arbitrary: fc.record<A>(args).map((more) => ({ do: what, ...more })),
});

/** The app's namespace, in which objects of clusters may be hidden, each with its own clusters. */
export const APP_NAMESPACE = "ant";
/** Whose is the cluster that an object is about: the subset's, another one's, or on its way to the subset. */
export type ClusterOf = "own" | "theirs" | "moves";

const place = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom<Place>("own", "theirs") },
  { weight: 2, arbitrary: fc.constantFrom<Place>("mine, moves", "theirs, moves", "unknown", "unknown") },
);
const near = fc.constantFrom(...NAMESPACES);
const namespace = fc.oneof({ weight: 4, arbitrary: near }, { weight: 1, arbitrary: fc.constantFrom(...FAR.slice(0, 2)) });
const resource = fc.constantFrom("pods", "pods", "widgets");
const client = fc.nat({ max: 3 });
const events = fc.integer({ min: 1, max: 4 });
const awayMs = fc.constantFrom(0, 0, 500, 3_000);
const takesMs = fc.constantFrom(0, 0, 100, 5_000);
const watch = fc.nat({ max: 5 });
const kind = fc.constantFrom("lists", "lists, no bookmarks", "lists metadata", "initial events", "initial events", "creates");
const start = { resource, kind, namespace: near };

const command = fc.oneof(
  of(6, "write", { resource, namespace, name: fc.constantFrom("x", "y") }),
  of(3, "own write", { resource, namespace: near, takesMs }),
  of(2, "remove", { resource, namespace, name: fc.constantFrom("x", "y") }),
  of(5, "move", { namespace: near, place }),
  of(2, "move far", {}),
  of(2, "give cluster", { resource, name: fc.constantFrom("x", "y"), to: fc.constantFrom<ClusterOf>("own", "theirs", "moves") }),
  of(6, "deliver", { watch, count: fc.integer({ min: 1, max: 6 }) }),
  of(1, "bookmark", { watch }),
  of(2, "slow", { slow: fc.boolean() }),
  of(3, "answer", {}),
  of(2, "break now", { client, awayMs }),
  of(2, "break after", { client, events, awayMs }),
  of(1, "break next", { client, events }),
  of(3, "kill proxy", { leaves: fc.constantFrom("all", "all", "all", "lost"), awayMs: fc.constantFrom(0, 3_000) }),
  of(2, "start", start),
  of(2, "forget", { client }),
  of(2, "break during a move", { client, events: fc.integer({ min: 1, max: 2 }), namespace: near, place }),
  of(3, "move after an own write", {
    resource,
    client,
    namespace: near,
    place,
    takesMs,
    end: fc.constantFrom("none", "break", "kill"),
  }),
  of(3, "birth after an own write", { resource, lost: near, born: near, existed: fc.boolean(), isEarly: fc.boolean() }),
  of(2, "break after a move", { client, namespace: near, place, isFar: fc.boolean() }),
  of(3, "move during a list", { client, namespace: near, place, killsProxy: fc.boolean() }),
  of(1, "list", { resource }),
  of(1, "server breaks", { watch }),
  of(1, "compact", { resource }),
  of(2, "wait", { ms: fc.constantFrom(10, 1_000, 6_000) }),
);
export type Command = typeof command extends fc.Arbitrary<infer T> ? T : never;
export type Start = Omit<Extract<Command, { do: "start" }>, "do">;

export type Resource = Start["resource"];

export interface Script {
  readonly first: readonly Place[];
  readonly isLarge: boolean;
  /** Lists are sent by namespace wherever they can be. */
  readonly isByNamespace: boolean;
  readonly commands: readonly Command[];
}

export const script: fc.Arbitrary<Script> = fc.record({
  first: fc.array(place, { minLength: NAMESPACES.length, maxLength: NAMESPACES.length }),
  isLarge: fc.boolean(),
  isByNamespace: fc.boolean(),
  commands: fc
    .tuple(of(1, "start", start).arbitrary, fc.array(command, { maxLength: 60, size: "max" }))
    .map(([first, more]) => [first, ...more]),
});
