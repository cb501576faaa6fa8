import { mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { readToken } from "./manager-access.ts";

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "ctrlmesh-token-"));
});
afterEach(() => rm(dir, { recursive: true }));

it("the token is read through the links of a projected volume, without the end of line", async () => {
  await writeFile(join(dir, "real"), "a.b.c\n");
  await symlink("real", join(dir, "token"));
  expect(await readToken(join(dir, "token"))).toBe("a.b.c");
});

it.each([
  ["", "it is empty"],
  ["\n", "it is empty"],
  ["secret\nsecret", "there is no token in it"],
  ["secret\u0000", "there is no token in it"],
  ["s\u00e9cret", "there is no token in it"],
  ["secret".repeat(10_000), "there is no token in it"],
])("the token is never in an error: %j", async (text, why) => {
  await writeFile(join(dir, "token"), text);
  const error = await readToken(join(dir, "token")).catch((reason: unknown) => reason);
  expect(error).toMatchObject({
    code: "TOKEN_UNREADABLE",
    message: `reading this pod's token from ${join(dir, "token")}: ${why}`,
  });
  expect(Object.hasOwn(error as Error, "cause")).toBe(false);
});

it("a missing token is an error that names the file", async () => {
  await expect(readToken(join(dir, "none", "token"))).rejects.toThrow(`${join(dir, "none", "token")}: there is no such file`);
  await expect(readToken(dir)).rejects.toMatchObject({ code: "TOKEN_UNREADABLE" });
});
