// The fixture of all other files in this folder: a real control plane. It survives an outage, and no process of it remains after any
// end of its parent.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { createKubeClient } from "../../src/kube/client/client.ts";
import { CONFIG_MAPS } from "../../src/kube/client/resources.ts";
import type { KubeClient } from "../../src/kube/client/types.ts";
import { isStatus } from "../../src/kube/status.ts";
import { type Child, startChild } from "../support/child-process.ts";
import { eventually } from "../support/eventually.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { tryKubectl } from "../support/kubectl.ts";
import { describeWithKube, itWithProgram } from "../support/requirements.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

describeWithKube("the control plane of the tests", () => {
  let kube: Kube;
  const clients: KubeClient[] = [];

  beforeAll(async () => {
    kube = await startKube();
  });
  afterAll(async () => {
    await kube?.stop();
  });
  afterEach(async () => {
    for (const client of clients.splice(0)) await client.close();
  });

  function connect(token = kube.token): KubeClient {
    const client = createKubeClient({ server: kube.server, caPem: kube.caPem, token: () => token, userAgent: "fixture-test/1" });
    clients.push(client);
    return client;
  }
  const create = (name: string) =>
    connect().create(CONFIG_MAPS, { metadata: { namespace: "default", name }, data: { key: name } });

  it("records writes with their users in its audit log, but no reads", async () => {
    await create("audited");
    await connect().get(CONFIG_MAPS, { namespace: "default", name: "audited" });
    await connect().delete(CONFIG_MAPS, { namespace: "default", name: "audited" });
    const writes = kube.audit().filter(({ userAgent }) => userAgent === "fixture-test/1");
    expect(writes).toMatchObject(
      [
        { verb: "create", responseStatus: { code: 201 } },
        { verb: "delete", responseStatus: { code: 200 } },
      ].map((each) => ({
        ...each,
        user: { username: "admin" },
        objectRef: { resource: "configmaps", namespace: "default", name: "audited" },
      })),
    );
  });

  it("refuses an unknown token", async () => {
    const refused = await connect("no-such-token")
      .list(CONFIG_MAPS)
      .catch((error: unknown) => error);
    expect(isStatus(refused, "Unauthorized")).toBe(true);
  });

  itWithProgram("kubectl", "gives kubectl a kubeconfig", async () => {
    const { stdout } = await tryKubectl(kube.kubeconfig, ["auth", "whoami", "-o", "jsonpath={.status.userInfo.groups[0]}"]);
    expect(stdout).toBe("system:masters");
  });

  it("keeps its data, port, token and audit log after kill -9 and a restart", async () => {
    await create("kept");
    const before = { pid: kube.pid, server: kube.server };
    await kube.crash();
    await expect(fetch(kube.server)).rejects.toThrow();
    await kube.restart();
    expect(kube.server).toBe(before.server);
    expect(kube.pid).not.toBe(before.pid);
    const kept = await connect().get(CONFIG_MAPS, { namespace: "default", name: "kept" });
    expect(kept.data).toEqual({ key: "kept" });
    await create("after");
    const created = kube.audit().filter(({ verb, userAgent }) => verb === "create" && userAgent === "fixture-test/1");
    expect(created.map(({ objectRef }) => objectRef?.name)).toEqual(["audited", "kept", "after"]);
  });
});

describeWithKube("a control plane leaves no process behind", () => {
  const children: Child[] = [];
  afterEach(async () => {
    for (const child of children.splice(0)) await child.stop();
  });

  /** Starts a Node process that starts a control plane and waits. */
  async function startParent(): Promise<{ parent: Child; kubePid: number }> {
    const support = new URL("../support/kube.ts", import.meta.url).href;
    const script = `
      const { startKube } = await import(${JSON.stringify(support)});
      const kube = await startKube();
      console.log(JSON.stringify({ pid: kube.pid }));
      setInterval(() => {}, 60_000);`;
    const args = ["--input-type=module", "-e", script];
    const parent = await startChild({ name: "parent", command: process.execPath, args, readyMs: 60_000 });
    children.push(parent);
    return { parent, kubePid: Number(parent.ready.pid) };
  }
  const expectEnded = (pid: number) => eventually(() => !isAlive(pid), { withinMs: 10_000 });

  it("after stop", async () => {
    const kube = await startKube();
    const { pid, kubeconfig } = kube;
    const processes = [pid, ...descendants(pid)];
    expect(isAlive(pid)).toBe(true);
    await kube.stop();
    expect(processes.filter(isAlive)).toEqual([]);
    expect(() => readFileSync(kubeconfig)).toThrow("ENOENT");
  });

  it("after kill -9 of its parent", async () => {
    const { parent, kubePid } = await startParent();
    const processes = [kubePid, ...descendants(kubePid)];
    parent.kill("SIGKILL");
    for (const pid of processes) await expectEnded(pid);
  });

  it("after SIGTERM to its parent", async () => {
    const { parent, kubePid } = await startParent();
    parent.kill("SIGTERM");
    await expectEnded(kubePid);
  });

  it("after Ctrl-C of npm run kube", async () => {
    // A process group of its own, as in a terminal: Ctrl-C goes to npm, to the script and to the control plane.
    const npm = spawn("npm", ["run", "--silent", "kube"], { cwd: ROOT, detached: true, stdio: ["ignore", "pipe", "pipe"] });
    const pid = npm.pid ?? 0;
    try {
      const [line] = (await once(npm.stdout.setEncoding("utf8"), "data")) as [string];
      const kubeconfig = /^export KUBECONFIG=(\S+)\n$/.exec(line)?.[1] ?? "";
      expect(readFileSync(kubeconfig, "utf8")).toContain("https://127.0.0.1:");
      const processes = [pid, ...descendants(pid)];
      expect(processes.length).toBeGreaterThan(1);
      process.kill(-pid, "SIGINT");
      for (const each of processes) await expectEnded(each);
      expect(() => readFileSync(kubeconfig)).toThrow("ENOENT");
    } finally {
      if (isAlive(pid)) process.kill(-pid, "SIGKILL");
    }
  });
});

function isAlive(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) Z/s.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}

/** The pids of all descendants of a process. */
function descendants(pid: number): number[] {
  const children = readdirSync("/proc").filter((name) => /^\d+$/.test(name) && parentOf(name) === pid);
  return children.map(Number).flatMap((child) => [child, ...descendants(child)]);
}

function parentOf(pid: string): number {
  try {
    return Number(/\) \w (\d+)/.exec(readFileSync(join("/proc", pid, "stat"), "utf8"))?.[1]);
  } catch {
    return 0;
  }
}
