// The program ctrlmesh with a kubectl and an API server that misbehave. No control plane.
import { execFile, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { eventually } from "../support/eventually.ts";
import { programMain } from "../support/programs.ts";

const MAIN = programMain("cli");
const LATE_MS = 12_000;

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
  readonly isLate: boolean;
}

let dir: string;
const path = () => `${dir}:/usr/bin:/bin`;
const pids = () => (existsSync(join(dir, "pids")) ? readFileSync(join(dir, "pids"), "utf8").trim().split("\n").map(Number) : []);
const livingPids = () => pids().filter(isAlive);

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "ctrlmesh-attack-"));
});
afterEach(() => {
  for (const pid of livingPids()) process.kill(pid, "SIGKILL");
  rmSync(dir, { recursive: true, force: true });
});

function isAlive(pid: number): boolean {
  // In a container nobody may collect what has ended.
  const stat = `/proc/${pid}/stat`;
  return existsSync(stat) && !/\) Z /.test(readFileSync(stat, "utf8"));
}

function ctrlmesh(args: readonly string[], env: Readonly<Record<string, string>>): Promise<Ended> {
  return new Promise((resolve) => {
    execFile(process.execPath, [MAIN, ...args], { env, timeout: LATE_MS, killSignal: "SIGKILL" }, (error, stdout, stderr) => {
      const code = typeof error?.code === "number" ? error.code : 0;
      resolve({ code, stdout, stderr, isLate: error?.killed === true });
    });
  });
}

const APP = {
  metadata: { namespace: "ops", name: "shop", generation: 1 },
  status: {
    subsets: [],
    conditions: [
      {
        type: "Converged",
        status: "True",
        reason: "InSync",
        message: "",
        observedGeneration: 1,
        lastTransitionTime: "2026-01-01T00:00:00Z",
      },
    ],
  },
};
const POD = { metadata: { namespace: "ops", name: "shop-0" }, status: { phase: "Running" } };

/** A kubectl with one app and one pod. @param cases more arms of `case "$*"`, before the usual ones */
function writeKubectl(cases: string): void {
  for (const [name, items] of Object.entries({ virtualapps: [APP], shardingconfigs: [], pods: [POD] }))
    writeFileSync(join(dir, name), JSON.stringify({ items }));
  const script = `#!/bin/sh
case "$*" in
${cases}
"config view"*) printf ops;;
*/virtualapps*) cat ${dir}/virtualapps;;
*/shardingconfigs*) cat ${dir}/shardingconfigs;;
*/pods*) cat ${dir}/pods;;
esac
`;
  writeFileSync(join(dir, "kubectl"), script, { mode: 0o755 });
}

const SILENT_FORWARD = () => `port-forward*) echo $$ >> ${dir}/pids; exec sleep 60;;`;

