// `npm run release`: makes the files of a release in out/release, and pushes the chart to a registry. `--dry-run` pushes nothing, and takes
// the notes of "Unreleased" while the version has none. It first checks that all versions agree and that everything is committed. A release,
// and with `--require-pins` also a rehearsal, refuses actions without a commit, base images without a digest, and placeholders of URLs. The images are the work of
// .github/workflows/release.yml, which runs this command too (docs/versions.md).
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { parse } from "yaml";
import { helm } from "../test/support/helm.ts";
import { isLocal, namingProblems } from "./images/plan.ts";
import { writeArtifacts } from "./release/artifacts.ts";
import { releaseNotes } from "./release/notes.ts";
import { movableNames } from "./release/pins.ts";
import { placeholders } from "./release/placeholders.ts";
import { PLATFORMS } from "./release/platforms.ts";
import { releaseProblems } from "./release/problems.ts";

const ROOT = fileURLToPath(new URL("../", import.meta.url));
const OUT = join(ROOT, "out/release");
const USAGE =
  "usage: npm run release -- --dry-run [--registry HOST/PATH] [--tag vX.Y.Z] [--require-pins]\n       npm run release -- --registry HOST/PATH [--tag vX.Y.Z]";

function readOptions() {
  try {
    return parseArgs({
      options: {
        "dry-run": { type: "boolean", default: false },
        "require-pins": { type: "boolean", default: false },
        registry: { type: "string" },
        tag: { type: "string" },
      },
    }).values;
  } catch (error) {
    return misused([(error as Error).message]);
  }
}

function misused(problems: readonly string[]): never {
  process.stderr.write(`${problems.map((each) => `release: ${each}\n`).join("")}${USAGE}\n`);
  process.exit(64);
}

const read = (path: string) => readFileSync(join(ROOT, path), "utf8");

function changedPaths(): string[] {
  const status = execFileSync("git", ["status", "--porcelain"], { cwd: ROOT, encoding: "utf8" });
  return status.split("\n").flatMap((line) => (line === "" ? [] : [line.slice(3)]));
}

const options = readOptions();
const { version } = JSON.parse(read("package.json")) as { readonly version: string };
const naming = { registry: options.registry ?? "registry.example.com", tag: version };
const misuse = namingProblems(naming);
if (!options["dry-run"] && options.registry === undefined) misuse.push("without --dry-run it needs --registry");
if (misuse.length > 0) misused(misuse);

const chart = parse(read("charts/ctrlmesh/Chart.yaml")) as { readonly version?: string; readonly appVersion?: string };
const lock = JSON.parse(read("package-lock.json")) as { readonly version?: string };
const notes = releaseNotes(read("CHANGELOG.md"), version, { orUnreleased: options["dry-run"] });
/** The workflow's rehearsal asks for all that a release needs. */
const isFinal = options["require-pins"] || !options["dry-run"];
const problems = releaseProblems({
  version,
  versions: {
    "version in package-lock.json": lock.version,
    "version in Chart.yaml": chart.version,
    "appVersion in Chart.yaml": chart.appVersion,
  },
  tag: options.tag,
  hasNotes: notes !== undefined,
  changed: changedPaths(),
  movable: isFinal ? movableNames(ROOT) : [],
  placeholders: isFinal ? placeholders(ROOT) : [],
});
if (problems.length > 0) {
  process.stderr.write(problems.map((each) => `release: ${each}\n`).join(""));
  process.exit(1);
}

await writeArtifacts(OUT, { version, registry: naming.registry, notes: notes ?? "", platforms: PLATFORMS });
for (const name of readdirSync(OUT)) process.stdout.write(`out/release/${name}\n`);
if (!options["dry-run"]) {
  const target = `${naming.registry}/charts`;
  const plain = isLocal(target) ? ["--plain-http"] : [];
  await helm(["push", ...plain, join(OUT, `ctrlmesh-${version}.tgz`), `oci://${target}`]);
  process.stderr.write(`pushed the chart to oci://${target}/ctrlmesh\n`);
}
process.stderr.write("not made: images and signatures (.github/workflows/release.yml), and executables for macOS\n");
