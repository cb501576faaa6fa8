// One hash for the content of source files. Results that are built or measured from these files have it as their key in the
// user's cache (build-cache.ts), so that a fresh clone of the same sources finds them.
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";

export interface SourceHashOptions {
  /** Selects files by name; by default all. */
  readonly isSource?: (name: string) => boolean;
  /** Other inputs of the result, such as a compiler's version. */
  readonly also?: string;
}

/** 16 hexadecimal digits for the files in these folders and these single files. @throws Error if one does not exist */
export function sourceHash(paths: readonly string[], { isSource = () => true, also = "" }: SourceHashOptions = {}): string {
  const hash = createHash("sha256").update(also);
  for (const root of paths) {
    for (const path of filesOf(root, isSource))
      hash.update(path.slice(root.length)).update("\0").update(readFileSync(path)).update("\0");
  }
  return hash.digest("hex").slice(0, 16);
}

function filesOf(root: string, isSource: (name: string) => boolean): string[] {
  if (!statSync(root).isDirectory()) return [root];
  return readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && isSource(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}
