// The proxy as a process: main with good configuration, with bad configuration, and with SIGTERM.

import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { eventually } from "../../support/eventually.ts";
import { type FakeApi, startFakeApi } from "../../support/fake-api.ts";
import { freePort } from "../../support/free-port.ts";
import { createProjectedVolume, issue, MANAGER_HOST, managerCertificate, newMeshCa } from "../../support/mesh-identity.ts";
import { programMain } from "../../support/programs.ts";
import { startManager } from "../../support/scripted-manager.ts";

const MAIN = programMain("proxy");

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
  it("exits 64 with every problem in one message, before it binds a port", async () => {
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

  it("prints one line once it listens, is not ready without a snapshot, and ends cleanly on SIGTERM", async () => {
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
    expect(readyz.status).toBe(500);
    expect(await readyz.text()).toMatch(/^no snapshot from the manager yet/);
    expect(await (await fetch(`${ready.healthUrl}/metrics`)).text()).toContain("ctrlmesh_build_info");
    run.child.kill("SIGTERM");
    expect(await run.exit).toBe(0);
    expect(run.stdout.trim().split("\n")).toHaveLength(1);
  });

  it("with --identity=mesh waits for its certificate and its routes, says why, and logs no token", async () => {
    const [ca, volume] = [newMeshCa(), await createProjectedVolume()];
    const health = await freePort();
    const run = start(
      `--api-server=${api.url}`,
      `--api-server-ca=${join(dir, "api-ca.crt")}`,
      "--identity=mesh",
      `--manager-ca=${volume.caFile}`,
      `--token=${volume.tokenFile}`,
      `--manager=${MANAGER_HOST}:${await freePort()}`,
      "--pod-name=operator-0",
      "--pod-namespace=ops",
      `--data-dir=${volume.dataDir}`,
      "--listen=127.0.0.1:0",
      `--health-listen=127.0.0.1:${health}`,
      "--print-ready",
      "--log-level=trace",
    );
    const readyz = async () => (await fetch(`http://127.0.0.1:${health}/readyz`)).text();
    await eventually(async () => (await readyz()).includes(volume.caFile));
    await volume.write({ ca: ca.certPem });
    await eventually(async () => (await readyz()).includes(`${volume.tokenFile}: there is no such file`));
    expect(await readyz()).toMatch(/^no certificate from the manager yet: .*; no snapshot from the manager yet: /);
    await volume.write({ ca: ca.certPem, token: "pod-bound-secret" });
    await eventually(async () => (await readyz()).includes("is not available"));
    expect(run.stdout).toBe("");
    const at = Number(/127\.0\.0\.2:(\d+)/.exec(await readyz())?.[1]);
    const manager = await startManager(at, {
      host: MANAGER_HOST,
      tls: managerCertificate(ca),
      certify: ({ publicKey }) => issue(ca, publicKey),
    });
    await eventually(async () => (await readyz()).startsWith("no snapshot from the manager yet"));
    expect(JSON.parse(run.stdout)).toMatchObject({ ca: volume.caFile });
    expect(new Set(manager.authorizations)).toEqual(new Set(["Bearer pod-bound-secret"]));
    run.child.kill("SIGTERM");
    expect(await run.exit).toBe(0);
    manager.stop();
    expect(run.stdout + run.stderr).not.toMatch(/secret|PRIVATE KEY/);
    await volume.remove();
  });

  it("ends on SIGTERM while it waits for its certificate", async () => {
    const health = await freePort();
    const run = start(
      `--api-server=${api.url}`,
      `--api-server-ca=${join(dir, "api-ca.crt")}`,
      "--identity=mesh",
      `--manager-ca=${join(dir, "none.crt")}`,
      `--token=${join(dir, "none")}`,
      "--manager=127.0.0.1:1",
      "--pod-name=operator-0",
      "--pod-namespace=ops",
      `--data-dir=${dir}`,
      `--health-listen=127.0.0.1:${health}`,
    );
    await eventually(async () => (await fetch(`http://127.0.0.1:${health}/readyz`)).status === 500);
    run.child.kill("SIGTERM");
    expect(await run.exit).toBe(0);
  });
});
