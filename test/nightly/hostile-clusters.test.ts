// 32 other clusters whose API servers do all they can to exhaust the sidecar, beside a good one. The sidecar's part is a process of
// its own, so its memory is that of the sidecar.
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startChild } from "../support/child-process.ts";
import { answerJson, type FakeApi, startFakeApi } from "../support/fake-api.ts";
import { WAYS } from "../support/hostile/servers.ts";
import { readImage } from "../support/program-image.ts";

const { nodeFlags, env } = readImage("proxy");
const SERVERS = join(import.meta.dirname, "../support/hostile/main.ts");
const SIDECAR = join(import.meta.dirname, "../support/hostile/sidecar.ts");
const CLUSTERS = 32;
/** The default memory limit of the sidecar in the chart is 512 MiB, and some of it is the kernel's. */
const MAX_MIB = 400;
const SECONDS = 8;
/** Most of it is the first second, in which the sidecar opens hundreds of connections. */
const MAX_MS = 3_000;

interface Measured {
  readonly peakMiB: number;
  readonly goodP99Ms: number;
  readonly homeP99Ms: number;
  readonly goodCount: number;
  readonly goodFailed: number;
  readonly answers: Readonly<Record<string, number>>;
  readonly message: string;
}

let good: FakeApi;
beforeAll(async () => {
  const item = { metadata: { name: "c", namespace: "own", resourceVersion: "1" } };
  good = await startFakeApi((req, res) => {
    req.resume();
    const isOne = req.url?.endsWith("/c") ?? false;
    const resources = [{ name: "configmaps", namespaced: true, kind: "ConfigMap", verbs: ["list"] }];
    if (req.url?.endsWith("/api/v1")) answerJson(res, 200, { kind: "APIResourceList", groupVersion: "v1", resources });
    else if (isOne) answerJson(res, 200, { kind: "ConfigMap", apiVersion: "v1", ...item });
    else answerJson(res, 200, { kind: "ConfigMapList", apiVersion: "v1", metadata: { resourceVersion: "1" }, items: [item] });
  });
});
afterAll(() => good?.close());

async function attackBy(ways: readonly string[], accept?: string): Promise<Measured> {
  // Niced, since this machine has as many processors for the attackers as for the attacked.
  const child = await startChild({
    name: "hostile",
    command: "nice",
    args: ["-n", "19", process.execPath, SERVERS, ...ways],
  });
  try {
    const servers = child.ready.servers as readonly object[];
    const hostile = Array.from({ length: CLUSTERS }, (_, index) => servers[index % servers.length]);
    const asked = { hostile, good: { url: good.url, ca: good.ca.certPem }, seconds: SECONDS, accept };
    const { stdout } = await promisify(execFile)(process.execPath, [...nodeFlags, SIDECAR, JSON.stringify(asked)], {
      env: { ...process.env, ...env },
      timeout: 60_000,
    });
    return JSON.parse(stdout) as Measured;
  } finally {
    await child.stop();
  }
}

function check(measured: Measured): void {
  if (process.env.PRINT !== undefined) process.stderr.write(`${JSON.stringify(measured)}\n`);
  const { peakMiB, goodFailed, goodCount, goodP99Ms, homeP99Ms } = measured;
  expect(peakMiB).toBeLessThan(MAX_MIB);
  expect(goodFailed).toBe(0);
  expect(goodCount).toBeGreaterThan(8); // floods of empty frames allow 16 to 28 here, the others more
  expect(Math.max(goodP99Ms, homeP99Ms)).toBeLessThan(MAX_MS);
}

describe("32 hostile clusters cost the sidecar little memory, and a good cluster and home little time, by", () => {
  it.each(WAYS)(
    "%s",
    async (way) => {
      const accept = way.includes("protobuf") ? "application/vnd.kubernetes.protobuf" : undefined;
      check(await attackBy([way], accept));
    },
    90_000,
  );

  it("all of it at once", async () => check(await attackBy(WAYS)), 90_000);
});

it("a cluster that exceeds its share is refused in words that name it and the bound", async () => {
  const { message } = await attackBy(["an endless object"]);
  expect(message).toMatch(
    /cluster \\"bad-\d+\\" is not asked for objects: its last answers took more than its share of the 64 MiB/,
  );
}, 90_000);
