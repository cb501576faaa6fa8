// The pieces of Markdown of which the generated reference is made. Pure.

/** The first line of every generated page. */
export const HEADER = "<!-- Written by scripts/reference.ts; do not edit. Run `npm run generate`. -->";

/** A table. Cells are one line each; a `|` in them is escaped. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const cells = [head, ...rows].map((row) => row.map((cell) => cell.replaceAll(/\s+/g, " ").replaceAll("|", "\\|")));
  const widths = head.map((_, column) => Math.max(3, ...cells.map((row) => (row[column] ?? "").length)));
  const line = (row: readonly string[]) => `| ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(" | ")} |`;
  const [first = [], ...rest] = cells;
  return [line(first), `| ${widths.map((width) => "-".repeat(width)).join(" | ")} |`, ...rest.map(line)].join("\n");
}

/** Text in which `*` and `<` are only characters. */
export function plain(text: string): string {
  return text.replaceAll(/[*<]/g, "\\$&");
}

export function code(text: string): string {
  return text === "" ? "" : `\`${text}\``;
}

/** A block of code with a language. */
export function block(language: string, text: string): string {
  return `\`\`\`${language}\n${text.trimEnd()}\n\`\`\``;
}

/** A page of blocks with empty lines between them. */
export function page(title: string, blocks: readonly string[]): string {
  return `${[HEADER, `# ${title}`, ...blocks].join("\n\n")}\n`;
}