describe("ctrlmesh and a kubectl that misbehaves", () => {
  it("ends, and leaves no process, if port-forward never says a port", async () => {
    writeKubectl(SILENT_FORWARD());
    const { isLate } = await ctrlmesh(["explain", "owner", "ns/a", "--request-timeout", "1s"], { PATH: path() });
    expect(isLate).toBe(false);
    // A killed process needs a moment to end.
    await eventually(() => expect(livingPids()).toEqual([]), { withinMs: 2_000 });
  });

  it("ends, and leaves no process, if kubectl is a script that runs kubectl", async () => {
    writeKubectl(`port-forward*) echo "Forwarding from 127.0.0.1:1 -> 5441"; sleep 60 & echo $! >> ${dir}/pids; wait;;`);
    const { isLate } = await ctrlmesh(["explain", "owner", "ns/a", "--request-timeout", "1s"], { PATH: path() });
    expect(isLate).toBe(false);
    // A killed process needs a moment to end.
    await eventually(() => expect(livingPids()).toEqual([]), { withinMs: 2_000 });
  });

  it("leaves no port-forward behind when it is terminated", async () => {
    writeKubectl(SILENT_FORWARD());
    const child = spawn(process.execPath, [MAIN, "explain", "owner", "ns/a"], { env: { PATH: path() }, stdio: "ignore" });
    await eventually(() => expect(pids()).toHaveLength(1));
    child.kill("SIGTERM");
    await eventually(() => expect(livingPids()).toEqual([]));
  });

  it("ends a watch with 0 at Ctrl-C, and leaves no kubectl behind, also one that hangs", async () => {
    writeKubectl(`*/virtualapps*) echo $$ >> ${dir}/pids; exec sleep 60;;`);
    const child = spawn(process.execPath, [MAIN, "status", "-w"], { env: { PATH: path() }, stdio: "ignore" });
    const ended = new Promise((resolve) => child.once("exit", (code, signal) => resolve({ code, signal })));
    await eventually(() => expect(pids()).toHaveLength(1));
    child.kill("SIGINT");
    expect(await ended).toEqual({ code: 0, signal: null });
    await eventually(() => expect(livingPids()).toEqual([]));
  });

  it("goes on watching while kubectl cannot reach the API server, and then shows what has changed", async () => {
    writeKubectl(`*/virtualapps*) [ ! -e ${dir}/away ] || { echo "connection refused" >&2; exit 1; }; cat ${dir}/virtualapps;;`);
    const child = spawn(process.execPath, [MAIN, "status", "-w"], { env: { PATH: path() } });
    let [stdout, stderr] = ["", ""];
    child.stdout.on("data", (chunk) => {
      stdout += chunk;
    });
    child.stderr.on("data", (chunk) => {
      stderr += chunk;
    });
    await eventually(() => expect(stdout).toContain("VirtualApp ops/shop"));
    writeFileSync(join(dir, "away"), "");
    await eventually(() => expect(stderr).toContain("looking again every 2 s: connection refused"));
    writeFileSync(
      join(dir, "virtualapps"),
      JSON.stringify({ items: [{ ...APP, metadata: { ...APP.metadata, name: "later" } }] }),
    );
    rmSync(join(dir, "away"));
    await eventually(() => expect(stdout).toContain("VirtualApp ops/shop: is gone"));
    child.kill("SIGINT");
    await eventually(() => expect(child.exitCode).toBe(0));
    // biome-ignore lint/suspicious/noControlCharactersInRegex: without a terminal, nothing drives one.
    expect(stdout).not.toMatch(/\u001b/);
  });

  it("names kubectl, and what it printed, if that is no JSON", async () => {
    writeKubectl('*/virtualapps*) echo "WARNING: this plugin is deprecated";;');
    const { code, stderr } = await ctrlmesh(["status"], { PATH: path() });
    expect(code).toBe(1);
    expect(stderr).toContain("kubectl");
    expect(stderr).not.toContain("Unexpected token");
  });

  it("names kubectl if its answer is no list, in one line", async () => {
    writeKubectl("*/virtualapps*) echo null;;");
    const { stderr } = await ctrlmesh(["status"], { PATH: path() });
    expect(stderr.trim().split("\n")).toHaveLength(1);
  });

  it("says that the user has no credentials if kubectl has asked for a name, instead of waiting for the API server", async () => {
    writeKubectl('*/virtualapps*) printf "Please enter Username: "; echo "error: EOF" >&2; exit 1;;');
    const { code, stderr } = await ctrlmesh(["wait", "shop", "--timeout", "8s"], { PATH: path() });
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringContaining("the user of the kubeconfig has no credentials"),
    });
  });

  it("waits on while the API server is away for a moment", async () => {
    writeKubectl(
      `*/virtualapps*) [ -f ${dir}/away ] || { touch ${dir}/away; echo "connection refused" >&2; exit 1; }; cat ${dir}/virtualapps;;`,
    );
    expect(await ctrlmesh(["wait", "shop", "--timeout", "8s"], { PATH: path() })).toMatchObject({ code: 0 });
  });

  it("ends a wait with 4 in its time, also while the API server does not answer", async () => {
    writeKubectl(`*/virtualapps*) exec sleep 30;;`);
    const begin = Date.now();
    const { code } = await ctrlmesh(["wait", "shop", "--timeout", "2s"], { PATH: path() });
    expect([code, Date.now() - begin < 5_000]).toEqual([4, true]);
  });

  it("does not say that a pod is gone which it may not see", async () => {
    const state = JSON.stringify({ status: { namespace: "mesh", endpoints: [{ name: "m-0", leader: true }] } });
    writeKubectl(`*/managerstates/*) echo '${state}';;\n*/pods/m-0*) echo "Error from server (Forbidden): no" >&2; exit 1;;`);
    expect((await ctrlmesh(["version"], { PATH: path() })).stdout).not.toContain("the pod is gone");
  });

  it.each(["1000h", "1.5ms"])("takes --request-timeout %s, or says that it is wrong", async (timeout) => {
    writeKubectl("");
    const { code, stderr } = await ctrlmesh(["status", `--request-timeout=${timeout}`], { PATH: path() });
    expect([0, 64]).toContain(code);
    expect(stderr).not.toMatch(/Overflow|out of range/);
  });

  it("uses the pod's service account where kubectl has no kubeconfig, as kubectl does", async () => {
    writeKubectl('"config view"*) echo "error: current-context must exist in order to minify" >&2; exit 1;;');
    const inCluster = { KUBERNETES_SERVICE_HOST: "127.0.0.1", KUBERNETES_SERVICE_PORT: "1" };
    expect(await ctrlmesh(["status", "-n", "ops"], { PATH: path(), HOME: dir, ...inCluster })).toMatchObject({ code: 0 });
  });

  it("shows no stack if the reader of its output has gone", async () => {
    writeKubectl("");
    const items = Array.from({ length: 5_000 }, (_, at) => ({ ...APP, metadata: { ...APP.metadata, name: `shop-${at}` } }));
    writeFileSync(join(dir, "virtualapps"), JSON.stringify({ items }));
    const child = spawn(process.execPath, [MAIN, "status"], { env: { PATH: path() }, stdio: ["ignore", "pipe", "pipe"] });
    let stderr = "";
    child.stderr.on("data", (chunk) => {
      stderr += chunk;
    });
    child.stdout.once("data", () => child.stdout.destroy());
    await new Promise((resolve) => child.once("close", resolve));
    expect(stderr).not.toContain("EPIPE");
  });
});

