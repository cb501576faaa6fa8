// The programs and rights that end-to-end tests need. In CI a missing one is a failure. Elsewhere the file is skipped with one clear
// line, so that all other tests still give a true result.
import { spawnSync } from "node:child_process";
import { describe, it } from "vitest";
import { whyNoTestNode } from "../node/prerequisites.ts";
import { whyNoArm64 } from "./arm64/emulation.ts";
import { isNightly } from "./fuzz.ts";
import { whyNoGo } from "./go-build.ts";
import { hasKubeAssets } from "./kube-assets/folder.ts";
import { hasLibrary } from "./program-image.ts";
import { whyNoPrometheus } from "./prometheus.ts";
import { pythonEnvironment } from "./python.ts";

const isCi = process.env.CI === "true";
// kubectl prepares the cluster of nearly every such test (mesh/cluster.ts).
const noKube = hasProgram("kubectl") ? (hasKubeAssets() ? undefined : await whyNoGo()) : "kubectl is not installed";

/** `describe` for tests that need the real control plane. In CI its first hook fails with the reason. */
export function describeWithKube(name: string, body: () => void): void {
  const skipped = noKube !== undefined && !isCi;
  if (skipped) process.stderr.write(`SKIPPED (needs the real control plane: ${noKube}): ${name}\n`);
  describe.skipIf(skipped)(name, body);
}

/** `it` for tests that need a program of the machine, such as kubectl. In CI the test fails with the reason. */
export function itWithProgram(program: string, name: string, body: () => Promise<void>): void {
  it.skipIf(isSkipped(program, hasProgram, name))(name, body);
}

/** `it` for a longer variant of what another test shows. Elsewhere than in `npm run nightly` it is absent: CI may skip no test. */
export function itNightly(name: string, body: () => Promise<void>, timeoutMs?: number): void {
  if (isNightly) it(name, body, timeoutMs);
}

/** `it` for tests that need a library of the machine, such as libjemalloc.so.2. In CI the test fails with the reason. */
export function itWithLibrary(library: string, name: string, body: () => Promise<void>): void {
  it.skipIf(isSkipped(library, hasLibrary, name))(name, body);
}

/** `describe` for tests that need a program of the machine. In CI the tests fail with the reason. */
export function describeWithProgram(program: string, name: string, body: () => void): void {
  describe.skipIf(isSkipped(program, hasProgram, name))(name, body);
}

/**
 * `describe` for tests on the real control plane that also need what a build needs. In CI they fail with the reason.
 * @param missing why the build is impossible here; undefined if it is possible
 */
export function describeWithKubeAndBuild(missing: string | undefined, name: string, body: () => void): void {
  const skipped = missing !== undefined && !isCi;
  if (skipped) process.stderr.write(`SKIPPED (${missing}): ${name}\n`);
  describe.skipIf(skipped)(name, () => describeWithKube("on the real control plane", body));
}

/** Prints why a test is skipped. */
function isSkipped(needed: string, has: (name: string) => boolean, test: string): boolean {
  const skipped = !isCi && !has(needed);
  if (skipped) process.stderr.write(`SKIPPED (needs ${needed}): ${test}\n`);
  return skipped;
}

/** `describe` for tests with Prometheus or promtool. In CI they fail with the reason. */
export function describeWithPrometheus(name: string, body: () => void): void {
  const missing = whyNoPrometheus();
  const skipped = missing !== undefined && !isCi;
  if (skipped) process.stderr.write(`SKIPPED (${missing}): ${name}\n`);
  describe.skipIf(skipped)(name, body);
}

/** `describe` for tests that create network namespaces. In CI its first hook fails with the reason. */
export function describeWithNetworkNamespaces(name: string, body: () => void): void {
  const skipped = !isCi && !canMakeNamespaces();
  if (skipped) process.stderr.write(`SKIPPED (needs root and iproute2 to create network namespaces): ${name}\n`);
  describe.skipIf(skipped)(name, body);
}

/** `describe` for tests on a cluster with running pods (test/node). In CI its first hook fails with the reason. */
export function describeWithTestNode(name: string, body: () => void): void {
  const missing = noKube ?? whyNoTestNode();
  const skipped = missing !== undefined && !isCi;
  if (skipped) process.stderr.write(`SKIPPED (needs a node that runs pods: ${missing}): ${name}\n`);
  describe.skipIf(skipped)(name, body);
}

/** `describe` for tests that run programs for arm64. In CI its first hook fails with the reason. */
export function describeWithArm64(name: string, body: () => void): void {
  const missing = whyNoArm64();
  const skipped = missing !== undefined && !isCi;
  if (skipped) process.stderr.write(`SKIPPED (needs to run programs for arm64: ${missing}): ${name}\n`);
  describe.skipIf(skipped)(name, body);
}

function hasProgram(program: string): boolean {
  return spawnSync("which", [program]).status === 0;
}

function canMakeNamespaces(): boolean {
  const name = `ctrlmesh-try-${process.pid}`;
  const made = spawnSync("ip", ["netns", "add", name]).status === 0;
  if (made) spawnSync("ip", ["netns", "del", name]);
  return made;
}

/** The python with the Python clients. If they cannot be installed, it prints the reason and returns undefined. @throws Error in CI */
export async function pythonOrSkip(name: string): Promise<string | undefined> {
  const environment = await pythonEnvironment();
  if ("command" in environment) return environment.command;
  if (isCi) throw new Error(environment.missing);
  process.stderr.write(`SKIPPED (needs Python's clients: ${environment.missing}): ${name}\n`);
  return undefined;
}
