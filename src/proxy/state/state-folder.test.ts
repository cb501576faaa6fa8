import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { silentLogger } from "../../base/log.ts";
import { type Content, createStateFolder, isSamePod } from "./state-folder.ts";

let dir = "";
let warnings = 0;
const log = Object.assign(silentLogger(), { warn: () => void warnings++ });
const slot = (maxBytes?: number) => createStateFolder(dir, log, maxBytes).stream;
const save = (text: string, onFullDisk: Content["onFullDisk"] = "keep") => slot().save(() => ({ text: () => text, onFullDisk }));
/** There is no room for a new file. */
const fillDisk = () => mkdir(join(dir, "stream.tmp", "in-the-way"), { recursive: true });
/** There is room for nothing, and what is there cannot be removed. */
const breakDisk = async () => {
  await fillDisk();
  await rm(join(dir, "stream"), { force: true });
  await mkdir(join(dir, "stream", "in-the-way"), { recursive: true });
};

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "state-folder-"));
  warnings = 0;
});
afterEach(() => rm(dir, { recursive: true, force: true }));

describe("a slot", () => {
  it("has the text that was stored last, and undefined before the first", async () => {
    expect([await slot().read(), slot().isThere]).toEqual([undefined, false]);
    expect(await save("one")).toEqual({ is: "stored" });
    await save("two");
    expect([await slot().read(), slot().isThere]).toEqual(["two", true]);
    await slot().remove();
    expect([await slot().read(), slot().isThere]).toEqual([undefined, false]);
  });

  it("does not read a file over its bound, nor through a link", async () => {
    await writeFile(join(dir, "stream"), "x".repeat(65));
    await expect(slot().read()).rejects.toMatchObject({ code: "STORED_FILE" });
    await rm(join(dir, "stream"));
    await writeFile(join(dir, "victim"), "precious");
    await symlink(join(dir, "victim"), join(dir, "stream"));
    await expect(slot().read()).rejects.toMatchObject({ code: "ELOOP" });
  });

  it("that is touched is there before the call returns", async () => {
    dir = join(dir, "not-there-yet");
    slot().touch();
    expect([slot().isThere, await slot().read()]).toEqual([true, ""]);
  });

  it("stores the newest content once for all saves that wait, and nothing for undefined", async () => {
    const one = slot();
    let [value, asked] = [0, 0];
    const saves = Array.from({ length: 100 }, () => {
      value++;
      return one.save(() => {
        asked++;
        return { text: () => String(value), onFullDisk: "keep" };
      });
    });
    await Promise.all(saves);
    expect([await one.read(), asked]).toEqual(["100", 1]);
    expect(await one.save(() => undefined)).toEqual({ is: "same" });
    expect(await one.read()).toBe("100");
  });

  it("stores the content of the newest save that waits, whatever the earlier one would have stored", async () => {
    const one = slot();
    const saves = ["older", "newer"].map((text) => one.save(() => ({ text: () => text, onFullDisk: "keep" })));
    await Promise.all(saves);
    expect(await one.read()).toBe("newer");
  });

  it("saves again after a content that throws", async () => {
    const one = slot();
    const failing = () => {
      throw new Error("no content");
    };
    await expect(one.save(failing)).rejects.toThrow("no content");
    await one.idle();
    expect(await one.save(() => ({ text: () => "next", onFullDisk: "keep" }))).toEqual({ is: "stored" });
  });

  it("has told a save its result before the next one asks for its content", async () => {
    const one = slot();
    const order: string[] = [];
    const first = one.save(() => ({ text: () => "1", onFullDisk: "keep", done: ({ is }) => void order.push(is) }));
    await Promise.resolve(); // the first has its turn
    const second = one.save(() => {
      order.push("next");
      return undefined;
    });
    await Promise.all([first, second]);
    expect(order).toEqual(["stored", "next"]);
  });
});

describe("a disk that takes no new content", () => {
  it.each<[string, Content["onFullDisk"], string | undefined]>([
    ["the old text", "keep", "old"],
    ["an empty file", "empty", ""],
    ["no file", "remove", undefined],
    ["no file if less text finds no room either", { less: "small" }, undefined],
  ])("leaves %s", async (_, onFullDisk, left) => {
    await save("old");
    await fillDisk();
    expect(await save("new", onFullDisk)).toMatchObject({ is: "refused" });
    expect(await slot().read()).toBe(left);
  });

  it("leaves less text if only the whole is over the bound", async () => {
    await save("old");
    const saved = await slot(10).save(() => ({ text: () => "x".repeat(11), onFullDisk: { less: "small" } }));
    expect([saved.is, await slot().read()]).toEqual(["refused", "small"]);
  });

  it.each<[Content["onFullDisk"]]>([["empty"], ["remove"], [{ less: "small" }]])(
    "and does not give up what it has: nothing is known (%j)",
    async (onFullDisk) => {
      await breakDisk();
      expect(await save("new", onFullDisk)).toMatchObject({ is: "unknown" });
    },
  );

  it("is logged once, until it takes something again", async () => {
    const one = slot();
    const store = () => one.save(() => ({ text: () => "x", onFullDisk: "keep" }));
    await fillDisk();
    await store();
    await store();
    expect(warnings).toBe(1);
    await rm(join(dir, "stream.tmp"), { recursive: true });
    await store();
    await fillDisk();
    await store();
    expect(warnings).toBe(2);
  });
});

it("a file that can no longer be removed either is logged, even after the disk took no new content", async () => {
  const one = slot();
  const store = () => one.save(() => ({ text: () => "x", onFullDisk: "remove" }));
  await fillDisk();
  await store();
  await breakDisk();
  await store();
  await store();
  expect(warnings).toBe(2);
});

it("each file has the name by which older versions of the proxy wrote it", async () => {
  const folder = createStateFolder(dir, log);
  for (const each of Object.values(folder)) each.touch();
  expect(await readdir(dir)).toEqual([
    "breakers.json",
    "budget.json",
    "clean-end",
    "policies.json",
    "serving-certificate.json",
    "snapshot.json",
    "snapshot.json.unsaved",
    "stream",
  ]);
  expect(await readFile(join(dir, "stream"), "utf8")).toBe("");
});

it("a pod is the same only if namespace, name and uid are", () => {
  const pod = { namespace: "shop", name: "shop-0", uid: "u" };
  expect(isSamePod(pod, { ...pod })).toBe(true);
  for (const other of [{ namespace: "x" }, { name: "x" }, { uid: "x" }, { uid: "" }])
    expect(isSamePod({ ...pod, ...other }, pod)).toBe(false);
});
