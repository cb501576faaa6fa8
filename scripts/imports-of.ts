// The files that a module is made of: itself and all that it imports by relative paths, also by `import()` and `new URL()`. Read from the
// text, so a path in a comment or a string counts too: one file too many only means that a test runs again.
import { existsSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";

const RELATIVE = /["'](\.\.?\/[^"'\n]+)["']/g;

/** Absolute paths, sorted. @param entry absolute path of a module */
export function importsOf(entry: string): string[] {
  const found = new Set([entry]);
  for (const file of found) {
    if (!file.endsWith(".ts")) continue;
    for (const [, specifier = ""] of readFileSync(file, "utf8").matchAll(RELATIVE)) {
      const path = join(dirname(file), specifier);
      if (existsSync(path) && statSync(path).isFile()) found.add(path);
    }
  }
  return [...found].sort();
}
