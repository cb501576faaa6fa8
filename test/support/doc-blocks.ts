// The fenced blocks of a Markdown text. `sh` marks commands that a test runs, `bash` commands that no test runs, and no word or `text` an output.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

export interface DocBlock {
  /** The words behind the opening fence. */
  readonly info: string;
  readonly text: string;
  /** The nearest heading above, without its marks. */
  readonly section: string;
}

/** The paths of README.md and the like, and of all pages in docs. */
export function documents(): string[] {
  const args = ["ls-files", "--cached", "--others", "--exclude-standard", "*.md"];
  const paths = execFileSync("git", args, { cwd: ROOT, encoding: "utf8" }).split("\n");
  return [...new Set(paths)].filter((path) => /^(docs\/.*|[A-Z]+)\.md$/.test(path)).sort();
}

export function readDocument(path: string): string {
  return readFileSync(`${ROOT}${path}`, "utf8");
}

/** In their order. The indentation of a block in a list is removed. */
export function blocksOf(markdown: string): DocBlock[] {
  const blocks: DocBlock[] = [];
  let section = "";
  for (const [, heading, indent = "", info = "", body = ""] of markdown.matchAll(
    /^#{1,6} +([^\n]*)$|^( *)```([^\n]*)\n(.*?)^ *```$/gms,
  )) {
    if (heading !== undefined) section = heading;
    else blocks.push({ info: info.trim(), text: body.replaceAll(new RegExp(`^${indent}`, "gm"), ""), section });
  }
  return blocks;
}
