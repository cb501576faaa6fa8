import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { releaseNotes } from "./notes.ts";
import { placeholders } from "./placeholders.ts";
import { type ReleaseFacts, releaseProblems } from "./problems.ts";

const CHANGELOG = `# Changelog

## Unreleased

- soon

## 0.2.0 (2026-12-01)

### API

- new: [locks](docs/locks.md#names), as in [the issue](https://example.com/1)

## 0.1.0

`;

describe("release notes", () => {
  it("are the section of the version, in which only links to other sites remain", () => {
    expect(releaseNotes(CHANGELOG, "0.2.0", { orUnreleased: false })).toBe(
      "### API\n\n- new: locks, as in [the issue](https://example.com/1)\n",
    );
  });

  it("are missing for an unknown version and for an empty section", () => {
    expect(releaseNotes(CHANGELOG, "0.3.0", { orUnreleased: false })).toBeUndefined();
    expect(releaseNotes(CHANGELOG, "0.2", { orUnreleased: false })).toBeUndefined();
    expect(releaseNotes(CHANGELOG, "0.1.0", { orUnreleased: true })).toBeUndefined();
  });

  it("of a rehearsal may be those of the next version", () => {
    expect(releaseNotes(CHANGELOG, "0.3.0", { orUnreleased: true })).toBe("- soon\n");
    expect(releaseNotes(CHANGELOG, "0.2.0", { orUnreleased: true })).toContain("### API");
  });
});

describe("problems of a release", () => {
  const good: ReleaseFacts = {
    version: "0.2.0",
    versions: { "version in Chart.yaml": "0.2.0", "appVersion in Chart.yaml": "0.2.0" },
    tag: "v0.2.0",
    hasNotes: true,
    changed: [],
    movable: [],
    placeholders: [],
  };

  it("are none if all versions agree, there are notes, and everything is committed", () => {
    expect(releaseProblems(good)).toEqual([]);
    expect(releaseProblems({ ...good, tag: undefined })).toEqual([]);
    expect(releaseProblems({ ...good, version: "1.0.0-rc.1", versions: {}, tag: "v1.0.0-rc.1" })).toEqual([]);
  });

  it("are all reported at once", () => {
    const versions = { "version in Chart.yaml": "0.1.0", "appVersion in Chart.yaml": undefined };
    const facts = {
      version: "0.2",
      versions,
      tag: "0.2",
      hasNotes: false,
      changed: ["a", "b", "c", "d", "e"],
      movable: ["x@v1"],
      placeholders: ["values.yaml: https://ctrlmesh.invalid/docs"],
    };
    expect(releaseProblems(facts)).toEqual([
      'package.json has the version "0.2"; X.Y.Z is allowed',
      'version in Chart.yaml is "0.1.0", but package.json has 0.2',
      'appVersion in Chart.yaml is "", but package.json has 0.2',
      'the tag is "0.2", but package.json has 0.2: v0.2 is allowed',
      'CHANGELOG.md has no section "## 0.2", or an empty one',
      "not committed: a, b, c and 2 more",
      "not pinned: x@v1; a commit (40 hexadecimal digits) or a digest (@sha256:...) is required",
      "a placeholder: values.yaml: https://ctrlmesh.invalid/docs; the URL of the published page is required",
    ]);
  });
});

it("placeholders of the project's home are found until a release has replaced them", () => {
  expect(placeholders(fileURLToPath(new URL("../../", import.meta.url)))).toEqual([
    "charts/ctrlmesh/values.yaml: https://ctrlmesh.invalid/docs/troubleshooting.md",
    "charts/ctrlmesh/files/dashboard.json: https://ctrlmesh.invalid/docs/troubleshooting.md",
    "scripts/release/krew.yaml: https://ctrlmesh.invalid/",
    "scripts/release/krew.ts: https://ctrlmesh.invalid/releases/download",
    "MAINTAINERS.md: name@ctrlmesh.invalid",
    "MAINTAINERS.md: maintainers@ctrlmesh.invalid",
  ]);
});
