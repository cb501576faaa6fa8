// The proxy as users run it, compiled by scripts/build.ts. Measurements then exclude the cost of stripping types in Node (20 MB, a
// third of a second at the start). Tests run the sources.
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL("../../", import.meta.url));

export interface CompiledProxy {
  /** For MeshOptions.proxyMain. */
  readonly main: string;
  remove(): void;
}

/** @throws Error with the compiler's output */
export async function compileProxy(): Promise<CompiledProxy> {
  // Inside the repository, so that the compiled imports find node_modules.
  mkdirSync(join(ROOT, ".cache"), { recursive: true });
  const folder = mkdtempSync(join(ROOT, ".cache/compiled-"));
  const remove = () => rmSync(folder, { recursive: true, force: true });
  try {
    symlinkSync(join(ROOT, "proto"), join(folder, "proto"));
    await run(process.execPath, [join(ROOT, "scripts/build.ts"), "--out", join(folder, "dist")]);
  } catch (error) {
    remove();
    throw new Error(`compiling: ${(error as { stdout?: string }).stdout ?? error}`, { cause: error });
  }
  return { main: join(folder, "dist/proxy/main.js"), remove };
}
