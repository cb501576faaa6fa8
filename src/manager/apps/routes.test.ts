import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { compileHere, matchHere } from "../../../test/support/compile.ts";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { createFakeKubeClient } from "../../../test/support/fake-kube-client.ts";
import { appOf } from "../../../test/support/source-apps.ts";
import { sampleVirtualApp } from "../../../test/support/virtual-app.ts";
import { VIRTUAL_APPS } from "../../api/resources.ts";
import type { VirtualApp } from "../../api/virtual-app.ts";
import { systemClock } from "../../base/clock.ts";
import type { KubeObject } from "../../kube/types.ts";
import type { RouteTable } from "../../mesh/ownership/table.ts";
import { createStore } from "../../runtime/store.ts";
import { createVirtualAppSource } from "../virtual-app/virtual-app-source.ts";
import type { SourceObject } from "./app.ts";
import { type Compile, createCompiler } from "./compile/compiler.ts";
import { createRoutes, RETRY_MS } from "./routes.ts";

const REF = { namespace: "ops", name: "shop" };
const { signal } = new AbortController();
const route = { subRules: [{ name: "gold", match: [{ namespaceSelector: { matchLabels: { tier: "gold" } } }] }] };
const subsets = [{ name: "canary", labels: { version: "v2" }, routeRules: ["gold"] }];
const namespace = (name: string, labels: Record<string, string> = {}, annotations: Record<string, string> = {}): KubeObject => ({
  apiVersion: "v1",
  kind: "Namespace",
  metadata: { name, labels, annotations },
});

function setUp(compile: Compile = compileHere) {
  const compiled: string[] = [];
  const client = createFakeKubeClient();
  const namespaces = createStore<KubeObject>(() => {});
  namespaces.replace([namespace("a"), namespace("b", { tier: "gold" })]);
  const clock = createFakeClock();
  const store = createStore<SourceObject>(() => {});
  const routes = createRoutes({
    client,
    source: createVirtualAppSource(),
    store,
    namespaces,
    clock,
    compile,
    onCompiled: ({ name }) => compiled.push(name),
  });
  const put = (generation: number, spec: object = {}, uid = "uid") => {
    const metadata = { ...REF, uid, generation };
    return client.put(VIRTUAL_APPS, { ...sampleVirtualApp({ route, subsets, ...spec }), metadata } as unknown as VirtualApp);
  };
  const read = async (object: VirtualApp) => {
    const app = appOf(object);
    if (app.spec === undefined) throw new Error(app.problems.join("; "));
    return routes.tableOf(app, app.spec, signal);
  };
  const tableOf = async (object: VirtualApp) => (await read(object)) as RouteTable;
  const reads = () => client.calls.filter(({ verb }) => verb === "get" || verb === "list").length;
  return { client, clock, compiled, namespaces, store, routes, put, read, tableOf, reads };
}

describe("the desired route table", () => {
  it("is the same object while the spec and the namespaces stay the same, and is checked once", async () => {
    const { namespaces, put, tableOf, reads } = setUp();
    const object = put(1);
    const table = await tableOf(object);
    namespaces.upsert(namespace("a", {}, { note: "an annotation is no matter" }));
    expect(await tableOf(object)).toBe(table);
    expect(reads()).toBe(1);
  });

  it.each([
    ["a namespace is born", (store: ReturnType<typeof setUp>["namespaces"]) => store.upsert(namespace("c"))],
    ["a namespace is gone", (store: ReturnType<typeof setUp>["namespaces"]) => store.remove(namespace("a"))],
    ["a label changes", (store: ReturnType<typeof setUp>["namespaces"]) => store.upsert(namespace("a", { tier: "gold" }))],
  ])("is compiled again when %s", async (_what, change) => {
    const { namespaces, put, tableOf, reads } = setUp();
    const object = put(1);
    const before = await tableOf(object);
    change(namespaces);
    const after = await tableOf(object);
    expect(after).not.toBe(before);
    expect([...after.classOf.keys()]).toEqual(namespaces.list().map(({ metadata }) => metadata.name));
    expect(reads()).toBe(2);
  });

  it("is compiled again for another spec, and for an app that was created again under its name", async () => {
    const { put, tableOf } = setUp();
    const before = await tableOf(put(1));
    expect((await tableOf(put(2, { route: {}, subsets: [] }))).rules).toEqual([]);
    expect(await tableOf(put(1, {}, "uid-2"))).not.toBe(before);
  });

  it("is not used if the API server has a newer spec, which is in the store before the watch brings it", async () => {
    const { store, put, read } = setUp();
    const seen = put(1);
    store.replace([seen], seen.metadata.resourceVersion);
    const newer = put(2);
    expect(await read(seen)).toBe("edited");
    expect(store.get(REF.name, REF.namespace)).toEqual(newer);
  });

  it("is not used if the object is gone, or another object has its name", async () => {
    const { client, put, read } = setUp();
    const seen = put(1);
    client.remove(VIRTUAL_APPS, REF);
    expect(await read(seen)).toBe("gone");
    put(1, {}, "uid-2");
    expect(await read(seen)).toBe("gone");
  });
});

