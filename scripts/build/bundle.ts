// Bundles a program with the packages that it uses, so that an image needs no node_modules. What nothing uses is left out; names and lines
// stay, so that a stack in a log can be read.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";
import { noticesOf, type Package, packagesOf } from "./packages.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

export type Program = "proxy" | "manager";

/**
 * What Node is started with, by the name of the file in dist/PROGRAM/. A thread's file is started by a module of the program, which looks for
 * it beside itself: in the sources that is its folder, here all modules and threads are in dist/PROGRAM/.
 */
const STARTED: Readonly<Record<Program, Readonly<Record<string, string>>>> = {
  proxy: {
    main: "main.ts",
    "hooks/main": "hooks/main.ts",
    "iptables/main": "iptables/main.ts",
    thread: "reviews/thread.ts",
  },
  manager: {
    main: "main.ts",
    "match-thread": "apps/compile/match-thread.ts",
  },
};

export const PROGRAMS = Object.keys(STARTED) as Program[];

/**
 * Writes `out`/PROGRAM with all files of the program, and the licenses of the packages in it (THIRD-PARTY-NOTICES.txt).
 * @returns the packages
 * @throws Error for a source that cannot be read, or a package without a license
 */
export async function bundle(program: Program, out: string): Promise<Package[]> {
  const input = Object.entries(STARTED[program]).map(([name, source]) => [name, join(ROOT, "src", program, source)]);
  const build = await rolldown({
    input: Object.fromEntries(input),
    cwd: ROOT,
    platform: "node",
    onLog(level, log, handle) {
      handle(level === "warn" ? "error" : level, log); // such as an import that nothing answers
    },
  });
  const folder = join(out, program);
  const { output } = await build.write({ dir: folder, format: "esm", entryFileNames: "[name].js", chunkFileNames: "[name].js" });
  await build.close();
  const packages = packagesOf(output.flatMap((file) => (file.type === "chunk" ? file.moduleIds : [])));
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "THIRD-PARTY-NOTICES.txt"), noticesOf(packages));
  return packages;
}
