// Parses the map of the tree in README.md: a fenced code block with one path and its description on each line. Folders end with "/".
//
//     ```
//     src/base/    errors, clock, log, ...
//     deploy/      CRDs and manifests
//     ```

export interface MapEntry {
  readonly path: string;
  readonly description: string;
}

/** The entries of the first fenced block that has a line beginning with `src/`; undefined without such a block. */
export function readTreeMap(markdown: string): readonly MapEntry[] | undefined {
  for (const [, block = ""] of markdown.matchAll(/^```[^\n]*\n(.*?)^```/gms)) {
    const lines = block.split("\n").filter((line) => line.trim() !== "");
    if (lines.some((line) => line.startsWith("src/"))) return lines.flatMap(entryOf);
  }
  return undefined;
}

/** Targets of the inline links of a Markdown text, without those in code. */
export function linksOf(markdown: string): string[] {
  const prose = markdown.replace(/^```.*?^```/gms, "").replace(/`[^`\n]*`/g, "");
  return [...prose.matchAll(/\]\(<?([^)\s>]+)>?(?:\s+"[^"]*")?\)/g)].map(([, target = ""]) => target);
}

/** The anchors of a Markdown text's headings, as GitHub generates them. */
export function anchorsOf(markdown: string): Set<string> {
  const headings = markdown.replace(/^```.*?^```/gms, "").matchAll(/^#{1,6}\s+(.*?)\s*#*$/gm);
  const anchors = new Set<string>();
  for (const [, heading = ""] of headings) {
    const plain = heading
      .replace(/\[([^\]]*)\]\([^)]*\)/g, "$1")
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, "")
      .replace(/\s/g, "-");
    let anchor = plain;
    for (let count = 1; anchors.has(anchor); count++) anchor = `${plain}-${count}`;
    anchors.add(anchor);
  }
  return anchors;
}

// A line without a path continues the previous description, or is a remark.
function entryOf(line: string): MapEntry[] {
  const [, path, description = ""] = /^([\w.@*-][\w./@*-]*)(?:\s+(.*))?$/.exec(line) ?? [];
  return path === undefined ? [] : [{ path, description }];
}
