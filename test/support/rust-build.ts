// Builds the Rust programs of the tests on demand, once for each state of their sources. The binary is in the user's cache under the hash
// of its folder. The libraries that cargo compiles on the way are not kept, since they take 200 MB.
import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { buildOnce, cacheDir } from "./build-cache.ts";
import { sourceHash } from "./source-hash.ts";

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const OPTIONS = { maxBuffer: 64 * 1024 * 1024, timeout: 30 * 60_000 };

export type RustProgram = "test/operators/kube-rs";

/** The path of the built program. The first build takes minutes and the network. @throws Error with the end of cargo's output */
export async function rustProgram(program: RustProgram): Promise<string> {
  const binary = binaryOf(program);
  await buildOnce(binary, async (partial) => {
    const target = mkdtempSync(join(cacheDir(), "cargo-"));
    try {
      await run("cargo", ["build", "--locked", "--quiet", "--target-dir", target], { ...OPTIONS, cwd: join(ROOT, program) });
      renameSync(join(target, "debug", basename(program)), partial);
    } finally {
      rmSync(target, { recursive: true, force: true });
    }
  });
  return binary;
}

/** The reason why the program cannot be built here; undefined if it can. It downloads what is missing. */
export async function whyNoRust(program: RustProgram): Promise<string | undefined> {
  if (existsSync(binaryOf(program))) return undefined;
  return run("cargo", ["fetch", "--locked", "--quiet"], { ...OPTIONS, cwd: join(ROOT, program) }).then(
    () => undefined,
    ({ code, stderr }: { code?: unknown; stderr?: string }) =>
      code === "ENOENT" ? "cargo is not installed" : `cargo cannot fetch the crates: ${stderr?.trim().split("\n").at(-1)}`,
  );
}

function binaryOf(program: RustProgram): string {
  return join(cacheDir(), `${basename(program)}-${sourceHash([join(ROOT, program)])}`);
}
