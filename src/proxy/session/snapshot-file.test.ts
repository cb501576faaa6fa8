import { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { routes } from "../../../test/support/test-routes.ts";
import { silentLogger } from "../../base/log.ts";
import { namedRoute } from "../../mesh/contract/route-type.ts";
import { LOST_MOVES, type StoredMoves } from "../../mesh/moves/stored-moves.ts";
import { createStateFolder } from "../state/state-folder.ts";
import { createSnapshotFile, type LockState, snapshotToJson, storedFromJson, withSum } from "./snapshot-file.ts";

const pod = { namespace: "shop", name: "shop-0", uid: "uid-1" };
const namedOnly = Buffer.from(namedRoute(routes(7, {})).body).toString();
const snapshot = routes(7, { blue: ["a", "b"], defaultSubset: ["c"], fenced: ["d"] });
const OPEN: LockState = { closed: undefined, longestLeaseMs: undefined };
let dir = "";
let path = "";
const fileOf = (owner = pod, maxBytes?: number, lock: LockState = OPEN) => {
  const file = createSnapshotFile(createStateFolder(dirname(path), silentLogger(), maxBytes), owner, silentLogger());
  file.lock.keepGate(lock.closed);
  file.lock.keepLease(lock.longestLeaseMs);
  return file;
};
/** So that a spoilt content is judged, and not its sum. */
const withoutSum = (text: string) => text.replace(/,"sum":"\w{32}"/, "");
const closed = { lock: "shop-lock---blue", leaseMs: 40_000 };
const loadedLock = async (owner = pod) => {
  const file = fileOf(owner);
  await file.load();
  return file.lock.before;
};

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "snapshot-file-"));
  path = join(dir, "data", "snapshot.json");
});
afterEach(() => rm(dir, { recursive: true, force: true }));

describe("the stored snapshot", () => {
  it("comes back as it was, from a file that only the proxy may read", async () => {
    await fileOf().save(snapshot);
    expect(await fileOf().load()).toEqual(snapshot);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
  });

  it("is replaced, never appended to, and leaves nothing else behind", async () => {
    await fileOf().save(snapshot);
    await fileOf().save(routes(8, {}));
    expect((await fileOf().load())?.version).toBe(8);
    expect(await readdir(join(dir, "data"))).toEqual(["snapshot.json"]);
  });

  it("is nothing where there is none", async () => {
    expect(await fileOf().load()).toBeUndefined();
  });

  it.each([
    ["half-written", (text: string) => text.slice(0, text.length / 2)],
    ["garbage", () => "\0\0\0\0"],
    ["empty", () => ""],
    ["of another format", (text: string) => text.replace('"format":4', '"format":3')],
    ["without a body", (text: string) => text.replace('"body"', '"bodi"')],
    ["with a body that is no route", (text: string) => text.replace(/"body":.*/, '"body":"////"}}')],
    ["with a route without a table", (text: string) => text.replace(/"body":.*/, `"body":${namedOnly}}}`)],
  ])("that is %s is ignored and removed", async (_, spoil) => {
    await mkdir(join(dir, "data"));
    const text = snapshotToJson(snapshot, pod);
    for (const spoilt of [spoil(text), withSum(spoil(withoutSum(text)))]) {
      await writeFile(path, spoilt);
      expect(await fileOf().load()).toBeUndefined();
      expect(await readdir(join(dir, "data"))).toEqual([]);
    }
  });

  it("cut short at any byte is never half believed", () => {
    const text = snapshotToJson(snapshot, pod);
    for (let length = 0; length < text.length; length++) expect(() => storedFromJson(text.slice(0, length), pod)).toThrow();
  });

  it("of another pod is not believed: a StatefulSet's pod comes back under the same name", async () => {
    await fileOf().save(snapshot);
    expect(await fileOf({ ...pod, uid: "uid-2" }).load()).toBeUndefined();
    await fileOf().save(snapshot);
    expect(await fileOf({ ...pod, name: "shop-1" }).load()).toBeUndefined();
    await fileOf().save(snapshot);
    expect(await fileOf({ ...pod, namespace: "other" }).load()).toBeUndefined();
  });

  it("of a pod whose uid is not known is not believed by one whose uid is, nor the other way round", async () => {
    await fileOf().save(snapshot);
    expect(await fileOf({ ...pod, uid: "" }).load()).toBeUndefined();
    await fileOf({ ...pod, uid: "" }).save(snapshot);
    expect(await fileOf().load()).toBeUndefined();
    await fileOf({ ...pod, uid: "" }).save(snapshot);
    expect(await fileOf({ ...pod, uid: "" }).load()).toEqual(snapshot);
  });

  it("for a pod of another namespace is not believed, whoever it says that it belongs to", async () => {
    await fileOf().save({ ...snapshot, podNamespace: "other" });
    expect(await fileOf().load()).toBeUndefined();
  });

  it("over the bound is neither read nor written, and an older one does not stay", async () => {
    await fileOf().save(snapshot);
    await truncate(path, 10_000);
    expect(await fileOf(pod, 5_000).load()).toBeUndefined();
    await fileOf().save(snapshot);
    await fileOf(pod, 10).save(routes(8, {}));
    expect(await fileOf().load()).toBeUndefined();
  });

  it("that cannot be replaced is removed before anything newer is acknowledged", async () => {
    await fileOf().save(snapshot);
    await mkdir(join(`${path}.tmp`, "in-the-way"), { recursive: true });
    await fileOf().save(routes(8, {}));
    expect(await readdir(join(dir, "data"))).toEqual(["snapshot.json.tmp"]);
  });

  it("that can be neither replaced nor removed is an error, so that nothing newer is acknowledged", async () => {
    await mkdir(join(path, "in-the-way"), { recursive: true });
    await expect(fileOf().save(snapshot)).rejects.toThrow("neither replaced nor removed");
    expect(await readdir(join(dir, "data"))).toEqual(["snapshot.json"]);
  });

  it("keeps what is retained", async () => {
    const retained = [{ namespaces: new Set(["x", "y"]), rules: [{ resources: [], visible: true }] }];
    const showing = { ...snapshot, table: { ...snapshot.table, retained } };
    await fileOf().save(showing);
    expect(await fileOf().load()).toEqual(showing);
  });

  it("is not read through a planted link, and a planted temporary link is not written through", async () => {
    await mkdir(join(dir, "data"));
    const victim = join(dir, "victim");
    await writeFile(victim, "precious");
    await symlink(victim, `${path}.tmp`);
    await fileOf().save(snapshot);
    expect(await readFile(victim, "utf8")).toBe("precious");
    expect(await fileOf().load()).toEqual(snapshot);
  });
});

