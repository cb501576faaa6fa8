import { execFileSync, spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { BUILDERS, chartValues, IMAGES } from "./images/plan.ts";

const ROOT = fileURLToPath(new URL("../", import.meta.url));
const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { readonly version: string };
let dir = "";

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "ctrlmesh-images-"));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

/** A builder that records its calls, and fails for the sub-command `failsAt`. */
function installBuilder(name: string, failsAt = "nothing") {
  writeFileSync(
    join(dir, name),
    `#!/bin/sh\necho "${name} $*" >> ${dir}/calls\necho built\nif [ "$1" = ${failsAt} ]; then exit 3; fi\n`,
  );
  chmodSync(join(dir, name), 0o755);
}

function images(...args: string[]) {
  return imagesWith({}, ...args);
}

function imagesWith(env: Readonly<Record<string, string>>, ...args: string[]) {
  const result = spawnSync(process.execPath, [join(ROOT, "scripts/images.ts"), ...args], {
    encoding: "utf8",
    cwd: tmpdir(),
    env: { PATH: dir, ...env },
  });
  const calls = existsSync(join(dir, "calls")) ? readFileSync(join(dir, "calls"), "utf8").trim().split("\n") : [];
  return { ...result, calls };
}

const NAMED = ["--registry", "localhost:5000/me", "--tag", "dev"];

it.each(BUILDERS)("%s builds both images, and stdout has the options for helm alone", (builder) => {
  installBuilder(builder);
  const { status, stdout, stderr, calls } = images(...NAMED);
  expect(stderr).toContain(`building localhost:5000/me/ctrlmesh/manager:dev with ${builder}`);
  expect(status).toBe(0);
  const time = builder === "docker" ? "--build-arg SOURCE_DATE_EPOCH=0" : "--timestamp 0";
  expect(calls).toEqual([
    `${builder} build -f Dockerfile.manager -t localhost:5000/me/ctrlmesh/manager:dev ${time} .`,
    `${builder} build -f Dockerfile.proxy -t localhost:5000/me/ctrlmesh/proxy:dev ${time} .`,
  ]);
  expect(stdout.trim()).toBe(
    "--set-string image.registry=localhost:5000/me --set-string image.tag=dev --set-string proxy.image.tag=dev",
  );
});

it("without options the images have the names and the tag of the chart's defaults", () => {
  installBuilder("docker");
  expect(images("--example-operator").calls.map((call) => / -t (\S+)/.exec(call)?.[1])).toEqual([
    `kind.local/ctrlmesh/manager:${version}`,
    `kind.local/ctrlmesh/proxy:${version}`,
    `kind.local/ctrlmesh/foo-operator:${version}`,
  ]);
});

it("--push pushes after all images are built; podman and buildah push to this machine without TLS, as docker does", () => {
  installBuilder("podman");
  expect(images(...NAMED, "--push").calls.slice(2)).toEqual([
    "podman push --tls-verify=false localhost:5000/me/ctrlmesh/manager:dev",
    "podman push --tls-verify=false localhost:5000/me/ctrlmesh/proxy:dev",
  ]);
  installBuilder("docker");
  expect(images(...NAMED, "--push").calls.slice(-1)).toEqual(["docker push localhost:5000/me/ctrlmesh/proxy:dev"]);
  installBuilder("buildah");
  expect(images("--registry=registry.example.com/me", "--builder=buildah", "--push").calls.at(-1)).toBe(
    `buildah push registry.example.com/me/ctrlmesh/proxy:${version}`,
  );
});

it("--node-image replaces the base of the images that ship, and not that of the example", () => {
  installBuilder("docker");
  const node = `mirror.example.com/node:24@sha256:${"a".repeat(64)}`;
  expect(images(...NAMED, "--example-operator", "--node-image", node).calls).toEqual([
    `docker build -f Dockerfile.manager -t localhost:5000/me/ctrlmesh/manager:dev --build-arg NODE_IMAGE=${node} --build-arg SOURCE_DATE_EPOCH=0 .`,
    `docker build -f Dockerfile.proxy -t localhost:5000/me/ctrlmesh/proxy:dev --build-arg NODE_IMAGE=${node} --build-arg SOURCE_DATE_EPOCH=0 .`,
    "docker build -f examples/install/Dockerfile -t localhost:5000/me/ctrlmesh/foo-operator:dev --build-arg SOURCE_DATE_EPOCH=0 test/operators/go-foo",
  ]);
});

