// The protocol once more, in Promela (docs/protocol): Spin visits every state of each configuration that the page lists, and finds an error
// in each mutant. The page's numbers of states have to be those of this run.
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { HOLDS, MUTANTS } from "../support/protocol-page.ts";
import { describeWithProgram } from "../support/requirements.ts";

const MODEL = resolve("docs/protocol/handover.pml");
const TIMEOUT_MS = 600_000;

describeWithProgram("spin", "the protocol in Promela", () => {
  let dir: string;
  beforeAll(() => {
    dir = mkdtempSync(join(tmpdir(), "ctrlmesh-protocol-"));
  });
  afterAll(() => rmSync(dir, { recursive: true, force: true }));

  /** What the verifier prints for these flags, with the commands of the page. */
  function verify(flags: readonly string[]): string {
    const run = (command: string, ...args: string[]) =>
      execFileSync(command, args, { cwd: dir, encoding: "utf8", timeout: TIMEOUT_MS, stdio: ["ignore", "pipe", "inherit"] });
    run("spin", "-a", ...flags, MODEL);
    run("gcc", "-O2", "-w", "-DSAFETY", "-DCOLLAPSE", "-DVECTORSZ=2048", "-o", "pan", "pan.c");
    return run("./pan", "-m200000", "-w24");
  }

  it.each(HOLDS)("holds with $text, in every state", { timeout: TIMEOUT_MS }, ({ flags, states }) => {
    const output = verify(flags);
    expect(output).toContain("errors: 0");
    expect(Number(/(\d+) states, stored/.exec(output)?.[1])).toBe(states);
  });

  it.each(MUTANTS)("fails with $text", { timeout: TIMEOUT_MS }, ({ flags }) => {
    expect(verify(flags)).toContain("errors: 1");
  });
});
