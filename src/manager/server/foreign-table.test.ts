import { describe, expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { fence, group, limit, objects, retained, sharded, subset, table } from "../../../test/support/route-table.ts";
import { tableHash, tableToBytes } from "../../mesh/contract/table-json.ts";
import type { RouteTable } from "../../mesh/ownership/table.ts";
import { readForeignTable } from "./foreign-table.ts";
import { createKnownNames, createNameIndex } from "./known-namespaces.ts";
import { createSharedTables } from "./shared-resources.ts";

const NAMES = Array.from({ length: 10_000 }, (_, at) => `namespace-${at}`);
const INDEX = createNameIndex(NAMES);
const memory = () => ({ left: 64 * 1024 * 1024 });
const read = (of: RouteTable) => readForeignTable(tableToBytes(of), memory(), INDEX);

describe("a table of an honest pod", () => {
  const honest: Readonly<Record<string, RouteTable>> = {
    "of an app with a canary": table(
      [limit(), subset("canary")],
      membersOf(NAMES, (at) => (at % 100 === 0 ? [0, 1] : [0])),
    ),
    "of 64 shards": table(
      [sharded(...resources(40)), ...Array.from({ length: 64 }, (_, at) => subset(`shard-${at}`, ...resources(40)))],
      { "": [1], ...membersOf(NAMES, (at) => [1 + (at % 64)]) },
    ),
    "of the largest VirtualApp": table(
      Array.from({ length: 4_128 }, (_, at) => (at < 32 ? limit(group("apps", `kind-${at}s`)) : subset(`s-${at % 64}`))),
      membersOf(NAMES, (at) => (at === 0 ? Array.from({ length: 4_128 }, (_, rule) => rule) : [at % 1_000])),
    ),
    "in the middle of a move, with what it retains": table(
      [subset("canary"), objects("canary", "tier=a", group("batch")), fence(group("batch"))],
      membersOf(NAMES, (at) => (at % 2 === 0 ? [0] : [])),
      { fenced: ["", "#3", ...NAMES], retained: [retained(NAMES.slice(0, 5_000))], sharedResources: resources(8) },
    ),
    "made just before a thousand namespaces were deleted": table(
      [subset("canary")],
      membersOf([...NAMES, ...unknown(1_000)], () => [0]),
    ),
  };
  for (const [name, of] of Object.entries(honest)) {
    it(`${name} is read, and says the same`, () => {
      const found = read(of)?.table;
      expect(found && tableHash({ ...found })).toEqual(tableHash(of));
      expect(found && [...found.classOf].sort()).toEqual([...of.classOf].sort());
      for (const place of [...NAMES, "", "#3", "none"]) {
        const [at, expected] = [found?.classOf.get(place), of.classOf.get(place)];
        if (found?.classes[at ?? -1]?.join() !== of.classes[expected ?? -1]?.join()) expect.fail(place);
      }
    });
  }

  const failovers: readonly [string, number, (app: number) => string][] = [
    ["the 64 apps that one namespace may have", 64, () => "platform"],
    ["200 apps, each in a namespace of its own", 200, (app) => `team-${app}`],
  ];
  it.each(failovers)("fits after a failover with 10,000 namespaces, with those of %s", (_, apps, namespaceOf) => {
    const bytes = [1, 200].map((divisor) => {
      const of = table(
        [limit(), subset("canary")],
        membersOf(NAMES, (at) => (at % divisor === 0 ? [0, 1] : [0])),
      );
      return read(of)?.bytes ?? Number.NaN;
    });
    const tables = createSharedTables();
    for (let app = 0; app < apps; app++) {
      const of = table([subset(`s-${app}`)], { a: [0] });
      expect(tables.bring(of, tableHash(of).toString("base64"), namespaceOf(app), Math.max(...bytes))).toBe(of);
    }
  });
});

describe("a table of a fake sidecar", () => {
  const many = (count: number) => Array.from({ length: count }, (_, at) => at);
  const hostile: Readonly<Record<string, () => RouteTable>> = {
    "with 90,000 rules": () =>
      table(
        many(90_000).map(() => subset("canary")),
        membersOf(NAMES.slice(0, 400), (at) => many(400).map((rule) => rule + at)),
      ),
    "with a thousand rules in each of a thousand classes": () =>
      table(
        many(8_000).map(() => subset("canary")),
        membersOf(NAMES.slice(0, 1_000), (at) => many(1_000).map((rule) => rule + at)),
      ),
    "with limits that ten thousand classes miss": () =>
      table(
        many(8_000).map(() => limit(group("apps"))),
        membersOf(NAMES, (at) => [at % 8_000]),
      ),
    "with a hundred thousand names of namespaces that nobody knows": () =>
      table(
        [subset("a")],
        membersOf(unknown(100_000), () => [0]),
      ),
    "with names of a kilobyte": () => table([subset("a")], { ["n".repeat(1_024)]: [0] }),
    "with rules on a thousand resources each, which move as a whole": () => table([sharded(...resources(1_000))], { "": [] }),
    "that retains by rules on thousands of groups and resources": () =>
      table(
        [subset("a")],
        { a: [0] },
        { retained: [retained(["a"], ...many(3_000).map((at) => group(`group-${at}`, `kind-${at}s`)))] },
      ),
    "with shared resources that a thousand rules on all namespaces name": () =>
      table(
        many(1_000).map(() => subset("a", group("apps"))),
        membersOf(NAMES, () => many(20)),
        { sharedResources: resources(100) },
      ),
  };
  for (const [name, make] of Object.entries(hostile)) {
    it(`${name} is refused, before anything of it is kept`, () => {
      expect(read(make())).toBeUndefined();
    });
  }

  it("costs other namespaces no room: one namespace gets half of what is left, and it is given back when its pods are gone", async () => {
    const clock = createFakeClock();
    const pods = new Map<string, RouteTable>();
    const tables = createSharedTables(() => pods.values(), clock);
    const large = 2 * 1024 * 1024;
    let count = 0;
    const bring = (namespace: string, bytes = large) => {
      const of = table([subset(`s-${count++}`)], { a: [0] });
      const found = tables.bring(of, tableHash(of).toString("base64"), namespace, bytes);
      if (found !== undefined) pods.set(`${namespace}/${count}`, found);
      return found !== undefined;
    };
    expect(many(20).filter(() => bring("evil"))).toHaveLength(8);
    expect(many(20).filter(() => bring("worse"))).toHaveLength(4);
    expect(bring("honest", 512 * 1024)).toBe(true);
    for (const pod of [...pods.keys()]) if (pod.startsWith("evil/")) pods.delete(pod);
    await clock.advance(60_000);
    expect(bring("evil")).toBe(false); // the history of pods may still hold the tables
    await clock.advance(121_000);
    expect(bring("evil")).toBe(true);
  });

  it("takes no room with tables that the manager makes itself", () => {
    const tables = createSharedTables();
    const own = (at: number) => table([subset(`s-${at}`)], { a: [0] });
    for (const at of many(100)) {
      const known = tables.share(own(at));
      expect(tables.bring(own(at), tableHash(own(at)).toString("base64"), "shop", 2 ** 40)).toBe(known);
    }
    const later = own(101);
    expect(tables.bring(later, tableHash(later).toString("base64"), "shop", 16 * 1024 * 1024)).toBe(later);
    const next = own(102);
    const bring = () => tables.bring(next, tableHash(next).toString("base64"), "shop", 16 * 1024 * 1024);
    expect(bring()).toBeUndefined();
    tables.share(own(101));
    expect(bring()).toBe(next);
  });
});

it("the index of names is made again when many namespaces have come, or after ten minutes", async () => {
  const clock = createFakeClock();
  let names: string[] = [];
  const known = createKnownNames(() => names, clock);
  expect(known()).toBeUndefined();
  names = ["a"];
  await clock.advance(1_000);
  const first = known();
  expect(first?.names).toEqual(["a"]);
  names = ["a", "b"];
  await clock.advance(60_000);
  expect(known()).toBe(first);
  names = ["a", ...unknown(300)];
  await clock.advance(1_000);
  const second = known();
  expect(second?.names).toHaveLength(301);
  names = ["c", ...unknown(300)];
  await clock.advance(600_000);
  expect(known()?.names[0]).toBe("c");
});

function membersOf(names: readonly string[], rulesOf: (at: number) => readonly number[]): Record<string, readonly number[]> {
  return Object.fromEntries(names.map((name, at) => [name, rulesOf(at)]));
}

function unknown(count: number): string[] {
  return Array.from({ length: count }, (_, at) => `unknown-${at}`);
}

function resources(count: number) {
  return Array.from({ length: count }, (_, at) => group("apps", `kind-${at}s`));
}
