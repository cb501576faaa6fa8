import { describe, expect, it } from "vitest";
import {
  fence,
  group,
  limit,
  objectLimit,
  objects,
  readBody,
  retained,
  sharded,
  snapshot,
  subset,
  table,
  tableFromBytes,
  tableToJson,
  unreportedFence,
} from "../../../test/support/route-table.ts";
import { MAX_CA_CHARS, MAX_SERVERS } from "../../api/mesh-cluster.ts";
import { snapshotToJson, storedFromJson } from "../../proxy/session/snapshot-file.ts";
import { type Snapshot, tablesIn } from "../ownership/snapshot.ts";
import type { RouteRule, RouteTable } from "../ownership/table.ts";
import { MAX_CLUSTER_TABLES } from "./cluster-tables.ts";
import { ResourceInvalidError, type Versioned } from "./resource-type.ts";
import { claimedRoute, MAX_CLAIM_BYTES, MAX_CLUSTERS, namedRoute, ROUTE, type RouteContent, routeDigest } from "./route-type.ts";
import { hashBytes, tableHash, tableToBytes } from "./table-json.ts";
import { TABLE_KEYS } from "./table-schema.ts";

const maps = group("", "configmaps");
const routes = table(
  [
    limit(),
    subset("canary", group("apps", "deployments")),
    objectLimit("env=prod,!old", maps),
    objects("canary", "tier notin (gold,silver)", maps),
    fence(maps),
    unreportedFence(),
  ],
  { a: [0], b: [0, 1], c: [] },
  { sharedResources: [group("", "nodes")], fenced: ["b"], retained: [retained(["a"], maps)] },
);
const whole = snapshot(routes, { subset: "canary" });
const POD = { namespace: "shop", name: "p", uid: "u" };

function problemsOf(body: object, head: Versioned = whole): readonly string[] {
  try {
    ROUTE.decode(Buffer.from(JSON.stringify(body)), head);
    return [];
  } catch (error) {
    if (error instanceof ResourceInvalidError) return error.problems;
    throw error;
  }
}
const body = () => readBody(ROUTE.encode(whole)) as object;
const withTable = (part: object) => ({ ...body(), table: { ...tableToJson(routes), ...part } });
const withRules = (...rules: object[]) => withTable({ rules, classes: [] });

describe("a route as bytes", () => {
  it("decodes to an equal route", () => {
    expect(ROUTE.decode(ROUTE.encode(whole), whole)).toEqual(whole);
  });

  it("may have fields that this version does not know, also in its table and rules", () => {
    const rules = tableToJson(routes).rules.map((rule) => ({ ...rule, another: 1 }));
    const newer = { ...withTable({ rules, another: [1] }), another: {} };
    expect(ROUTE.decode(Buffer.from(JSON.stringify(newer)), whole)).toEqual(whole);
  });

  it("is refused with every problem of its form, and every contradiction in a table of the right form", () => {
    const rule = { kind: "subset", subset: "", resources: [], origin: "" };
    const bad = { ...withRules(rule), app: { namespace: "shop", name: "" }, podNamespace: "" };
    expect(problemsOf(bad, { version: 0, digest: "" })).toEqual([
      "version: 0 is not positive",
      "digest: missing",
      "app.name: missing",
      "podNamespace: missing",
      "table.rules.0.subset: missing",
    ]);
    const classes = [
      { rules: [9], places: ["a"] },
      { rules: [], places: ["a"] },
    ];
    const retainedTwice = [
      { rules: [], places: ["b"] },
      { rules: [], places: ["b"] },
    ];
    expect(problemsOf({ ...withTable({ classes, retained: retainedTwice }), podNamespace: "" })).toEqual([
      "podNamespace: missing",
      "table.classes.0.rules: 9 is no rule, there are 6",
      'table.classes.1.places: "a" is in two classes',
      'table.retained.1.places: "b" is in two classes',
    ]);
    expect(problemsOf({ ...body(), table: undefined })).toEqual([expect.stringMatching(/^table: /)]);
    expect(problemsOf({ ...body(), guard: "Never" })).toEqual(["guard: not known to this version"]);
    for (const bytes of ["", "{", "null", "[]", Buffer.from([0xff])]) {
      expect(() => ROUTE.decode(Buffer.from(bytes), whole)).toThrow(ResourceInvalidError);
    }
  });

  it("is refused with the problems of a rule on labels", () => {
    const term = { key: "tier", operator: "in", values: ["gold"] };
    const rule = { kind: "objects", subset: "canary", resources: [maps], origin: "", term };
    const problemsWith = (...rules: object[]) => problemsOf(withRules(...rules));
    expect(problemsWith(rule, { ...rule, term: undefined })).toEqual([expect.stringMatching(/^table.rules.1.term: /)]);
    expect(problemsWith({ ...rule, subset: "", resources: [] })).toEqual([
      "table.rules.0.subset: missing",
      "table.rules.0.resources: missing",
    ]);
    expect(problemsWith({ ...rule, term: { ...term, operator: "gt" } })).toEqual([
      "table.rules.0.term.operator: not known to this version",
    ]);
    const terms = [term, { ...term, values: [], key: "" }, { ...term, operator: "exists" }];
    expect(problemsWith({ ...rule, kind: "object-limit", terms })).toEqual([
      "table.rules.0.terms.1.key: missing",
      "table.rules.0.terms.1.values: only in and notin take some, and need some",
      "table.rules.0.terms.2.values: only in and notin take some, and need some",
    ]);
  });

  it("is refused if a sharded rule names nothing, or is not the first rule", () => {
    const rule = { kind: "sharded", resources: [maps], origin: "" };
    expect(problemsOf(withRules({ ...rule, resources: [] }))).toEqual(["table.rules.0.resources: missing"]);
    expect(problemsOf(withRules(rule, rule))).toEqual(["table.rules: sharded must be the first rule"]);
  });

  it("is refused if a rule has a kind, or a fence a cause, that only a newer manager knows", () => {
    const rule = { kind: "fence", because: "moves", resources: [maps], origin: "" };
    expect(problemsOf(withRules(rule))).toEqual([]);
    expect(problemsOf(withRules({ ...rule, kind: "newer" }))).toEqual(["table.rules.0.kind: not known to this version"]);
    expect(problemsOf(withRules({ ...rule, kind: undefined }))).toEqual(["table.rules.0.kind: not known to this version"]);
    expect(problemsOf(withRules({ ...rule, because: "newer" }))).toEqual(["table.rules.0.because: not known to this version"]);
  });

  it("has one problem for a list of the wrong items, since a body may have a million", () => {
    const wrong = { classes: [1, 2], fenced: [1, 2], sharedResources: [[], 1], rules: [null, null], retained: "x" };
    expect(problemsOf(withTable(wrong))).toEqual([
      "table.rules: must be a list of objects",
      "table.classes: must be a list of objects",
      expect.stringMatching(/^table.sharedResources/),
      "table.fenced: must be a list of strings",
      "table.retained: must be a list of objects",
    ]);
  });
});