describe("beside the snapshot, the lock's gate", () => {
  it("comes back closed as it was, for the same pod", async () => {
    await fileOf(pod, undefined, { closed, longestLeaseMs: 137_000 }).save(snapshot);
    expect(await loadedLock()).toEqual({ lockName: "shop-lock", subset: "blue", closed, longestLeaseMs: 137_000 });
    expect(await loadedLock({ ...pod, uid: "uid-2" })).toBeUndefined();
  });

  it("is known to have been open where nothing else was stored", async () => {
    await fileOf().save(snapshot);
    expect(await loadedLock()).toEqual({ lockName: "shop-lock", subset: "blue", closed: undefined });
  });

  it("stays where the snapshot finds no room", async () => {
    await fileOf().save(snapshot);
    await fileOf(pod, 500, { closed, longestLeaseMs: 137_000 }).save(
      routes(8, { blue: Array.from({ length: 99 }, (_, n) => `n${n}`) }),
    );
    expect(await loadedLock()).toEqual({ lockName: "shop-lock", subset: "blue", closed, longestLeaseMs: 137_000 });
    expect(await fileOf().load()).toBeUndefined();
  });

  it("is bounded, and nothing is believed that is no number", async () => {
    const text = snapshotToJson(snapshot, pod, { closed: { ...closed, leaseMs: 1e12 }, longestLeaseMs: 2e12 });
    const { lock } = storedFromJson(text, pod);
    expect([lock?.closed?.leaseMs, lock?.longestLeaseMs]).toEqual([3_600_000, 3_600_000]);
    for (const number of ["1000000000000", "2000000000000"]) {
      expect(() => storedFromJson(withSum(withoutSum(text).replace(number, '"x"')), pod)).toThrow();
    }
  });

  it("is refused if it is closed and a part is missing: half a gate would open at once", () => {
    const content = JSON.parse(withoutSum(snapshotToJson(snapshot, pod, { closed, longestLeaseMs: undefined })));
    for (const half of [{}, { lock: "x" }, { leaseMs: 1 }, { lock: "x", leaseMs: null }, { lock: "x", leaseMs: -1 }, 5, false]) {
      const text = withSum(JSON.stringify({ ...content, lock: { ...content.lock, closed: half } }));
      expect(() => storedFromJson(text, pod)).toThrow("reading stored snapshot");
    }
  });
});

