import { mkdir, mkdtemp, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { silentLogger } from "../../base/log.ts";
import { createStateFolder } from "../state/state-folder.ts";
import { leaveCleanEnd, takeCleanEnd } from "./clean-end.ts";

const pod = { namespace: "shop", name: "shop-0", uid: "uid-1" };
let dir = "";
let path = "";
const endOf = (owner = pod) => {
  const { cleanEnd } = createStateFolder(dirname(path), silentLogger());
  return { take: () => takeCleanEnd(cleanEnd, owner, silentLogger()), leave: () => leaveCleanEnd(cleanEnd, owner) };
};

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "clean-end-"));
  path = join(dir, "clean-end");
});
afterEach(() => rm(dir, { recursive: true, force: true }));

it("is believed once, and gone from the disk before anything else happens", async () => {
  await endOf().leave();
  expect(await endOf().take()).toBe(true);
  expect(await readdir(dir)).toEqual([]);
  expect(await endOf().take()).toBe(false);
});

it("is not there where nobody has left it", async () => {
  expect(await endOf().take()).toBe(false);
  path = join(dir, "no-folder", "clean-end");
  expect(await endOf().take()).toBe(false);
});

it.each([{ uid: "uid-2" }, { uid: "" }, { name: "shop-1" }, { namespace: "other" }])(
  "of another pod is worth nothing, and goes as well: %o",
  async (other) => {
    await endOf({ ...pod, ...other }).leave();
    expect(await endOf().take()).toBe(false);
    expect(await readdir(dir)).toEqual([]);
  },
);

it.each(["", "garbage", '["shop","shop-0","uid-1"', "x".repeat(5_000)])("that is spoilt is worth nothing: %j", async (text) => {
  await writeFile(path, text);
  expect(await endOf().take()).toBe(false);
  expect(await readdir(dir)).toEqual([]);
});

it("is not read through a planted link", async () => {
  await endOf().leave();
  const victim = path;
  path = join(dir, "planted", "clean-end");
  await mkdir(join(dir, "planted"));
  await symlink(victim, path);
  expect(await endOf().take()).toBe(false);
  expect(await readdir(dir)).toEqual(["clean-end", "planted"]);
  expect(await readdir(join(dir, "planted"))).toEqual([]);
});

it("that cannot be taken away is an error: the next process would believe it", async () => {
  await mkdir(join(path, "in-the-way"), { recursive: true });
  await expect(endOf().take()).rejects.toMatchObject({ code: "CLEAN_END" });
});

it("that finds no room is no error and leaves nothing behind", async () => {
  await mkdir(join(`${path}.tmp`, "in-the-way"), { recursive: true });
  await endOf().leave();
  expect(await endOf().take()).toBe(false);
});
