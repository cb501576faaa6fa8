// The images as their Dockerfiles build them (scripts/image-root.ts). The first tests read their files and labels.
// The last tests run both programs on a read-only root, as uid 1359 without capabilities.
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import {
  chownSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { isBuiltin } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { bundle } from "../../scripts/build/bundle.ts";
import { buildImageRoot, type ImageRoot, readImage } from "../../scripts/image-root.ts";
import { VERSION } from "../../src/base/version.ts";
import { startFleetWorld } from "../fleet/fleet-world.ts";
import { createKubeconfig } from "../localkube/kubeconfig.ts";
import { readPairs } from "../support/dockerfile.ts";
import { eventually } from "../support/eventually.ts";
import { type ImageProcess, type ImageProcessOptions, startImage } from "../support/image-process.ts";
import { imageOf } from "../support/images.ts";
import { describeWithNetworkNamespaces, itWithLibrary, itWithProgram } from "../support/requirements.ts";

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const PACKAGE = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as {
  readonly version: string;
  readonly dependencies: object;
  readonly devDependencies: Readonly<Record<string, string>>;
};
const PROGRAMS = [
  { name: "proxy", ports: "5441 5443 5445", uses: ["undici", "http-proxy-3"], threads: ["thread.js"] },
  { name: "manager", ports: "5447 5448 9443", uses: ["@kubernetes/client-node"], threads: ["match-thread.js"] },
] as const;
/** The sizes when this was written: 3.7 and 5.6 MB. What is not used must stay out. */
const MAX_BYTES = 8_000_000;

describe.each(PROGRAMS)("the image of the $name", ({ name, ports, uses, threads }) => {
  let root: ImageRoot;
  const dockerfile = readImage(name);
  const text = readFileSync(join(ROOT, `Dockerfile.${name}`), "utf8");

  beforeAll(async () => {
    root = await buildImageRoot(name);
  }, 300_000);

  it("copies only existing files, from the tree or from an earlier stage", () => {
    const stages = new Set<string>();
    for (const stage of dockerfile.stages) {
      for (const { from, sources } of stage.copies) {
        if (from !== undefined) expect(stages).toContain(from);
        else for (const source of sources) expect(existsSync(join(ROOT, source)), source).toBe(true);
      }
      if (stage.name !== undefined) stages.add(stage.name);
    }
  });

  it("has this repository's Node in all stages, an unprivileged user, its ports and its labels", () => {
    const base = `node:${PACKAGE.devDependencies.node}-bookworm-slim`;
    const bases = dockerfile.stages.map((stage) => stage.base.replace(/@sha256:[0-9a-f]{64}$/, ""));
    expect(bases).toEqual([base, base, "scratch"]);
    const { USER, EXPOSE, LABEL = "" } = root.last.instructions;
    expect({ USER, EXPOSE }).toEqual({ USER: "1359:1359", EXPOSE: ports });
    expect(readPairs(LABEL)).toMatchObject({
      "org.opencontainers.image.title": `ctrlmesh-${name}`,
      "org.opencontainers.image.version": PACKAGE.version,
      "org.opencontainers.image.licenses": "Apache-2.0",
    });
  });

  // Without the second, podman and buildah 1.39 take the system from the builder's platform too.
  it("is built on the builder's platform, with the system of the wanted one", () => {
    const platforms = [...text.matchAll(/^FROM (?:--platform=(\S+) )?/gm)].map(([, platform]) => platform);
    expect(platforms).toEqual(["$BUILDPLATFORM", "$TARGETPLATFORM", undefined]);
  });

  // hadolint DL3002, DL3004, DL3007, DL3008, DL3009, DL3015, DL3020, DL3025, DL3045, DL3059, DL4000, DL4006
  it("follows the rules of hadolint that this test can check", () => {
    for (const { base, steps } of dockerfile.stages) {
      if (base !== "scratch") expect(base).not.toMatch(/:latest$|^[^:]+$/);
      expect(steps.map(({ instruction }) => instruction)).not.toContain("ADD");
      expect(steps.map(({ instruction }) => instruction)).not.toContain("MAINTAINER");
      for (const { instruction, text: words } of steps) {
        if (instruction === "ENTRYPOINT" || instruction === "CMD") expect(words).toMatch(/^\[.*\]$/);
        if (instruction !== "RUN") continue;
        expect(words).not.toMatch(/\bsudo\b|\|/);
        for (const [, options = ""] of words.matchAll(/apt-get install ([^&]*)/g)) {
          expect(options).toContain("--no-install-recommends -y");
          for (const word of options.trim().split(/\s+/)) if (!word.startsWith("-")) expect(word).toMatch(/^[a-z0-9.+-]+=\S+$/);
          expect(words).toContain("rm -rf /var/lib/apt/lists/*");
        }
      }
      const runs = steps.map(({ instruction }) => instruction).join(" ");
      expect(runs).not.toContain("RUN RUN");
      expect(runs.indexOf("WORKDIR")).toBeLessThan(runs.indexOf("COPY"));
    }
    expect(text).not.toMatch(/:\s*latest/);
  });

  it("contains one bundle, which imports nothing from outside, and the licenses of the packages in it", () => {
    const app = join(root.dir, "app");
    expect(readdirSync(app).toSorted()).toEqual(["LICENSE", "dist", "package.json", "proto"]);
    expect(readdirSync(join(app, "dist")).toSorted()).toEqual(name === "manager" ? ["cli", "manager"] : [name]);
    const files = readdirSync(join(app, "dist", name), { recursive: true, encoding: "utf8" });
    const modules = files.filter((file) => file.endsWith(".js"));
    const imported = modules.flatMap((file) => importsOf(readFileSync(join(app, "dist", name, file), "utf8")));
    expect(imported.filter((each) => !/^(?:node:|\.{1,2}\/)/.test(each) && !isBuiltin(each))).toEqual([]);
    expect(modules).toEqual(expect.arrayContaining(["main.js", ...threads]));
    expect(files.filter((file) => file.includes(".test.") || file.endsWith(".map"))).toEqual([]);
    expect(files.reduce((sum, file) => sum + statSync(join(app, "dist", name, file)).size, 0)).toBeLessThan(MAX_BYTES);
    const notices = readFileSync(join(app, "dist", name, "THIRD-PARTY-NOTICES.txt"), "utf8");
    for (const each of ["zod", "pino", ...uses]) expect(notices).toMatch(new RegExp(`^${each}@[\\d.]+: \\S+$`, "m"));
  });

  it("is the same in each build", async () => {
    const out = mkdtempSync(join(tmpdir(), "ctrlmesh-bundles-"));
    try {
      const read = (folder: string) =>
        readdirSync(folder, { recursive: true, withFileTypes: true }).flatMap((each) =>
          each.isFile() ? [[each.name, readFileSync(join(each.parentPath, each.name), "utf8")]] : [],
        );
      const builds = [join(out, "1"), join(out, "2")];
      for (const build of builds) await bundle(name, build);
      const [first = [], second] = builds.map(read);
      expect(first.length).toBeGreaterThan(3);
      expect(second).toEqual(first);
    } finally {
      rmSync(out, { recursive: true, force: true });
    }
  });

  it("prints its settings with --help", async () => {
    const [, ...args] = JSON.parse(root.last.instructions.ENTRYPOINT ?? "[]") as string[];
    const { stdout } = await run(process.execPath, [...args, "--help"], { cwd: join(root.dir, "app") });
    expect(stdout).toContain(`ctrlmesh-${name}`);
  });
});

it("the manager's image contains ctrlmesh, with the packages that it needs", async () => {
  const { dir } = await buildImageRoot("manager");
  const cwd = join(dir, "app");
  const ctrlmesh = (...args: string[]) =>
    run(process.execPath, ["dist/cli/ctrlmesh.js", ...args], { cwd, env: { PATH: "/nonexistent" } });
  expect((await ctrlmesh("version", "--client")).stdout).toBe(`ctrlmesh ${VERSION}\n`);
  // Without a cluster: its own client is there, and says so.
  await expect(ctrlmesh("status")).rejects.toMatchObject({ code: 1, stderr: expect.stringContaining("KUBERNETES_SERVICE_HOST") });
});

it("the bundle of ctrlmesh has the page of its dashboard in it", async () => {
  const { dir } = await buildImageRoot("manager");
  const kubeconfig = join(dir, "app", "kubeconfig");
  writeFileSync(kubeconfig, createKubeconfig({ server: "https://127.0.0.1:1", caPem: "", token: "t" }));
  const args = ["dist/cli/ctrlmesh.js", "dashboard", "-A", "--kubeconfig", kubeconfig];
  const child = spawn(process.execPath, args, { cwd: join(dir, "app"), env: { PATH: "/nonexistent" } });
  try {
    const [line] = await once(child.stdout, "data");
    const url = String(line).trim();
    expect(await (await fetch(url)).text()).toContain("<title>Controller Mesh</title>");
    for (const file of ["page.js", "page.css", "icon.svg"]) expect((await fetch(url + file)).status).toBe(200);
  } finally {
    child.kill("SIGINT");
    rmSync(kubeconfig);
  }
  expect(await once(child, "close")).toEqual([0, null]);
});

it.each(["hooks", "iptables"])("the proxy's image contains its program %s, which refuses an unknown argument", async (name) => {
  const { dir } = await buildImageRoot("proxy");
  const program = run(process.execPath, [`dist/proxy/${name}/main.js`, "--nothing"], { cwd: join(dir, "app") });
  await expect(program).rejects.toMatchObject({ code: expect.any(Number), stderr: expect.stringMatching(/nothing/) });
});

itWithLibrary("libjemalloc.so.2", "the system of both images has no shell, and what the programs need", async () => {
  const folder = mkdtempSync(join(tmpdir(), "ctrlmesh-system-"));
  try {
    for (const name of ["proxy", "manager"] as const) {
      const root = await systemRoot(name, join(folder, name));
      cpSync(join((await buildImageRoot(name)).dir, "app"), join(root, "app"), { recursive: true });
      const env = { PATH: "/usr/sbin:/usr/bin", LD_PRELOAD: "libjemalloc.so.2" };
      const inside = (...command: string[]) => run("chroot", [root, ...command], { env });
      const { stdout, stderr } = await inside(`/usr${process.execPath}`, `/app/dist/${name}/main.js`, "--help");
      expect(stdout).toContain(`ctrlmesh-${name}`);
      expect(stderr).toBe("");
      if (name === "proxy")
        for (const tool of ["iptables-nft", "ip6tables-nft-restore", "iptables-legacy", "iptables"])
          expect((await inside(`/usr/sbin/${tool}`, "--version")).stdout).toContain("tables");
      for (const tool of ["sh", "bash", "perl", "apt-get", "dpkg"])
        expect(existsSync(join(root, "usr/bin", tool)), tool).toBe(false);
      expect(readdirSync(join(root, "var/lib/dpkg/status.d"))).toEqual(expect.arrayContaining(["libc6", "libjemalloc2"]));
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

/** Makes the root of the image's system from this machine's, by the command of its Dockerfile. */
async function systemRoot(name: "proxy" | "manager", root: string): Promise<string> {
  const system = readImage(name).stages.find((stage) => stage.name === "system");
  const command = system?.steps.find(({ text }) => text.startsWith("sh /system-root.sh "))?.text ?? "";
  const here = command
    .replace("/system-root.sh", join(ROOT, "scripts/images/system-root.sh"))
    .replace("/system ", `${root} `)
    .replace("/usr/local/bin/node", process.execPath);
  await run("sh", ["-c", here]);
  return root;
}

describeWithNetworkNamespaces("the images on a read-only root as uid 1359", () => {
  const running: ImageProcess[] = [];
  let dir: string;
  const start = async (name: "proxy" | "manager", options: Omit<ImageProcessOptions, "name" | "image">) => {
    const process = await startImage({ name, image: await imageOf(`ctrlmesh/${name}:test`), ...options });
    running.push(process);
    return process;
  };
  beforeAll(() => {
    dir = mkdtempSync(join(tmpdir(), "ctrlmesh-images-"));
  });
  afterAll(async () => {
    for (const each of running) await each.close();
    rmSync(dir, { recursive: true, force: true });
  });

  it("a manager and a proxy connect and become ready, and write only to the proxy's data folder", async () => {
    const world = await startFleetWorld({ proxies: 1, namespaces: 2, leaseMs: 2_000, identity: "none" });
    try {
      // The manager under test takes the place of the world's own manager.
      const own = await eventually(async () => (await world.leader()) ?? false, 30_000);
      await world.kill(own);
      const kubeconfig = join(dir, "kubeconfig");
      copyFileSync(world.kubeconfig, kubeconfig);
      chownSync(kubeconfig, 1359, 1359);
      const manager = await start("manager", {
        args: ["--print-ready"],
        env: {
          CTRLMESH_KUBECONFIG: "/etc/ctrlmesh/kubeconfig",
          CTRLMESH_GRPC_LISTEN: "127.0.0.1:0",
          CTRLMESH_HEALTH_LISTEN: "127.0.0.1:0",
          CTRLMESH_API_SERVER_TOKEN_CACHE_MS: "1000",
        },
        files: { "/etc/ctrlmesh/kubeconfig": kubeconfig },
      });
      await eventually(async () => (await fetch(`${String(manager.child.ready.health)}/readyz`)).ok, 30_000);

      const data = join(dir, "data");
      mkdirSync(data);
      chownSync(data, 1359, 1359);
      const [pod] = world.pods;
      const proxy = await start("proxy", {
        args: ["--print-ready"],
        env: {
          CTRLMESH_API_SERVER: world.server,
          CTRLMESH_API_SERVER_CA: "/etc/ctrlmesh/ca.crt",
          CTRLMESH_MANAGER: String(manager.child.ready.grpc),
          CTRLMESH_POD_NAME: pod?.name ?? "",
          CTRLMESH_POD_NAMESPACE: pod?.namespace ?? "",
          CTRLMESH_POD_UID: pod?.uid ?? "",
          CTRLMESH_LISTEN: "127.0.0.1:0",
          CTRLMESH_HEALTH_LISTEN: "127.0.0.1:0",
        },
        files: { "/etc/ctrlmesh/ca.crt": world.caFile },
        volumes: { "/var/lib/ctrlmesh": data },
      });
      const health = String(proxy.child.ready.healthUrl);
      await eventually(async () => (await fetch(`${health}/readyz`)).ok, 60_000);
      expect(readdirSync(data).length).toBeGreaterThan(0);

      expect(await proxy.terminate()).toBe(0);
      expect(await manager.terminate()).toBe(0);
      for (const { child } of [proxy, manager]) expect(child.output()).not.toMatch(/EROFS|EACCES|EPERM/);
    } finally {
      await world.stop();
    }
  }, 300_000);

  it("the root is read-only, and the user has no privileges", async () => {
    const script = `
      const fs = require("node:fs");
      const tried = ["/app/x", "/etc/x", "/x", "/var/lib/x", "/tmp/x"].filter((path) => { try { fs.writeFileSync(path, ""); return true; } catch { return false; } });
      const status = fs.readFileSync("/proc/self/status", "utf8");
      console.log(JSON.stringify({
        uid: process.getuid(), gid: process.getgid(), tried, caps: /CapEff:\\s*(\\w+)/.exec(status)[1], noNewPrivs: /NoNewPrivs:\\s*(\\d)/.exec(status)[1],
      }));
      setInterval(() => {}, 60_000);`;
    const { child } = await start("proxy", { command: ["node", "-e", script] });
    expect(child.ready).toEqual({ uid: 1359, gid: 1359, tried: [], caps: "0000000000000000", noNewPrivs: "1" });
  }, 120_000);

  itWithLibrary("libjemalloc.so.2", "both programs run with jemalloc", async () => {
    for (const name of ["proxy", "manager"] as const) {
      const script = `
        console.log(JSON.stringify({ has: require("node:fs").readFileSync("/proc/self/maps", "utf8").includes("libjemalloc") }));
        setInterval(() => {}, 60_000);`;
      const { child } = await start(name, { command: ["node", "-e", script] });
      expect(child.ready, name).toEqual({ has: true });
      expect(child.output()).not.toContain("ld.so");
    }
  });

  itWithProgram("iptables", "the root has the base's iptables", async () => {
    const script = `
      const programs = ["/usr/sbin/iptables", "/usr/sbin/ip6tables"];
      console.log(JSON.stringify({ found: programs.filter((path) => require("node:fs").existsSync(path)) }));
      setInterval(() => {}, 60_000);`;
    const { child } = await start("proxy", { command: ["node", "-e", script] });
    expect(child.ready).toEqual({ found: ["/usr/sbin/iptables", "/usr/sbin/ip6tables"] });
  });
});

/** What a module imports, statically or not. */
function importsOf(code: string): string[] {
  const specifiers = [...code.matchAll(/^(?:import|export|\})(?:[^"'=;()]*\bfrom)? ?"([^"]+)";$|\bimport\("([^"]+)"\)/gm)];
  return specifiers.flatMap(([, fixed, dynamic]) => fixed ?? dynamic ?? []);
}
