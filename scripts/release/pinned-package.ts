// A package of npm for another platform than this one, which `npm ci` would not install. Invariant: nothing is unpacked whose digest is
// not the pinned one.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildOnce, cacheDir } from "../../test/support/build-cache.ts";
import type { PinnedPackage } from "./platforms.ts";

/** The folder with the files of the package. @throws Error if it cannot be had, or is another one */
export async function pinnedPackage({ name, version, integrity }: PinnedPackage): Promise<string> {
  const folder = join(cacheDir(), `package-${name}-${version}`);
  await buildOnce(folder, async (out) => {
    const work = mkdtempSync(join(tmpdir(), "ctrlmesh-package-"));
    try {
      const args = ["pack", `${name}@${version}`, "--silent", "--pack-destination", work];
      const file = join(work, execFileSync("npm", args, { encoding: "utf8" }).trim());
      checkDigest(readFileSync(file), integrity, `${name}@${version}`);
      mkdirSync(out, { recursive: true });
      execFileSync("tar", ["-xzf", file, "-C", out, "--strip-components=1"]);
    } finally {
      rmSync(work, { recursive: true, force: true });
    }
  });
  return folder;
}

export function checkDigest(content: Uint8Array, integrity: string, what: string): void {
  const found = `sha512-${createHash("sha512").update(content).digest("base64")}`;
  if (found !== integrity) throw new Error(`${what} has the digest ${found}, and not ${integrity}`);
}
