// The files of a release as `npm run release -- --dry-run` makes them (scripts/release/artifacts.ts), for images of some registry.
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import { PROGRAMS } from "../../scripts/build/bundle.ts";
import { buildImageRoot } from "../../scripts/image-root.ts";
import { writeArtifacts } from "../../scripts/release/artifacts.ts";
import { helm } from "../support/helm.ts";
import { describeWithProgram } from "../support/requirements.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { readonly version: string };
const REGISTRY = "registry.example.com/me";

interface Listed {
  readonly kind: string;
  readonly metadata: { readonly name: string };
}

describeWithProgram("go", "the files of a release", () => {
  let dir: string;
  const read = (name: string) => readFileSync(join(dir, name), "utf8");
  const objects = (text: string) =>
    parseAllDocuments(text).flatMap((each) => (each.contents === null ? [] : [each.toJSON() as Listed]));
  beforeAll(async () => {
    dir = mkdtempSync(join(tmpdir(), "ctrlmesh-release-"));
    await writeArtifacts(dir, { version, registry: REGISTRY, notes: "- new\n", platforms: [] });
  }, 900_000);
  afterAll(() => rmSync(dir, { recursive: true, force: true }));

  it("are these, each with its checksum", () => {
    const files = [`ctrlmesh-${version}.tgz`, "ctrlmesh-crds.yaml", "ctrlmesh.cdx.json", "ctrlmesh.yaml", "release-notes.md"];
    expect(readdirSync(dir).toSorted()).toEqual([...files, "SHA256SUMS"].toSorted());
    const checked = execFileSync("sha256sum", ["--check", "--strict", "SHA256SUMS"], { cwd: dir, encoding: "utf8" });
    expect(checked.trim().split("\n").toSorted()).toEqual(files.map((name) => `${name}: OK`).toSorted());
  });

  it("the packed chart without values, and the plain manifests, use the images of the release and no others", async () => {
    const rendered = await helm(["template", "ctrlmesh", "--skip-tests", join(dir, `ctrlmesh-${version}.tgz`)]);
    for (const text of [rendered, read("ctrlmesh.yaml")]) {
      const images = text.match(/[\w./:-]+\/(?:manager|proxy):[\w.-]+/g) ?? [];
      expect([...new Set(images)].toSorted()).toEqual([
        `${REGISTRY}/ctrlmesh/manager:${version}`,
        `${REGISTRY}/ctrlmesh/proxy:${version}`,
      ]);
    }
    const names = (text: string) => objects(text).map(({ kind, metadata: { name } }) => `${kind} ${name}`);
    expect(names(read("ctrlmesh.yaml"))).toEqual(["Namespace ctrlmesh-system", ...names(rendered)]);
  });

  it("the CRDs are those of deploy/crds", () => {
    const kinds = objects(read("ctrlmesh-crds.yaml"));
    expect(kinds.map(({ metadata: { name } }) => name).toSorted()).toEqual(
      readdirSync(join(ROOT, "deploy/crds"))
        .map((name) => name.slice(0, -".yaml".length))
        .toSorted(),
    );
    expect(new Set(kinds.map(({ kind }) => kind))).toEqual(new Set(["CustomResourceDefinition"]));
  });

  it("the list of packages is CycloneDX, and has exactly what is in the images", async () => {
    const bom = JSON.parse(read("ctrlmesh.cdx.json")) as {
      readonly components: readonly { readonly "bom-ref": string; readonly hashes?: readonly object[] }[];
    };
    expect(bom).toMatchObject({ bomFormat: "CycloneDX", metadata: { component: { name: "ctrlmesh", version } } });
    const notices: string[] = [];
    // One after the other: two programs are in one image, which is built once.
    for (const name of PROGRAMS) {
      const { dir: image } = await buildImageRoot(name === "proxy" ? "proxy" : "manager");
      notices.push(readFileSync(join(image, "app/dist", name, "THIRD-PARTY-NOTICES.txt"), "utf8"));
    }
    const shipped = notices.flatMap((text) => [...text.matchAll(/^(\S+@[\d.]+): /gm)].map(([, name]) => name));
    expect(shipped.length).toBeGreaterThan(50);
    expect(new Set(bom.components.map((each) => each["bom-ref"]))).toEqual(new Set(shipped));
    expect(bom.components.every(({ hashes = [] }) => hashes.length > 0)).toBe(true);
  });
});

it.each([
  [[], "without --dry-run it needs --registry"],
  [["--dry-run", "--registry", "HTTP://x"], '--registry is "HTTP://x"'],
  [["--bogus"], "Unknown option '--bogus'"],
])("npm run release refuses %j with the reason and its usage", (args, problem) => {
  const { status, stderr } = spawnSync(process.execPath, [join(ROOT, "scripts/release.ts"), ...args], { encoding: "utf8" });
  expect(status).toBe(64);
  expect(stderr).toContain(`release: ${problem}`);
  expect(stderr).toContain("usage: npm run release");
});

it("npm run release refuses a tag of another version, and makes nothing", () => {
  const args = [join(ROOT, "scripts/release.ts"), "--dry-run", "--tag", "v9.9.9"];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
  expect({ status, stdout }).toEqual({ status: 1, stdout: "" });
  expect(stderr).toContain(`release: the tag is "v9.9.9", but package.json has ${version}`);
});