// A field that is added to a snapshot or to a table does not compile without a line here.
const CONTENT: { readonly [K in keyof RouteContent]: RouteContent[K] } = {
  frozen: [{ namespace: "a", reason: "restore" }],
  app: { namespace: "shop", name: "other" },
  subset: "blue",
  podNamespace: "elsewhere",
  lockName: "another-lock",
  table: table([], {}),
  callers: { userAgent: "agent/", defaultOnlyUserAgents: ["x"], stripManagedFields: true },
  guard: "Warn",
  clusters: [{ name: "eu", servers: ["eu.example:443"], drainMs: 1, owner: "canary" }],
  clusterTables: new Map([["eu", table([subset("canary")], { a: [0] })]]),
};
const TABLE: { readonly [K in keyof Required<RouteTable>]: Partial<RouteTable> } = {
  rules: { rules: [...routes.rules].reverse() },
  classes: { classes: [[], [1], [0]] },
  classOf: { classOf: new Map([...routes.classOf, ["new", 0]]) },
  sharedResources: { sharedResources: [] },
  fenced: { fenced: new Set(["c"]) },
  retained: { retained: [retained(["a"])] },
};
const changes: [string, Snapshot][] = [
  ...Object.entries(CONTENT).map(([field, value]): [string, Snapshot] => [field, { ...whole, [field]: value }]),
  ...Object.entries(TABLE).map(([field, part]): [string, Snapshot] => [
    `table.${field}`,
    { ...whole, table: { ...routes, ...part } },
  ]),
];

it("a sharded family reaches the proxy whole and by a delta, with its cluster scope", () => {
  const family = (home: number, fenced: string[]): Snapshot => {
    const members = { "": [home], a: [1], b: [2], c: [1], d: [1] };
    const content = { ...whole, table: table([sharded(maps), subset("s1"), subset("s2")], members, { fenced }) };
    return { ...content, digest: routeDigest(content) };
  };
  const [base, next] = [family(1, []), family(2, [""])];
  expect(ROUTE.decode(ROUTE.encode(next), next)).toEqual(next);
  const delta = ROUTE.delta?.encode(base, next);
  const applied = delta && ROUTE.delta?.apply(base, delta, next);
  expect(applied && routeDigest(applied)).toBe(next.digest);
  expect(applied?.table.fenced).toEqual(new Set([""]));
});