/** Compilations that end when the test says so. */
function slowly() {
  const ends: (() => void)[] = [];
  const signals: AbortSignal[] = [];
  const compile: Compile = async (...args) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    ends.push(resolve);
    signals.push(args[3]?.signal ?? expect.fail("no signal"));
    await promise;
    return compileHere(...args);
  };
  return { compile, ends, signals };
}

describe("a compilation that takes a while", () => {
  const begun = () => {
    const { compile, ends, signals } = slowly();
    const world = setUp(compile);
    const ask = async (object: VirtualApp) => {
      const result = world.read(object);
      await world.clock.advance(100);
      return result;
    };
    const end = async () => {
      ends.shift()?.();
      await world.clock.advance(1);
    };
    return { ...world, ends, signals, ask, end };
  };

  it("holds nobody up, and tells when it has ended", async () => {
    const { put, ask, end, compiled } = begun();
    const object = put(1);
    expect(await ask(object)).toBe("compiling");
    expect(compiled).toEqual([]);
    await end();
    expect(compiled).toEqual(["shop"]);
    expect(await ask(object)).toMatchObject({ rules: [{ subset: "canary" }] });
  });

  it("is one for each app, however often the spec changes", async () => {
    const { put, ask, end, ends } = begun();
    for (let generation = 1; generation <= 9; generation++) expect(await ask(put(generation))).toBe("compiling");
    expect(ends).toHaveLength(1);
    await end();
    expect(await ask(put(10))).toBe("compiling");
    expect(ends).toHaveLength(1);
    await end();
    expect(await ask(put(10))).toMatchObject({ rules: [{ subset: "canary" }] });
  });

  it("leaves the last table of the spec in use, so that namespaces that come and go never stop the app", async () => {
    const { put, ask, end, namespaces } = begun();
    const object = put(1);
    await ask(object);
    await end();
    const names = async () => [...((await ask(object)) as RouteTable).classOf.keys()];
    for (let round = 0; round < 5; round++) {
      namespaces.upsert(namespace(`c${round}`));
      expect(await names()).toHaveLength(2 + round);
      await end();
    }
    expect(await names()).toHaveLength(7);
  });

  it("ends and counts for nobody if the app is gone, and its name is not compiled twice at a time", async () => {
    const { put, ask, end, ends, routes, signals } = begun();
    await ask(put(1));
    expect(signals.map(({ aborted }) => aborted)).toEqual([false]);
    routes.forget(REF);
    expect(signals.map(({ aborted }) => aborted)).toEqual([true]);
    expect(await ask(put(1, {}, "uid-2"))).toBe("compiling");
    expect(ends).toHaveLength(1);
    await end();
    expect(await ask(put(1, {}, "uid-2"))).toBe("compiling");
    expect(ends).toHaveLength(1);
  });
});

