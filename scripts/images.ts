// `npm run images`: builds the images of the manager and the proxy with the first of docker, podman and buildah that is on the PATH, and
// prints the options that helm needs for them. docs/tasks/build-images.md describes the options. Only those for helm are on stdout, so
// they can go into a command: helm install ... $(npm run --silent images).
import { spawnSync } from "node:child_process";
import { accessSync, constants, readFileSync, statSync } from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import {
  BUILDERS,
  type Builder,
  buildArguments,
  chartValues,
  imageReferences,
  namingProblems,
  PLATFORMS,
  pushArguments,
} from "./images/plan.ts";

const ROOT = fileURLToPath(new URL("../", import.meta.url));
/** Of images that stay on this machine: no such registry exists. */
const LOCAL_REGISTRY = "kind.local";
const USAGE =
  "usage: npm run images -- [--registry HOST/PATH] [--tag TAG] [--platform linux/amd64|linux/arm64] [--node-image IMAGE] [--builder docker|podman|buildah] [--example-operator] [--push]";

function readOptions() {
  try {
    return parseArgs({
      options: {
        registry: { type: "string" },
        tag: { type: "string" },
        platform: { type: "string" },
        "node-image": { type: "string" },
        builder: { type: "string" },
        "example-operator": { type: "boolean", default: false },
        push: { type: "boolean", default: false },
      },
    }).values;
  } catch (error) {
    return misused([(error as Error).message]);
  }
}

function misused(problems: readonly string[]): never {
  process.stderr.write(`${problems.map((each) => `images: ${each}\n`).join("")}${USAGE}\n`);
  process.exit(64);
}

function failed(why: string): never {
  process.stderr.write(`images: ${why}\n`);
  process.exit(1);
}

function isOnPath(program: string): boolean {
  return (process.env.PATH ?? "").split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK);
      return statSync(join(folder, program)).isFile();
    } catch {
      return false;
    }
  });
}

function builderOnPath(wanted: Builder | undefined): Builder {
  if (wanted !== undefined) return isOnPath(wanted) ? wanted : failed(`${wanted} is not on the PATH`);
  const found = BUILDERS.find(isOnPath);
  return found ?? failed("docker, podman and buildah are not on the PATH; install one of them (docs/tasks/build-images.md)");
}

function run(builder: Builder, args: readonly string[]): void {
  const { status, signal, error } = spawnSync(builder, args, { cwd: ROOT, stdio: ["ignore", process.stderr, process.stderr] });
  if (status !== 0) failed(`${builder} ${args.join(" ")} ended with ${status ?? signal ?? error?.message}`);
}

const options = readOptions();
const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { readonly version: string };
const naming = { registry: options.registry ?? LOCAL_REGISTRY, tag: options.tag ?? version };
const problems = namingProblems(naming);
const sourceDateEpoch = process.env.SOURCE_DATE_EPOCH || "0"; // the convention of reproducible builds
if (!/^\d+$/.test(sourceDateEpoch))
  problems.push(`SOURCE_DATE_EPOCH is "${sourceDateEpoch}"; a number of seconds since 1970 is allowed`);
const platform = PLATFORMS.find((each) => each === options.platform);
if (options.platform !== undefined && platform === undefined)
  problems.push(`--platform is "${options.platform}"; ${PLATFORMS.join(" or ")} is allowed`);
const wanted = BUILDERS.find((each) => each === options.builder);
if (options.builder !== undefined && wanted === undefined)
  problems.push(`--builder is "${options.builder}"; docker, podman or buildah are allowed`);
if (options.push && options.registry === undefined) problems.push("--push needs --registry");
if (problems.length > 0) misused(problems);

const builder = builderOnPath(wanted);
const images = imageReferences(naming).filter(({ value }) => value !== undefined || options["example-operator"]);
for (const image of images) {
  process.stderr.write(`building ${image.reference} with ${builder}\n`);
  run(builder, buildArguments(image, { builder, platform, nodeImage: options["node-image"], sourceDateEpoch }));
}
if (options.push) for (const image of images) run(builder, pushArguments(builder, image));
process.stderr.write(`${options.push ? "built and pushed" : "built"}; for helm install and helm upgrade:\n`);
process.stdout.write(
  `${Object.entries(chartValues(naming))
    .map(([name, value]) => `--set-string ${name}=${value}`)
    .join(" ")}\n`,
);