describe.each(changes)("a change of %s", (_, changed) => {
  const next = { ...changed, version: 2, digest: routeDigest(changed) };
  const base = { ...whole, digest: routeDigest(whole) };

  it("reaches the wire", () => {
    expect(ROUTE.encode(changed)).not.toEqual(ROUTE.encode(whole));
    const decoded = ROUTE.decode(ROUTE.encode(changed), changed);
    expect(routeDigest(decoded)).toBe(routeDigest(changed));
  });
  it("changes the digest", () => {
    expect(next.digest).not.toBe(base.digest);
  });
  it("reaches the proxy by a delta, unless the route is sent whole", () => {
    const body = ROUTE.delta?.encode(base, next);
    if (body === undefined) return;
    const applied = ROUTE.delta?.apply(base, body, next);
    expect(applied && routeDigest(applied)).toBe(next.digest);
  });
  it("is in the stored file", () => {
    const stored = storedFromJson(snapshotToJson(next, { ...POD, namespace: next.podNamespace }), {
      ...POD,
      namespace: next.podNamespace,
    });
    expect(stored.snapshot && routeDigest(stored.snapshot)).toBe(next.digest);
  });
  it("is in the registration", () => {
    const claimed = claimedRoute(namedRoute(next)).withTables(tableByHashIn(next));
    expect(claimed.digest).toBe(next.digest);
  });
});

/** T with a value for every field, at every level: a new field does not compile without a value below. */
type Filled<T> = T extends string | number | boolean
  ? T
  : T extends ReadonlyMap<infer K, infer V>
    ? ReadonlyMap<K, Filled<V>>
    : T extends ReadonlySet<infer V>
      ? ReadonlySet<V>
      : T extends readonly (infer V)[]
        ? readonly Filled<V>[]
        : { readonly [K in keyof T]-?: Filled<Exclude<T[K], undefined>> };

const resources = [{ apiGroups: ["apps"], resources: ["deployments"] }];
const term = { key: "tier", operator: "in", values: ["gold"] } as const;
const FILLED_RULES: { readonly [K in RouteRule["kind"]]: Filled<Extract<RouteRule, { readonly kind: K }>> } = {
  sharded: { kind: "sharded", resources, origin: "0" },
  limit: { kind: "limit", resources, origin: "a" },
  subset: { kind: "subset", subset: "canary", resources, origin: "b" },
  "object-limit": { kind: "object-limit", terms: [term], resources, origin: "c" },
  objects: { kind: "objects", subset: "canary", term, resources, origin: "d" },
  fence: { kind: "fence", because: "moves", resources, origin: "e" },
};
const object = { group: "", resource: "secrets", name: "eu" };

/** The tables of a route as a manager that was sent their bytes finds them. */
function tableByHashIn(route: Snapshot) {
  const tables = tablesIn(route).map((table) => tableToBytes(table));
  return (hash: Uint8Array) => {
    const bytes = tables.find((each) => hashBytes(each).equals(hash));
    return bytes && tableFromBytes(bytes);
  };
}
const FILLED_TABLE: Filled<RouteTable> = {
  rules: Object.values(FILLED_RULES),
  classes: [[1]],
  classOf: new Map([
    ["", 0],
    ["a", 0],
  ]),
  sharedResources: resources,
  fenced: new Set(["a"]),
  retained: [{ namespaces: new Set(["b"]), rules: [{ resources, visible: true }] }],
};
const FILLED: Filled<RouteContent> = {
  app: { namespace: "shop", name: "app" },
  subset: "canary",
  podNamespace: "shop",
  lockName: "lock",
  callers: { userAgent: "agent/", defaultOnlyUserAgents: ["x"], stripManagedFields: true },
  guard: "Warn",
  frozen: [{ namespace: "a", reason: "restore" }],
  clusters: [
    {
      name: "eu",
      servers: ["eu.example:443"],
      drainMs: 60_000,
      upstream: { url: "https://eu.example/prefix", paths: ["eu.example:443/prefix"], ca: "PEM", serverName: "eu" },
      isOpen: true,
      objects: [object],
      owner: "canary",
      isFenced: true,
    },
  ],
  clusterTables: new Map([["eu", FILLED_TABLE]]),
  words: { kind: "VirtualApp", rules: "the route of", lockField: "spec.lock", agentsField: "spec.agents" },
  table: FILLED_TABLE,
};

it("the keys of a table are those that a manager expects", () => {
  const keys = new Set<string>();
  JSON.parse(Buffer.from(tableToBytes(FILLED.table)).toString(), (key, value) => {
    if (!/^\d*$/.test(key)) keys.add(key);
    return value;
  });
  expect([...keys].sort()).toEqual([...TABLE_KEYS].sort());
});

