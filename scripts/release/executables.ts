// The single executables of ctrlmesh, for people without Node.js: Node.js with the bundled program in it, as archives that kubectl
// plugins have too. Invariant: equal sources give an equal archive, but for the compiled code in that of this platform.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";
import { bundle } from "../build/bundle.ts";
import { pinnedPackage } from "./pinned-package.ts";
import { LINUX_X64, PLATFORMS, type Platform, POSTJECT } from "./platforms.ts";

const LICENSE = fileURLToPath(new URL("../../LICENSE", import.meta.url));
/** Where Node.js looks for the program, and the text in its binary that says whether there is one. */
const [RESOURCE, FUSE] = ["NODE_SEA_BLOB", "NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2"];

/** kubectl calls it to complete `kubectl ctrlmesh`. */
const COMPLETE = `#!/bin/sh
# For the completion of kubectl: put it on the PATH beside kubectl-ctrlmesh.
exec kubectl ctrlmesh __complete "$@"
`;

export interface Archive {
  readonly platform: Platform;
  readonly name: string;
  readonly sha256: string;
}

/** @throws Error if a package of npm cannot be had, or if there is none for this platform */
export async function writeExecutables(dir: string, version: string, platforms: readonly Platform[]): Promise<Archive[]> {
  if (platforms.length === 0) return [];
  const work = mkdtempSync(join(tmpdir(), "ctrlmesh-executables-"));
  try {
    await bundle("cli", work);
    await inOneFile(join(work, "cli/ctrlmesh.js"), work);
    const archives: Archive[] = [];
    for (const platform of platforms) archives.push(await writeArchive(platform, { dir, version, work }));
    return archives;
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** An executable has room for one file, and that is no module. The first bundle has left out what nothing uses. */
async function inOneFile(input: string, dir: string): Promise<void> {
  const build = await rolldown({ input, platform: "node" });
  await build.write({ dir, format: "cjs", codeSplitting: false, entryFileNames: "main.cjs" });
  await build.close();
}

interface Place {
  readonly dir: string;
  readonly version: string;
  /** With main.cjs. */
  readonly work: string;
}

async function writeArchive(platform: Platform, { dir, version, work }: Place): Promise<Archive> {
  const folder = join(work, platform.name);
  mkdirSync(folder);
  const executable = join(folder, platform.file);
  copyFileSync(await nodeOf(platform), executable);
  chmodSync(executable, 0o755);
  await inject(executable, await programOf(platform, work));
  copyFileSync(LICENSE, join(folder, "LICENSE"));
  // The package for Windows has no license.
  copyFileSync(join(await pinnedPackage(LINUX_X64.node), "LICENSE"), join(folder, "LICENSE-NODE"));
  copyFileSync(join(work, "cli/THIRD-PARTY-NOTICES.txt"), join(folder, "THIRD-PARTY-NOTICES.txt"));
  if (platform.os !== "windows") writeFileSync(join(folder, "kubectl_complete-ctrlmesh"), COMPLETE, { mode: 0o755 });
  const name = `ctrlmesh-${version}-${platform.name}.tar.gz`;
  const same = ["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner"];
  execFileSync("tar", ["-cf", join(work, "archive.tar"), ...same, "-C", folder, "."]);
  execFileSync("gzip", ["-n", "-9", "-f", join(work, "archive.tar")]);
  copyFileSync(join(work, "archive.tar.gz"), join(dir, name));
  return {
    platform,
    name,
    sha256: createHash("sha256")
      .update(readFileSync(join(dir, name)))
      .digest("hex"),
  };
}

/**
 * By the Node.js of the package, since the format may change with its version. Compiled code is only for the platform that has
 * compiled it, where it saves half of the start.
 */
async function programOf({ name }: Platform, work: string): Promise<Buffer> {
  const own = PLATFORMS.find((each) => each.name === `${process.platform}-${process.arch}`);
  if (own === undefined) throw new Error(`the executables cannot be made on ${process.platform} ${process.arch}`);
  const [config, output] = [join(work, `${name}.json`), join(work, `${name}.blob`)];
  const useCodeCache = name === own.name;
  writeFileSync(
    config,
    JSON.stringify({ main: join(work, "main.cjs"), output, disableExperimentalSEAWarning: true, useCodeCache }),
  );
  execFileSync(await nodeOf(own), ["--experimental-sea-config", config], { stdio: ["ignore", "ignore", "pipe"] });
  return readFileSync(output);
}

async function nodeOf({ os, node }: Platform): Promise<string> {
  return join(await pinnedPackage(node), "bin", os === "windows" ? "node.exe" : "node");
}

interface Postject {
  inject(file: string, resource: string, content: Buffer, options: { readonly sentinelFuse: string }): Promise<void>;
}

async function inject(executable: string, program: Buffer): Promise<void> {
  const api = join(await pinnedPackage(POSTJECT), "dist/api.js");
  const postject = createRequire(import.meta.url)(api) as Postject;
  await postject.inject(executable, RESOURCE, program, { sentinelFuse: FUSE });
}
