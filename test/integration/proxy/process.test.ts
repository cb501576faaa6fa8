// The proxy as a process: what main does with good and bad configuration, and with SIGTERM.
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type FakeApi, startFakeApi } from "../../support/fake-api.ts";

const MAIN = join(import.meta.dirname, "../../../src/proxy/main.ts");

let api: FakeApi;
let dir: string;

beforeEach(async () => {
  api = await startFakeApi();
  dir = await mkdtemp(join(tmpdir(), "ctrlmesh-main-"));
  await writeFile(join(dir, "api-ca.crt"), api.ca.certPem);
});
afterEach(async () => {
  await api.close();
  await rm(dir, { recursive: true });
});

interface Run {
  readonly child: ChildProcessWithoutNullStreams;
  stdout: string;
  stderr: string;
  readonly exit: Promise<number | null>;
}

function start(...argv: string[]): Run {
  const child = spawn(process.execPath, [MAIN, ...argv], { env: {} });
  const run: Run = { child, stdout: "", stderr: "", exit: once(child, "close").then(([code]) => code as number | null) };
  child.stdout.on("data", (chunk: Buffer) => {
    run.stdout += chunk.toString();
  });
  child.stderr.on("data", (chunk: Buffer) => {
    run.stderr += chunk.toString();
  });
  return run;
}

describe("ctrlmesh-proxy", () => {
  it("exits 64 with every problem in one message, before it binds anything", async () => {
    const run = start("--listen=nonsense");
    expect(await run.exit).toBe(64);
    for (const name of ["--api-server", "--manager", "--pod-name", "--pod-namespace", "--listen"])
      expect(run.stderr).toContain(name);
    expect(run.stdout).toBe("");
  });

  it("prints its settings with --help", async () => {
    const run = start("--help");
    expect(await run.exit).toBe(0);
    expect(run.stdout).toContain("CTRLMESH_API_SERVER");
  });

  it("prints one line once it is ready, is not ready without a snapshot, and ends cleanly with SIGTERM", async () => {
    const run = start(
      `--api-server=${api.url}`,
      `--api-server-ca=${join(dir, "api-ca.crt")}`,
      "--manager=127.0.0.1:1",
      "--pod-name=operator-0",
      "--pod-namespace=ops",
      `--data-dir=${dir}`,
      "--listen=127.0.0.1:0",
      "--health-listen=127.0.0.1:0",
      "--print-ready",
    );
    await Promise.race([once(run.child.stdout, "data"), run.exit]);
    expect(run.stderr).not.toContain("ctrlmesh-proxy:");
    const ready = JSON.parse(run.stdout) as { url: string; healthUrl: string; ca: string };
    expect(ready).toMatchObject({ url: expect.stringMatching(/^https:\/\/127\.0\.0\.1:\d+$/), ca: join(dir, "ca.crt") });
    expect(await readFile(ready.ca, "utf8")).toContain("BEGIN CERTIFICATE");
    expect((await fetch(`${ready.healthUrl}/healthz`)).status).toBe(200);
    const readyz = await fetch(`${ready.healthUrl}/readyz`);
    expect([readyz.status, await readyz.text()]).toEqual([500, "no snapshot from the manager yet"]);
    expect(await (await fetch(`${ready.healthUrl}/metrics`)).text()).toContain("ctrlmesh_build_info");
    run.child.kill("SIGTERM");
    expect(await run.exit).toBe(0);
    expect(run.stdout.trim().split("\n")).toHaveLength(1);
  });
});
