// The pure parts of the demo's second act: the output (golden: demo/sharding-NAME.txt), what its steps wait for, and its check of the audit log.
import { describe, expect, it } from "vitest";
import type { AuditEvent } from "../../examples/demo/audit.ts";
import { wrongFamily, wrongFoos } from "../../examples/demo/sharding/expectations.ts";
import { readFamily } from "../../examples/demo/sharding/family.ts";
import { tallyShards } from "../../examples/demo/sharding/tally.ts";
import { type Facts, factLines, type ShardRow, summaryLines, type Tally } from "../../examples/demo/sharding/view.ts";
import type { Paint } from "../../examples/demo/table.ts";

const plain: Paint = (_style, text) => text;
const marked: Paint = (style, text) => `<${style}>${text}</${style}>`;

const shard = (name: string, more: Partial<ShardRow> = {}): ShardRow => ({
  shard: name,
  pods: "1/1",
  leader: `pod-of-${name}`,
  namespaces: 3,
  reconciled: 3,
  ...more,
});
const root = { name: "foo-operator", ready: "True", converged: true, balance: [2, 3], message: "2 of 2 proxies" } as const;
const FACTS: Facts = { root, shards: [shard("foo-0-canary"), shard("foo-1-normal")], reconciledBy: new Map(), behind: 0 };

describe("the view of shards", () => {
  const golden = (name: string, lines: readonly string[]) =>
    expect(lines.map((line) => `${line}\n`).join("")).toMatchFileSnapshot(`./demo/sharding-${name}.txt`);

  it("shows the shards and their root", () => golden("facts", factLines(FACTS, plain, 104)));

  it("marks what is not done yet", () => {
    const shards = [shard("foo-1-normal", { reconciled: 1 }), shard("foo-2-normal", { pods: "0/1", leader: "", namespaces: 0 })];
    const moving = { ...root, converged: false, balance: [3, 3], message: "3 namespaces move" } as const;
    return golden("moving", factLines({ ...FACTS, shards, root: moving }, marked, 104));
  });

  it("shows a root without a status", () => {
    const fresh = { ...root, ready: "Unknown", converged: false, balance: undefined, message: "" };
    return golden("nothing-yet", factLines({ ...FACTS, root: fresh, shards: [] }, plain, 104));
  });

  it("sums up writes by shard, and moved namespaces", () => {
    const byShard = [
      { shard: "foo-0-canary", writes: 4, namespaces: 2 },
      { shard: "foo-1-normal", writes: 12, namespaces: 6 },
    ];
    const scalings = [{ title: "from 1 to 2", moved: 4, minimum: 3 }];
    const tally: Tally = { writes: 16, lockWrites: 5, byShard, scalings, late: ["pod: update foos a/f"], silent: [] };
    return golden("summary", summaryLines(tally, plain, 104));
  });
});

describe("what the steps wait for", () => {
  const wrong = (more: Partial<Facts>) => wrongFamily({ ...FACTS, ...more }, ["foo-0-canary", "foo-1-normal"]);
  const withShard = (more: Partial<ShardRow>) => wrong({ shards: [shard("foo-0-canary"), shard("foo-1-normal", more)] });

  it("is a family with exactly these shards", () => {
    expect(wrong({})).toBeUndefined();
    expect(wrong({ shards: [] })).toMatch(/should be foo-0-canary, foo-1-normal, and are none/);
    expect(wrong({ shards: [...FACTS.shards, shard("foo-2-normal")] })).toMatch(/and are .*foo-2-normal/);
  });

  it("is that every shard has a ready pod, a leader and namespaces, and has reconciled them", () => {
    expect(withShard({ pods: "0/1" })).toMatch(/foo-1-normal should have a ready pod/);
    expect(withShard({ leader: "" })).toMatch(/leader ""/);
    expect(withShard({ namespaces: 0, reconciled: 0 })).toMatch(/0 namespaces/);
    expect(withShard({ reconciled: 2 })).toMatch(/has reconciled 2/);
  });

  it("is that the root is ready and converged, and every Foo reconciled", () => {
    expect(wrong({ root: { ...root, converged: false } })).toMatch(/should be ready and converged/);
    expect(wrong({ root: { ...root, ready: "False" } })).toMatch(/is Ready False/);
    expect(wrongFoos({ ...FACTS, behind: 2 })).toMatch(/2 are not/);
    expect(wrongFoos(FACTS)).toBeUndefined();
  });
});

