// Bundles a program with the packages that it uses, so that an image needs no node_modules. Code that nothing uses is left out. Names and
// lines stay, so that a stack in a log can be read.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Plugin, rolldown } from "rolldown";
import { type PageFiles, pageFiles } from "../../src/cli/dashboard/page-files.ts";
import { noticesOf, type Package, packagesOf } from "./packages.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

export type Program = "proxy" | "manager" | "cli";

/**
 * The files that Node starts, as programs or as threads: the name in dist/PROGRAM/, and the source. The module that starts a thread looks for
 * its file in its own folder. In the bundle that is dist/PROGRAM/ for all modules, so the names of threads have no folder.
 */
const ENTRY_POINTS: Readonly<Record<Program, Readonly<Record<string, string>>>> = {
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
  cli: { ctrlmesh: "main.ts" },
};

export const PROGRAMS = Object.keys(ENTRY_POINTS) as Program[];

/**
 * Writes `out`/PROGRAM with all files of the program, and the licenses of the packages in it (THIRD-PARTY-NOTICES.txt).
 * @returns the packages
 * @throws Error for a source that cannot be read, or a package without a license
 */
export async function bundle(program: Program, out: string): Promise<Package[]> {
  const input = Object.entries(ENTRY_POINTS[program]).map(([name, source]) => [name, join(ROOT, "src", program, source)]);
  const page = program === "cli" ? await pageFiles() : undefined;
  const build = await rolldown({
    input: Object.fromEntries(input),
    cwd: ROOT,
    platform: "node",
    plugins: page === undefined ? [] : [withPage(page)],
    onLog(level, log, handle) {
      handle(level === "warn" ? "error" : level, log); // such as an import that cannot be resolved
    },
  });
  const folder = join(out, program);
  const { output } = await build.write({ dir: folder, format: "esm", entryFileNames: "[name].js", chunkFileNames: "[name].js" });
  await build.close();
  const modules = output.flatMap((file) => (file.type === "chunk" ? file.moduleIds : []));
  const packages = packagesOf([...modules, ...(page?.modules ?? [])]);
  writeFileSync(join(folder, "THIRD-PARTY-NOTICES.txt"), noticesOf(packages));
  return packages;
}

/** Puts the texts of the dashboard's page in the place of the module that makes them. */
function withPage({ modules: _, ...texts }: PageFiles): Plugin {
  return {
    name: "page",
    load: (path) =>
      path.endsWith("/src/cli/dashboard/page-files.ts")
        ? `export async function pageFiles() { return ${JSON.stringify({ ...texts, modules: [] })}; }`
        : undefined,
  };
}