it("a route with every field set, at every level, decodes to an equal route", () => {
  const filled = { ...FILLED, version: 1, digest: "d" };
  expect(ROUTE.decode(ROUTE.encode(filled), filled)).toEqual(filled);
});

it("a proxy of an older version, which does not know the words of messages, claims the digest that it was sent", () => {
  const route = { ...FILLED, version: 1, digest: routeDigest(FILLED) };
  const { words: _, ...known } = ROUTE.decode(ROUTE.encode(route), route);
  expect(claimedRoute(namedRoute(known)).withTables(tableByHashIn(route)).digest).toBe(route.digest);
});

it("a registration names the table by a hash that does not depend on the numbers of the classes", () => {
  const renumbered = {
    ...routes,
    classes: [[9], ...[...routes.classes].reverse()], // and one class without namespaces
    classOf: new Map([...routes.classOf].map(([name, index]) => [name, routes.classes.length - index])),
  };
  const named = namedRoute(whole);
  expect(named).toMatchObject({ type: "routes", version: 1, digest: "digest-1" });
  expect(claimedRoute(named).tableHashes).toEqual([tableHash(renumbered)]);
  expect(routeDigest({ ...whole, table: renumbered })).toBe(routeDigest(whole));
  expect(() => claimedRoute(named).withTables(() => undefined)).toThrow("table: missing");
});

it("the hash of a table is that of its bytes, also for tables that share their classes", () => {
  const made = table([limit(), subset("canary")], { prod: [0], pilot: [0, 1], other: [] });
  const { rules, classOf } = made;
  const same = [
    made,
    { ...made, fenced: new Set(["prod", "other"]) },
    { ...made, retained: [retained(["pilot"])] },
    { ...made, rules: [...rules, fence(group("apps"))], fenced: new Set(["pilot"]) },
    { ...made, classes: [[], [1], [0, 1]] },
    { ...made, classOf: new Map([...classOf].reverse()) },
    { ...made, sharedResources: [group("", "secrets")] },
  ];
  for (const each of [...same, ...same]) expect(tableHash(each)).toEqual(hashBytes(tableToBytes(each)));
});

it("a freeze, another one and a thaw are differences of their own size, whatever the table has", () => {
  const names = Array.from({ length: 1_000 }, (_, at) => [`team-${at}`, [0]] as const);
  const whole = snapshot(table([subset("canary")], Object.fromEntries(names)));
  const frozenBy = (version: number, ...namespaces: string[]) => ({
    ...whole,
    version,
    digest: `digest-${version}`,
    frozen: namespaces.length === 0 ? undefined : namespaces.map((namespace) => ({ namespace, reason: "restore" })),
  });
  let enforced: Snapshot = whole;
  for (const next of [frozenBy(2, "team-1"), frozenBy(3, "team-1", "team-2"), frozenBy(4)]) {
    const delta = ROUTE.delta?.encode(enforced, next) ?? new Uint8Array();
    expect([delta.length > 0, delta.length < 250]).toEqual([true, true]);
    enforced = ROUTE.delta?.apply(enforced, delta, next) ?? enforced;
    expect(enforced.frozen).toEqual(next.frozen);
    expect(routeDigest(enforced)).toBe(routeDigest(next));
  }
});

it("a registration names a route with as many clusters as may be, each as large as may be, so that a new manager knows who owns them", () => {
  const long = (text: string) => text.padEnd(253, "x");
  const PEM = `${"x".repeat(64)}\n`.repeat((MAX_CA_CHARS * 0.75) / 65);
  const clusters = Array.from({ length: MAX_CLUSTERS }, (_, at) => ({
    name: long(`cluster-${at}`),
    servers: [1, 2, 3, 4, 5, 6, 7, 8].map((server) => `${long(`api-${server}.cluster-${at}`)}:64430`),
    objects: [1, 2, 3, 4].map((object) => ({ group: long("g"), resource: long("r"), name: long(`${at}-${object}`) })),
    drainMs: 3_600_000,
    owner: long("canary"),
    isFenced: true as const,
    ...(at < MAX_CLUSTER_TABLES && {
      upstream: {
        url: `https://${"u".padEnd(504, "x")}`,
        paths: Array.from({ length: MAX_SERVERS }, (_, server) => `${at}-${server}`.padEnd(504, "x")),
        ca: PEM,
        serverName: long("s"),
      },
    }),
  }));
  const route = snapshot(table([], {}), { clusters });
  const named = namedRoute(route);
  expect(named.body.length).toBeLessThan(MAX_CLAIM_BYTES - 128 * 1024); // room for all else
  const claimed = claimedRoute(named);
  expect(claimed.tableHashes).toEqual([tableHash(route.table)]);
  expect(claimed.withTables(() => route.table).clusters).toEqual(clusters);
});
