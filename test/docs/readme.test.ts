// The map in CONTRIBUTING.md lists exactly the existing folders, and links lead to existing targets.
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { anchorsOf, linksOf, readTreeMap } from "../support/tree-map.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
/** The paths of all files that are or will be committed, without build results. */
const FILES = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard"], { cwd: ROOT, encoding: "utf8" })
  .split("\n")
  .filter((path) => path !== "" && existsSync(join(ROOT, path)));

/** The folders of that depth with files. */
const foldersOf = (depth: number) => [
  ...new Set(
    FILES.map((path) => path.split("/")).flatMap((parts) => (parts.length > depth ? [parts.slice(0, depth).join("/")] : [])),
  ),
];

describe("the map of the tree in CONTRIBUTING.md", () => {
  const entries = existsSync(join(ROOT, "CONTRIBUTING.md"))
    ? readTreeMap(readFileSync(join(ROOT, "CONTRIBUTING.md"), "utf8"))
    : undefined;
  const paths = (entries ?? []).map(({ path }) => path.replace(/\/$/, ""));

  it("is there", () => {
    expect(entries, "a fenced block with lines such as `src/base/    errors, clock, log`").toBeDefined();
  });

  it("has every top-level folder, or a folder in it, and every folder of src", () => {
    const isNamed = (folder: string) => paths.some((path) => path === folder || path.startsWith(`${folder}/`));
    expect(foldersOf(1).filter((folder) => !isNamed(folder))).toEqual([]);
    const inSrc = foldersOf(2).filter((folder) => folder.startsWith("src/"));
    expect(inSrc.filter((folder) => !paths.includes(folder))).toEqual([]);
  });

  it("has only paths that exist", () => {
    expect(paths.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
  });

  it("describes each path and ends folders with a slash", () => {
    expect((entries ?? []).filter(({ description }) => description === "")).toEqual([]);
    const folders = (entries ?? []).filter(
      ({ path }) => existsSync(join(ROOT, path)) && statSync(join(ROOT, path)).isDirectory(),
    );
    expect(folders.filter(({ path }) => !path.endsWith("/")).map(({ path }) => path)).toEqual([]);
  });
});

describe("links", () => {
  const documents = FILES.filter((path) => path.endsWith(".md"));

  it("of docs/README.md lead to every page but the decisions", () => {
    const linked = linksOf(readFileSync(join(ROOT, "docs/README.md"), "utf8")).map((link) =>
      join("docs", link.split("#")[0] ?? ""),
    );
    const pages = documents.filter((path) => path.startsWith("docs/") && !path.startsWith("docs/decisions/"));
    expect(pages.filter((page) => page !== "docs/README.md" && !linked.includes(page))).toEqual([]);
  });

  it.each(documents)("of %s lead to a file or a heading", (path) => {
    const text = readFileSync(join(ROOT, path), "utf8");
    const broken = linksOf(text).filter((link) => !/^[a-z][a-z0-9+.-]*:/i.test(link) && !resolves(path, text, link));
    expect(broken).toEqual([]);
  });
});

function resolves(from: string, text: string, link: string): boolean {
  const [file = "", anchor] = decodeURI(link).split("#");
  const target = file === "" ? join(ROOT, from) : join(ROOT, file.startsWith("/") ? "" : dirname(from), file);
  if (!existsSync(target)) return false;
  if (anchor === undefined || !target.endsWith(".md")) return true;
  return anchorsOf(file === "" ? text : readFileSync(target, "utf8")).has(anchor);
}
