// The files that Node runs as the mesh's programs in tests. `npm test` bundles both programs once, as their images contain them, because a
// bundle starts in half of the CPU time. Tests that run without `npm test` start the sources.
import { mkdtempSync, symlinkSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { bundle, PROGRAMS, type Program } from "../../scripts/build/bundle.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
/** The folder of the bundled programs; unset: the sources. */
const FOLDER_ENV = "CTRLMESH_TEST_PROGRAMS";

/** The file that starts a program. */
export function programMain(program: Program): string {
  const folder = process.env[FOLDER_ENV];
  return folder === undefined ? join(ROOT, "src", program, "main.ts") : join(folder, "dist", program, "main.js");
}

/**
 * Bundles both programs, which `work` and its child processes then start.
 * @throws Error of the bundler
 */
export async function withBundledPrograms<T>(work: () => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), "ctrlmesh-programs-"));
  try {
    symlinkSync(join(ROOT, "proto"), join(folder, "proto"));
    for (const program of PROGRAMS) await bundle(program, join(folder, "dist"));
    process.env[FOLDER_ENV] = folder;
    return await work();
  } finally {
    delete process.env[FOLDER_ENV];
    await rm(folder, { recursive: true, force: true });
  }
}
