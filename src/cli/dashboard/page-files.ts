// The page as texts. From the sources it is bundled when it is needed; scripts/build/bundle.ts puts the texts in the place of this module,
// so that the program stays one file that needs no bundler.
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";

export interface PageFiles {
  readonly html: string;
  readonly script: string;
  readonly style: string;
  readonly icon: string;
  /** The paths of the modules in the script. */
  readonly modules: readonly string[];
}

/** In the order in which a later rule wins. */
const STYLES = ["colours", "frame", "tables", "map", "cards", "phone"];

export async function pageFiles(): Promise<PageFiles> {
  const pathOf = (file: string) => fileURLToPath(new URL(`./page/${file}`, import.meta.url));
  const build = await rolldown({
    input: pathOf("main.tsx"),
    platform: "browser",
    tsconfig: false, // it extends the one of the root, which a build of the images does not have
    transform: { jsx: { runtime: "automatic", importSource: "preact" } },
    onLog(level, log, handle) {
      handle(level === "warn" ? "error" : level, log);
    },
  });
  const { output } = await build.generate({ format: "esm", minify: true });
  await build.close();
  const [{ code, moduleIds }] = output;
  const read = (file: string) => readFile(pathOf(file), "utf8");
  const [html, icon] = await Promise.all([read("index.html"), read("icon.svg")]);
  const styles = await Promise.all(STYLES.map((name) => read(`styles/${name}.css`)));
  return { html, style: styles.join("\n"), icon, script: code, modules: moduleIds };
}