describe("ctrlmesh without kubectl, and an API server that misbehaves", () => {
  let server: Server;
  const statusFrom = async (answer: RequestListener) => {
    server = createServer(answer);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const config = {
      "current-context": "c",
      clusters: [{ name: "c", cluster: { server: url } }],
      contexts: [{ name: "c", context: { cluster: "c", user: "u" } }],
      users: [{ name: "u", user: {} }],
    };
    writeFileSync(join(dir, "config"), JSON.stringify(config));
    return ctrlmesh(["status", "-A", "--request-timeout", "2s"], { PATH: "/nonexistent", KUBECONFIG: join(dir, "config") });
  };
  afterEach(() => {
    server.closeAllConnections();
    server.close();
  });

  it("ends with 1 and a message if the server asks to retry later", async () => {
    const body = {
      kind: "Status",
      apiVersion: "v1",
      status: "Failure",
      reason: "TooManyRequests",
      message: "slow down",
      code: 429,
    };
    const { code, stderr } = await statusFrom((_, response) => {
      response.writeHead(429, { "content-type": "application/json", "retry-after": "1" });
      response.end(JSON.stringify(body));
    });
    expect(code).toBe(1);
    expect(stderr).not.toContain("unsettled top-level await");
  });

  it("does not say that there is no app if the answer is a login page", async () => {
    const { code } = await statusFrom((_, response) => {
      response.writeHead(200, { "content-type": "text/html" });
      response.end("<html>log in</html>");
    });
    expect(code).toBe(1);
  });

  it("says what to do if the server does not answer, as it does with kubectl", async () => {
    expect((await statusFrom(() => undefined)).stderr).toContain("has not answered within 2 s");
  });
});
