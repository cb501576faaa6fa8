// The images for arm64, which this machine makes and runs with QEMU (test/support/arm64): they contain programs for arm64 only, and both
// programs work. QEMU translates each instruction, so all limits of time are wide.
import { chownSync, copyFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { startFleetWorld } from "../fleet/fleet-world.ts";
import { emulated, inRoot, runEmulated } from "../support/arm64/emulation.ts";
import { buildArm64Image } from "../support/arm64/images.ts";
import { type Child, startChild } from "../support/child-process.ts";
import { readPairs, type Stage } from "../support/dockerfile.ts";
import { eventually } from "../support/eventually.ts";
import { describeWithArm64 } from "../support/requirements.ts";

const NAMES = ["proxy", "manager"] as const;
const SLOW_MS = 300_000;
vi.setConfig({ testTimeout: SLOW_MS });
/** The number of AArch64 in the header of an ELF file. */
const AARCH64 = 183;

describeWithArm64("the images for arm64", () => {
  let dir: string;
  const stages = new Map<string, Stage>();
  const running: Child[] = [];
  const folder = (name: string) => join(dir, name);
  beforeAll(async () => {
    dir = mkdtempSync(join(tmpdir(), "ctrlmesh-arm64-"));
    for (const name of NAMES) stages.set(name, await buildArm64Image(name, folder(name)));
  }, 6 * SLOW_MS);
  afterAll(async () => {
    for (const child of running) await child.stop(0);
    rmSync(dir, { recursive: true, force: true });
  });

  /** The command as a container runtime starts it: with the image's environment, folder and user. */
  function inImage(name: (typeof NAMES)[number], command: readonly string[]) {
    const { ENV = "", USER = "", WORKDIR = "/" } = stages.get(name)?.instructions ?? {};
    const { LD_PRELOAD, ...env } = readPairs(ENV);
    const [uid = "", gid = ""] = USER.split(":");
    const options = ["--wd", WORKDIR, "--setgid", gid, "--setuid", uid];
    // QEMU sets it: the programs of this machine that lead to the image's would look for a library of their own.
    return { command: inRoot(folder(name), command, options), env: { ...env, QEMU_SET_ENV: `LD_PRELOAD=${LD_PRELOAD}` } };
  }
  async function output(name: (typeof NAMES)[number], ...command: string[]): Promise<string> {
    const started = inImage(name, command);
    const { stdout, stderr } = await runEmulated(started.command, started.env);
    return stdout + stderr;
  }
  async function start(name: (typeof NAMES)[number], settings: Readonly<Record<string, string>>) {
    const command = JSON.parse(stages.get(name)?.instructions.ENTRYPOINT ?? "[]") as string[];
    const started = inImage(name, [...command, "--print-ready"]);
    const env = { ...started.env, ...settings };
    const args = await emulated(...started.command);
    const child = await startChild({ name, command: "sh", args, env, readyMs: SLOW_MS });
    running.push(child);
    return child;
  }
  /** Waits until the program is ready. Returns true, or the output of a program that has ended. */
  const becomesReady = (url: unknown) =>
    eventually(async () => {
      const ended = running.find(({ exited }) => exited);
      return ended?.output() ?? (await fetch(`${String(url)}/readyz`)).ok;
    }, SLOW_MS);
  /** Gives a file of this machine to the image's user. Returns its path in the image. */
  function give(name: (typeof NAMES)[number], file: string): string {
    mkdirSync(join(folder(name), "etc/ctrlmesh"), { recursive: true });
    copyFileSync(file, join(folder(name), "etc/ctrlmesh/file"));
    chownSync(join(folder(name), "etc/ctrlmesh/file"), 1359, 1359);
    return "/etc/ctrlmesh/file";
  }

  it.each(NAMES)("the %s's has no program or library for another architecture", (name) => {
    const files = readdirSync(folder(name), { recursive: true, withFileTypes: true }).filter((each) => each.isFile());
    const machines = files.flatMap((each) => {
      const path = join(each.parentPath, each.name);
      const start = readFileSync(path).subarray(0, 20);
      return start.subarray(0, 4).equals(Buffer.from("\x7fELF")) ? [{ path, machine: start.readUInt16LE(18) }] : [];
    });
    expect(machines.length).toBeGreaterThan(8); // Node.js, jemalloc, the loader, and the libraries of C and C++
    expect(machines.filter(({ machine }) => machine !== AARCH64)).toEqual([]);
  });

  it.each(NAMES)("the %s prints its settings with --help, without a warning of the loader", async (name) => {
    const text = await output(name, "node", `dist/${name}/main.js`, "--help");
    expect(text).toContain(`ctrlmesh-${name}`);
    expect(text).not.toContain("ld.so");
  });

  it.each(NAMES)("the %s's Node.js is for arm64 and uses jemalloc", async (name) => {
    const script = `
      const maps = require("node:fs").readFileSync("/proc/self/maps", "utf8");
      console.log(process.version, process.arch, maps.includes("libjemalloc"));`;
    expect((await output(name, "node", "-e", script)).trim()).toBe(`${process.version} arm64 true`);
  });

  // Kernels for arm64 have pages of 4, 16 or 64 KiB. jemalloc works with pages up to the size that it was built for.
  it("jemalloc is built for pages of 64 KiB", async () => {
    const { command, env } = inImage("proxy", ["node", "--version"]);
    const { stdout, stderr } = await runEmulated(command, { ...env, MALLOC_CONF: "stats_print:true" });
    expect(stdout + stderr).toMatch(/^Page size: 65536$/m);
  });

  // iptables-nft asks the kernel in a protocol that QEMU does not translate, so only its libraries can be looked up.
  it("iptables has its libraries and its extensions", async () => {
    expect(await output("proxy", "/usr/sbin/iptables-legacy", "-j", "REDIRECT", "--help")).toContain("--to-ports");
    const loaded = await output("proxy", "/lib/ld-linux-aarch64.so.1", "--list", "/usr/sbin/xtables-nft-multi");
    expect(loaded).toMatch(/libnftnl\.so\.\d+ => \//);
    expect(loaded).not.toContain("not found");
  });

  it("a manager and a proxy connect and become ready, and end at SIGTERM", { timeout: 4 * SLOW_MS }, async () => {
    const world = await startFleetWorld({ proxies: 1, namespaces: 2, identity: "none" });
    try {
      // The manager under test takes the place of the world's own manager.
      await world.kill(await eventually(async () => (await world.leader()) ?? false, 30_000));
      const manager = await start("manager", {
        CTRLMESH_KUBECONFIG: give("manager", world.kubeconfig),
        CTRLMESH_GRPC_LISTEN: "127.0.0.1:0",
        CTRLMESH_HEALTH_LISTEN: "127.0.0.1:0",
        CTRLMESH_API_SERVER_TOKEN_CACHE_MS: "1000",
        CTRLMESH_LEASE_DURATION_MS: "20000", // the longest: a manager that is too slow to renew it ends
      });
      expect(await becomesReady(manager.ready.health)).toBe(true);
      const data = join(folder("proxy"), "var/lib/ctrlmesh");
      mkdirSync(data);
      chownSync(data, 1359, 1359);
      const [pod] = world.pods;
      const proxy = await start("proxy", {
        CTRLMESH_API_SERVER: world.server,
        CTRLMESH_API_SERVER_CA: give("proxy", world.caFile),
        CTRLMESH_MANAGER: String(manager.ready.grpc),
        CTRLMESH_POD_NAME: pod?.name ?? "",
        CTRLMESH_POD_NAMESPACE: pod?.namespace ?? "",
        CTRLMESH_POD_UID: pod?.uid ?? "",
        CTRLMESH_LISTEN: "127.0.0.1:0",
        CTRLMESH_HEALTH_LISTEN: "127.0.0.1:0",
      });
      expect(await becomesReady(proxy.ready.healthUrl)).toBe(true);
      expect(await proxy.stop(SLOW_MS)).toBe(0);
      expect(await manager.stop(SLOW_MS)).toBe(0);
    } finally {
      await world.stop();
    }
  });
});
