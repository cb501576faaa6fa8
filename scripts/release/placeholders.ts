// URLs and addresses that stand for the project's home, which it does not have yet. A release with them would send people nowhere. Used by `npm run release`.
import { readFileSync } from "node:fs";
import { join } from "node:path";

const FILES = [
  "charts/ctrlmesh/values.yaml",
  "charts/ctrlmesh/files/dashboard.json",
  "scripts/release/krew.yaml",
  "scripts/release/krew.ts",
  "MAINTAINERS.md",
];
/** The top-level domain that never resolves (RFC 6761). */
const PLACEHOLDER = /(?:https:\/\/ctrlmesh\.invalid\/[^\s"]*|[\w.-]+@ctrlmesh\.invalid)/g;

/** Each with the file that has it. */
export function placeholders(root: string): string[] {
  return FILES.flatMap((file) =>
    (readFileSync(join(root, file), "utf8").match(PLACEHOLDER) ?? []).map((url) => `${file}: ${url}`),
  );
}
