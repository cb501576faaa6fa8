import { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { routes } from "../../../test/support/test-routes.ts";
import { silentLogger } from "../../base/log.ts";
import { createSnapshotFile, snapshotFromJson, snapshotToJson } from "./snapshot-file.ts";

const pod = { namespace: "shop", name: "shop-0", uid: "uid-1" };
const snapshot = routes(7, { blue: ["a", "b"], rest: ["c"], fenced: ["d"] });
let dir = "";
let path = "";
const fileOf = (owner = pod, maxBytes?: number) =>
  createSnapshotFile({ path, pod: owner, log: silentLogger(), ...(maxBytes === undefined ? {} : { maxBytes }) });

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
    ["of another format", (text: string) => text.replace('"format":1', '"format":2')],
    ["without a table", (text: string) => text.replace('"table"', '"tabel"')],
    ["with a class that names no rule", (text: string) => text.replace('"rules":[0]', '"rules":[9]')],
  ])("that is %s is ignored and removed", async (_, spoil) => {
    await mkdir(join(dir, "data"));
    await writeFile(path, spoil(snapshotToJson(snapshot, pod)));
    expect(await fileOf().load()).toBeUndefined();
    expect(await readdir(join(dir, "data"))).toEqual([]);
  });

  it("cut short at any byte is never half believed", () => {
    const text = snapshotToJson(snapshot, pod);
    for (let length = 0; length < text.length; length++) expect(() => snapshotFromJson(text.slice(0, length), pod)).toThrow();
  });

  it("of another pod is not believed: a StatefulSet's pod comes back under the same name", async () => {
    await fileOf().save(snapshot);
    expect(await fileOf({ ...pod, uid: "uid-2" }).load()).toBeUndefined();
    await fileOf().save(snapshot);
    expect(await fileOf({ ...pod, name: "shop-1" }).load()).toBeUndefined();
    await fileOf().save(snapshot);
    expect(await fileOf({ ...pod, uid: "" }).load()).toEqual(snapshot);
  });

  it("over the bound is neither read nor written, and an older one does not stay", async () => {
    await fileOf().save(snapshot);
    await truncate(path, 10_000);
    expect(await fileOf(pod, 5_000).load()).toBeUndefined();
    await fileOf().save(snapshot);
    await fileOf(pod, 10).save(routes(8, {}));
    expect(await fileOf().load()).toBeUndefined();
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
