// The files that Node runs as the mesh's programs in tests. `npm test` bundles all programs once, as the images contain them, because a
// bundle starts in half of the CPU time, ctrlmesh in a fifth. Tests that run without `npm test` start the sources.
import { chmodSync, mkdtempSync, symlinkSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { bundle, PROGRAMS, type Program } from "../../scripts/build/bundle.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
/** The folder of the bundled programs; unset: the sources. */
const FOLDER_ENV = "CTRLMESH_TEST_PROGRAMS";

/** The file that starts a program, or another of its entry points, such as "hooks/main" of the proxy. */
export function programMain(program: Program, entry = "main"): string {
  const folder = process.env[FOLDER_ENV];
  if (folder === undefined) return join(ROOT, "src", program, `${entry}.ts`);
  return join(folder, "dist", program, program === "cli" ? "ctrlmesh.js" : `${entry}.js`);
}

/**
 * Bundles all programs, which `work` and its child processes then start.
 * @throws Error of the bundler
 */
export async function withBundledPrograms<T>(work: () => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), "ctrlmesh-programs-"));
  try {
    chmodSync(folder, 0o755); // some tests start programs as another user
    symlinkSync(join(ROOT, "proto"), join(folder, "proto"));
    for (const program of PROGRAMS) await bundle(program, join(folder, "dist"));
    process.env[FOLDER_ENV] = folder;
    return await work();
  } finally {
    delete process.env[FOLDER_ENV];
    await rm(folder, { recursive: true, force: true });
  }
}
