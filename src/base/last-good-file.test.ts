import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { createLastGoodFile } from "./last-good-file.ts";
import { silentLogger } from "./log.ts";

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "ctrlmesh-last-good-"));
});
afterEach(() => rm(dir, { recursive: true }));

const open = () => {
  const warnings: unknown[] = [];
  const log = Object.assign(silentLogger(), { warn: (fields: unknown) => void warnings.push(fields) });
  const parse = (text: string): object => JSON.parse(text);
  return { warnings, ...createLastGoodFile({ file: join(dir, "file"), name: "the file", code: "UNREADABLE", parse, log }) };
};

it("is read again, and has the same value while the text is the same", async () => {
  const { current } = open();
  await writeFile(join(dir, "file"), "{}");
  const first = await current();
  expect(await current()).toBe(first);
  await writeFile(join(dir, "file"), '{"a":1}');
  expect(await current()).toEqual({ a: 1 });
});

it("keeps its last good value while the file is missing or incomplete, with one warning", async () => {
  const { current, warnings } = open();
  await writeFile(join(dir, "file"), '{"a":1}');
  await current();
  await writeFile(join(dir, "file"), '{"a"');
  expect(await current()).toEqual({ a: 1 });
  await rm(join(dir, "file"));
  expect(await current()).toEqual({ a: 1 });
  expect(warnings).toHaveLength(1);
  await writeFile(join(dir, "file"), "{}");
  expect(await current()).toEqual({});
});

it("is an error that names the file while there has been no good text", async () => {
  await expect(open().current()).rejects.toMatchObject({ code: "UNREADABLE", message: expect.stringContaining(dir) });
});