it.each(BUILDERS)("--platform is passed to %s for every image", (builder) => {
  installBuilder(builder);
  const { status, calls } = images(...NAMED, "--example-operator", "--platform", "linux/arm64");
  expect(status).toBe(0);
  expect(calls.map((call) => / -t \S+\/(\S+):dev --platform (\S+) /.exec(call)?.slice(1))).toEqual([
    ["manager", "linux/arm64"],
    ["proxy", "linux/arm64"],
    ["foo-operator", "linux/arm64"],
  ]);
});

it("SOURCE_DATE_EPOCH is the time of the images and of their files", () => {
  installBuilder("buildah");
  expect(imagesWith({ SOURCE_DATE_EPOCH: "1764000000" }).calls.every((call) => call.includes(" --timestamp 1764000000 "))).toBe(
    true,
  );
  const { status, stderr } = imagesWith({ SOURCE_DATE_EPOCH: "today" });
  expect(status).toBe(64);
  expect(stderr).toContain('images: SOURCE_DATE_EPOCH is "today"; a number of seconds since 1970 is allowed');
});

it("takes docker before podman before buildah, or the one that --builder names", () => {
  installBuilder("buildah");
  installBuilder("podman");
  expect(images().calls[0]).toMatch(/^podman build/);
  expect(images("--builder", "buildah").calls.at(-1)).toMatch(/^buildah build/);
});

describe("what cannot be done", () => {
  it("without a builder it says what is missing, and ends with 1", () => {
    const { status, stdout, stderr } = images();
    expect({ status, stdout }).toEqual({ status: 1, stdout: "" });
    expect(stderr).toBe(
      "images: docker, podman and buildah are not on the PATH; install one of them (docs/tasks/build-images.md)\n",
    );
    expect(images("--builder", "podman").stderr).toContain("images: podman is not on the PATH");
  });

  it("a builder that fails ends the run with 1 and the command that failed", () => {
    installBuilder("docker", "build");
    const { status, stdout, stderr, calls } = images();
    expect({ status, stdout, calls: calls.length }).toEqual({ status: 1, stdout: "", calls: 1 });
    expect(stderr).toContain(
      `images: docker build -f Dockerfile.manager -t kind.local/ctrlmesh/manager:${version} --build-arg SOURCE_DATE_EPOCH=0 . ended with 3`,
    );
  });

  it.each([
    [["--bogus"], "Unknown option '--bogus'"],
    [["--registry", "https://registry.example.com"], '--registry is "https://registry.example.com"; a host and a path'],
    [["--tag", "a b"], '--tag is "a b"; letters, digits'],
    [["--platform", "arm64"], '--platform is "arm64"; linux/amd64 or linux/arm64 is allowed'],
    [["--platform", "linux/amd64,linux/arm64"], '--platform is "linux/amd64,linux/arm64"; linux/amd64 or linux/arm64'],
    [["--builder", "make"], '--builder is "make"; docker, podman or buildah'],
    [["--push"], "--push needs --registry"],
  ])("%j is refused with the reason and the usage", (args, problem) => {
    const { status, stderr, calls } = images(...args);
    expect({ status, calls }).toEqual({ status: 64, calls: [] });
    expect(stderr).toContain(`images: ${problem}`);
    expect(stderr).toContain("usage: npm run images");
  });
});

describe("the plan", () => {
  it("names Dockerfiles and contexts that exist and are committed", () => {
    for (const { dockerfile, context } of IMAGES) {
      expect(execFileSync("git", ["ls-files", dockerfile], { cwd: ROOT, encoding: "utf8" }).trim()).toBe(dockerfile);
      expect(existsSync(join(ROOT, context))).toBe(true);
    }
  });

  it("sets only values that the chart has", () => {
    const values = parse(readFileSync(join(ROOT, "charts/ctrlmesh/values.yaml"), "utf8")) as object;
    const names = Object.keys(chartValues({ registry: "r", tag: "t" }));
    expect(names).toHaveLength(3);
    for (const name of names) expect(values).toHaveProperty(name);
  });
});
