// What the end-to-end tests need of the machine. In CI a missing piece is a failure; elsewhere the file is skipped with one
// clear line, so that a user without Go still gets a true result for the rest.
import { spawnSync } from "node:child_process";
import { describe, it } from "vitest";
import { whyNoGo } from "./go-build.ts";
import { hasKubeAssets } from "./kube-assets/folder.ts";

const isCi = process.env.CI === "true";
const noKube = hasKubeAssets() ? undefined : await whyNoGo();

/** `describe` for tests that need the real control plane. In CI its first hook fails by itself and says why. */
export function describeWithKube(name: string, body: () => void): void {
  const skipped = noKube !== undefined && !isCi;
  if (skipped) process.stderr.write(`SKIPPED (needs the real control plane: ${noKube}): ${name}\n`);
  describe.skipIf(skipped)(name, body);
}

/** `it` for tests that need a program of the machine, such as kubectl. In CI the test fails by itself and says why. */
export function itWithProgram(program: string, name: string, body: () => Promise<void>): void {
  const skipped = !isCi && spawnSync("which", [program]).status !== 0;
  if (skipped) process.stderr.write(`SKIPPED (needs ${program}): ${name}\n`);
  it.skipIf(skipped)(name, body);
}
