// Runs programs for arm64 on this machine, with Debian's QEMU from the user's cache. Nothing is installed.
import { execFile, spawnSync } from "node:child_process";
import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { buildOnce, cacheDir } from "../build-cache.ts";

const EMULATE = fileURLToPath(new URL("emulate.sh", import.meta.url));
const PACKAGE = "qemu-user-static";
const PROGRAMS = ["apt-get", "debootstrap", "dpkg-deb", "npm", "tar", "unshare"];
const TIMEOUT_MS = 15 * 60_000;
const run = promisify(execFile);

/** Why arm64 is impossible here; undefined if it is possible. */
export function whyNoArm64(): string | undefined {
  if (process.platform !== "linux" || process.arch !== "x64") return "not Linux on amd64";
  if (process.getuid?.() !== 0) return "not root";
  const missing = PROGRAMS.filter((program) => spawnSync("which", [program]).status !== 0);
  if (missing.length > 0) return `not installed: ${missing.join(", ")}`;
  if (spawnSync("apt-cache", ["show", PACKAGE]).status !== 0) return `apt-get does not know ${PACKAGE}`;
  const { status } = spawnSync("sh", [EMULATE, "/bin/true", "true"]);
  return status === 0 ? undefined : "this Linux has no binfmt_misc for a user namespace (6.7 and later)";
}

/** The arguments of `sh` that run a command of this machine whose programs may be for arm64. */
export async function emulated(...command: readonly string[]): Promise<string[]> {
  return [EMULATE, await qemu(), ...command];
}

/** Runs such a command to its end. @throws Error with its output */
export async function runEmulated(command: readonly string[], env: NodeJS.ProcessEnv = process.env) {
  return run("sh", await emulated(...command), { env, timeout: TIMEOUT_MS, maxBuffer: 64 * 1024 * 1024 });
}

/** The command in a folder with the files of a system, and this machine's /dev and /proc. `options` are of unshare, such as --setuid. */
export function inRoot(root: string, command: readonly string[], options: readonly string[] = []): string[] {
  const script =
    'for each in dev proc; do mkdir -p "$0/$each"; mount --rbind "/$each" "$0/$each"; done; exec unshare --root "$0" "$@"';
  return ["sh", "-euc", script, root, ...options, "--", ...command];
}

async function qemu(): Promise<string> {
  const folder = join(cacheDir(), "arm64-qemu");
  await buildOnce(folder, async (partial) => {
    mkdirSync(partial);
    await run("apt-get", ["download", "-q", PACKAGE], { cwd: partial, timeout: TIMEOUT_MS });
    const [file = ""] = readdirSync(partial);
    await run("dpkg-deb", ["--extract", join(partial, file), join(partial, "files")]);
  });
  return join(folder, "files/usr/bin/qemu-aarch64-static");
}
