// The proxy as users run it, bundled by scripts/build/bundle.ts. Measurements then exclude the cost of stripping types in Node (20 MB,
// a third of a second at the start). Tests run the sources.
import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { bundle } from "../../scripts/build/bundle.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

export interface BundledProxy {
  /** For MeshOptions.proxyMain. */
  readonly main: string;
  remove(): void;
}

/** @throws Error of the bundler */
export async function bundleProxy(): Promise<BundledProxy> {
  const folder = mkdtempSync(join(tmpdir(), "ctrlmesh-bundle-"));
  const remove = () => rmSync(folder, { recursive: true, force: true });
  try {
    symlinkSync(join(ROOT, "proto"), join(folder, "proto"));
    await bundle("proxy", join(folder, "dist"));
  } catch (error) {
    remove();
    throw error;
  }
  return { main: join(folder, "dist/proxy/main.js"), remove };
}
