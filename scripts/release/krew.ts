// The manifest of the kubectl plugin for krew. Pure.
import { parseDocument } from "yaml";
import type { Archive } from "./executables.ts";

/** Where a release has its files. A placeholder while the project has no home (placeholders.ts). */
const DOWNLOADS = "https://ctrlmesh.invalid/releases/download";

/** @param template krew.yaml, in this folder */
export function krewManifest(template: string, version: string, archives: readonly Archive[]): string {
  const manifest = parseDocument(template.replace(/^#.*\n/, ""));
  manifest.setIn(["spec", "version"], `v${version}`);
  manifest.setIn(
    ["spec", "platforms"],
    archives.map(({ platform: { os, arch, file }, name, sha256 }) => ({
      selector: { matchLabels: { os, arch } },
      uri: `${DOWNLOADS}/v${version}/${name}`,
      sha256,
      bin: file,
    })),
  );
  return manifest.toString({ lineWidth: 0 });
}