describe("namespaces that change during a compilation", () => {
  /** A compiler like the manager's. Its thread for expressions answers when the test says so. */
  const inParts = () => {
    const answers: (() => void)[] = [];
    const compile = createCompiler({
      matchExpressions: async (...question) => {
        await new Promise<void>((resolve) => answers.push(resolve));
        return matchHere(...question);
      },
      clock: { monotonicMs: () => 0, after: systemClock.after },
    });
    const world = setUp(compile);
    const regex = { ...route, subRules: [...route.subRules, { name: "team", match: [{ namespaceRegex: "^[ac]" }] }] };
    const object = world.put(1, { route: regex, subsets: [{ ...subsets[0], routeRules: ["gold", "team"] }] });
    /** Begins, lets the changes happen, and ends. The result is that of the facts at the beginning. */
    const tableAfter = async (during: () => void) => {
      const result = world.read(object);
      await world.clock.flush();
      during();
      for (const answer of answers.splice(0)) answer();
      return (await result) as RouteTable;
    };
    return { ...world, tableAfter };
  };
  const ownedNamespaces = ({ classes, classOf }: RouteTable) =>
    [...classOf].filter(([, at]) => (classes[at]?.length ?? 0) > 0).map(([name]) => name);
  const nothing = () => undefined;

  it("are judged the next time, while the names of others are matched", async () => {
    const { namespaces, tableAfter } = inParts();
    await tableAfter(nothing);
    namespaces.upsert(namespace("a", { color: "red" }));
    const table = await tableAfter(() => namespaces.upsert(namespace("b", { color: "red" })));
    expect(ownedNamespaces(table)).toEqual(["a", "b"]);
    expect(ownedNamespaces(await tableAfter(nothing))).toEqual(["a"]);
  });

  it("keep their class until then, also if no name had to be matched", async () => {
    const { namespaces, tableAfter } = inParts();
    namespaces.upsert(namespace("d"));
    expect(ownedNamespaces(await tableAfter(nothing))).toEqual(["a", "b"]);
    namespaces.remove(namespace("d"));
    const table = await tableAfter(() => namespaces.upsert(namespace("a", { color: "red" })));
    expect(ownedNamespaces(table)).toEqual(["a", "b"]);
  });

  it("never make it fail or differ from a compilation of the facts at its beginning", async () => {
    const name = fc.constantFrom("a", "b", "c", "d", "ca");
    const change = fc.oneof(
      fc.record({ name, labels: fc.constantFrom<Record<string, string>>({}, { tier: "gold" }, { color: "red" }) }),
      fc.record({ name, labels: fc.constant(undefined) }),
    );
    const rounds = fc.array(
      fc.record({ before: fc.array(change, { maxLength: 3 }), during: fc.array(change, { maxLength: 3 }) }),
    );
    await fc.assert(
      fc.asyncProperty(rounds, async (all) => {
        const { namespaces, tableAfter } = inParts();
        const apply = (changes: (typeof all)[number]["before"]) => {
          for (const { name: changed, labels } of changes) {
            if (labels === undefined) namespaces.remove(namespace(changed));
            else namespaces.upsert(namespace(changed, labels));
          }
        };
        for (const { before, during } of all) {
          apply(before);
          const facts = namespaces.list().map(({ metadata }) => metadata);
          const owned = facts.filter(({ name = "", labels }) => /^[ac]/.test(name) || labels?.tier === "gold");
          const table = await tableAfter(() => apply(during));
          expect(new Set(table.classOf.keys())).toEqual(new Set(facts.map((fact) => fact.name)));
          expect(new Set(ownedNamespaces(table))).toEqual(new Set(owned.map((fact) => fact.name)));
        }
      }),
      { numRuns: 50 },
    );
  });
});

describe("a spec whose compilation exceeds its limit", () => {
  it("is not tried again while namespaces change, and is after a while or with another spec", async () => {
    let runs = 0;
    const { put, read, namespaces, clock } = setUp(async () => {
      runs++;
      return undefined;
    });
    for (const name of ["c", "d"]) {
      namespaces.upsert(namespace(name));
      expect(await read(put(1))).toBe("too-costly");
    }
    expect(runs).toBe(1);
    expect(await read(put(2))).toBe("too-costly");
    expect(runs).toBe(2);
    await clock.advance(RETRY_MS);
    await read(put(2));
    expect(runs).toBe(3);
  });
});

it("a change of namespaces that changes no class needs no further read of the app", async () => {
  const { namespaces, put, tableOf, reads } = setUp();
  const table = await tableOf(put(1));
  namespaces.upsert(namespace("a", { color: "red" }));
  expect(await tableOf(put(1))).toBe(table);
  expect(reads()).toBe(1);
});