describe("beside the snapshot, the moves", () => {
  const left: StoredMoves = {
    hasLostOthers: true,
    resources: new Map([["/pods", { horizon: 3n, namespacesHorizon: 7n, departed: ["a"] }]]),
  };
  const loaded = async (owner = pod) => {
    const file = fileOf(owner);
    const found = await file.load();
    return [found?.version, file.moves.before];
  };
  const save = (of = left, maxBytes = 10_000) => {
    const file = fileOf(pod, maxBytes);
    file.moves.keep(() => of);
    return file.save(snapshot);
  };

  it("come back as they were, for the same pod", async () => {
    await save();
    expect(await loaded()).toEqual([7, left]);
    expect(await loaded({ ...pod, uid: "uid-2" })).toEqual([undefined, undefined]);
  });

  it("are none where there is no file, and lost where there was no room for the snapshot", async () => {
    expect(await loaded()).toEqual([undefined, undefined]);
    await save(left, 300);
    expect(await loaded()).toEqual([undefined, LOST_MOVES]);
  });

  it("that are malformed, absent, or of an older form are lost, and the snapshot is used", async () => {
    const text = snapshotToJson(snapshot, pod, undefined, left);
    const older = JSON.stringify({
      ...JSON.parse(withoutSum(text)),
      moves: { hasLostOthers: false, resources: { "/pods": {} } },
    });
    const spoilt = withSum(withoutSum(text).replace('"7"', '"x"'));
    for (const spoiled of [spoilt, withSum(older), snapshotToJson(snapshot, pod)]) {
      await mkdir(join(dir, "data"), { recursive: true });
      await writeFile(path, spoiled);
      expect(await loaded()).toEqual([7, LOST_MOVES]);
    }
  });
});

it("what a process has stored of moves is lost if it ended before it stored its last routes", async () => {
  const none: StoredMoves = { resources: new Map(), hasLostOthers: false };
  const start = async () => {
    const file = fileOf();
    file.moves.keep(() => none);
    await file.load();
    return { file, moves: file.moves };
  };
  const first = await start();
  first.file.willChange();
  await first.file.save(snapshot);
  expect((await start()).moves.before).toEqual(none);
  (await start()).file.willChange();
  expect((await start()).moves.before).toBe(LOST_MOVES);
});

it("routes that change while older ones are stored are not taken for stored after a crash", async () => {
  const file = fileOf();
  await file.load();
  file.willChange();
  const saving = file.save(snapshot);
  file.willChange(); // newer routes are in force and wait for their turn
  await saving;
  const next = fileOf();
  await next.load();
  expect(next.moves.before).toBe(LOST_MOVES);
});

it("moves are not believed that were stored while clients saw more than the snapshot says", async () => {
  const file = fileOf();
  file.moves.keep(() => ({ resources: new Map(), hasLostOthers: false }));
  await file.load();
  const movesOfNext = async () => {
    const next = fileOf();
    await next.load();
    return next.moves.before;
  };
  file.willChange();
  await file.save(snapshot, false);
  expect(await movesOfNext()).toEqual(LOST_MOVES);
  file.willChange();
  await file.save(snapshot);
  expect(await movesOfNext()).toEqual({ resources: new Map(), hasLostOthers: false });
});

it("moves are not believed that were stored while clients saw more than the snapshot says, also if the marker could not be written", async () => {
  const folder = createStateFolder(dirname(path), silentLogger());
  // A full disk: writing the marker fails with no more than a warning, and a moment later there is room for the snapshot.
  const unsaved = { ...folder.unsaved, touch: () => undefined };
  const file = createSnapshotFile({ snapshot: folder.snapshot, unsaved }, pod, silentLogger());
  file.moves.keep(() => ({ resources: new Map(), hasLostOthers: false }));
  await file.load();
  file.willChange();
  await file.save(snapshot, false);
  const next = fileOf();
  await next.load();
  expect(next.moves.before).toEqual(LOST_MOVES);
});