describe("the tally of shards", () => {
  const subsetOfPod = new Map(["canary", "one", "two", "three"].map((name) => [`pod-${name}`, name]));
  const write = (shardName: string, namespace: string, resource = "foos", name = "f"): AuditEvent => ({
    verb: "update",
    user: { username: "operator", extra: { "authentication.kubernetes.io/pod-name": [`pod-${shardName}`] } },
    objectRef: { resource, namespace, name },
    responseStatus: { code: 200 },
  });
  const scaling: AuditEvent = {
    verb: "patch",
    user: { username: "admin" },
    objectRef: { resource: "statefulsets", namespace: "sys", name: "op" },
    responseStatus: { code: 200 },
  };
  const tally = (events: readonly AuditEvent[], ...sizes: readonly (readonly string[])[]) =>
    tallyShards(events, {
      subsetOfPod,
      lock: { namespace: "sys", name: "op" },
      canary: "canary",
      scalings: sizes.map((normalShards) => ({ title: normalShards.join(), normalShards })),
    });

  it("counts writes by shard, without locks, also the operator's own lock of a pod that stands by", () => {
    const locks = [write("one", "sys", "leases", "op---one"), write("two", "sys", "leases", "op")];
    const { byShard, ...rest } = tally([write("one", "a"), ...locks, write("one", "b"), write("canary", "c")]);
    expect(byShard).toEqual([
      { shard: "canary", writes: 1, namespaces: 1 },
      { shard: "one", writes: 2, namespaces: 2 },
    ]);
    expect(rest).toEqual({ writes: 3, lockWrites: 2, late: [], scalings: [], silent: [] });
  });

  it("finds a second writing shard before the first scaling", () => {
    expect(tally([write("one", "a"), write("two", "a")]).late).toEqual(["pod-two: update foos a/f"]);
  });

  it("allows a namespace to go on after a scaling, and finds a write of a shard that had lost it", () => {
    const [before, after] = [write("one", "a"), write("two", "a")];
    expect(tally([before, scaling, before, after, after], ["one", "two"]).late).toEqual([]);
    expect(tally([before, scaling, after, write("three", "a")], ["one", "two", "three"]).late).toEqual([]);
    expect(tally([before, scaling, after, before], ["one", "two"]).late).toEqual(["pod-one: update foos a/f"]);
    expect(tally([before, scaling, after, scaling, before], ["one", "two"], ["one"]).late).toEqual([]);
  });

  it("counts moved namespaces, and the fewest that had to move", () => {
    const names = ["a", "b", "c", "d"];
    const all = (shardName: string, which: readonly string[]) => which.map((name) => write(shardName, name));
    const canary = write("canary", "x");
    const events = [
      ...all("one", names),
      canary,
      scaling,
      ...all("one", ["a"]),
      ...all("two", ["b", "c", "d"]),
      canary,
      scaling,
      ...all("one", names),
      canary,
    ];
    expect(tally(events, ["one", "two"], ["one"]).scalings).toEqual([
      { title: "one,two", moved: 3, minimum: 2 },
      { title: "one", moved: 3, minimum: 3 },
    ]);
  });

  it("names the namespaces without a write before or after a scaling", () => {
    expect(tally([write("one", "a"), scaling, write("one", "b")], ["one"]).silent).toEqual(["a", "b"]);
  });
});

it("the files of the act name a canary and three normal shards", () => {
  const { setting, replicas, canary, shardsOf, podOf } = readFamily();
  expect(setting).toMatchObject({ namespace: "foo-system", appName: "foo-operator", lockName: "foo-operator" });
  expect(shardsOf(replicas)).toEqual(["foo-0-canary", "foo-1-normal", "foo-2-normal", "foo-3-normal"]);
  expect(canary).toEqual({ shard: "foo-0-canary", namespaces: ["preview", "staging"] });
  expect(podOf(2)).toMatchObject({ name: "foo-operator-2", subset: "foo-2-normal" });
});
