// Draws the pictures of the docs: docs/pictures/NAME.svg from NAME.dot, by Graphviz compiled to WebAssembly. Part of `npm run generate`; `--check` only
// compares and exits 1 if a picture is stale or missing.
import { readdir, readFile, writeFile } from "node:fs/promises";
import { instance } from "@viz-js/viz";

const FOLDER = new URL("../docs/pictures/", import.meta.url);

/** The right content of all pictures, by name. */
export async function pictures(): Promise<ReadonlyMap<string, string>> {
  const graphviz = await instance();
  const sources = (await readdir(FOLDER)).filter((name) => name.endsWith(".dot"));
  const drawn = sources.map(async (name) => {
    const svg = graphviz.renderString(await readFile(new URL(name, FOLDER), "utf8"), { format: "svg" });
    return [name.replace(/dot$/, "svg"), svg] as const;
  });
  return new Map(await Promise.all(drawn));
}

export async function stalePictures(): Promise<string[]> {
  const stale: string[] = [];
  for (const [name, svg] of await pictures()) {
    const present = await readFile(new URL(name, FOLDER), "utf8").catch(() => undefined);
    if (present !== svg) stale.push(name);
  }
  return stale;
}

if (import.meta.main) {
  const stale = await stalePictures();
  const wanted = await pictures();
  if (process.argv.includes("--check")) {
    if (stale.length > 0) console.error(`stale: ${stale.join(", ")}\nrun: npm run generate`);
    process.exitCode = stale.length > 0 ? 1 : 0;
  } else for (const name of stale) await writeFile(new URL(name, FOLDER), wanted.get(name) ?? "");
}
