// The workflows cannot run here. actionlint checks their syntax, expressions, and the inputs of the actions that it knows. The rest is about
// what they have in common with the repository, and about rights.
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { imageReferences } from "../../scripts/images/plan.ts";
import { movableBases, movableNames } from "../../scripts/release/pins.ts";
import { actionsOf, movableActions, type Workflow, workflowProblems } from "../../scripts/release/workflow-rules.ts";
import { goProgram } from "../support/go-build.ts";
import { describeWithProgram } from "../support/requirements.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const FOLDER = join(ROOT, ".github/workflows");
const FILES = readdirSync(FOLDER);
/** Rights that a job may have beyond reading the repository. */
const RIGHTS: Readonly<Record<string, object>> = {
  "release.yml images": { contents: "read", "id-token": "write" },
  "release.yml chart": { "id-token": "write" },
  "release.yml publish": { contents: "write", "id-token": "write" },
};

/**
 * Actions by a version tag, which their owners can move. This machine reaches no place where a commit could be looked up. Replace a line by
 * a commit in the workflow. Until then `npm run release` refuses those in jobs that hold a secret or may write.
 */
const MOVABLE: Readonly<Record<string, string>> = {
  "actions/checkout@v6": "by GitHub; the workflows never leave it a token",
  "actions/setup-node@v6": "by GitHub; in jobs that hold nothing",
  "actions/setup-go@v6": "by GitHub; in jobs that hold nothing",
  "actions/cache@v5": "by GitHub; CI alone, which holds nothing and publishes nothing",
  "actions/upload-artifact@v7": "by GitHub; carries the files to the jobs that publish",
  "actions/download-artifact@v8": "by GitHub; carries the files to the jobs that publish",
  "docker/setup-qemu-action@v4": "by Docker; the release is refused with it",
  "docker/setup-buildx-action@v4": "by Docker; the release is refused with it",
  "sigstore/cosign-installer@v3": "by Sigstore; the release is refused with it",
};

const workflow = (file: string) => parse(readFileSync(join(FOLDER, file), "utf8")) as Workflow;

describeWithProgram("go", "actionlint", () => {
  let program: string;
  // Only what is built here: what the machine has of shellcheck and pyflakes would make the result differ.
  const lint = (args: readonly string[], input = "") =>
    spawnSync(program, ["-shellcheck=", "-pyflakes=", "-no-color", ...args], { cwd: ROOT, encoding: "utf8", input });
  beforeAll(async () => {
    program = await goProgram("test/tools/actionlint");
  }, 900_000);

  it("finds nothing in the workflows", () => {
    const { status, stdout, stderr } = lint(FILES.map((file) => join(FOLDER, file)));
    expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: "", stderr: "" });
  });

  it("would find an input that an action does not have", () => {
    const text = readFileSync(join(FOLDER, "ci.yml"), "utf8").replace("persist-credentials:", "persist-credential:");
    const { status, stdout } = lint(["-"], text);
    expect(status).toBe(1);
    expect(stdout).toContain('input "persist-credential" is not defined in action "actions/checkout@v6"');
  });
});

describe.each(FILES)("%s", (file) => {
  const { jobs } = workflow(file);

  it("gives each job only the rights that it uses", () => {
    for (const [name, job] of Object.entries(jobs))
      expect(job.permissions, name).toEqual(RIGHTS[`${file} ${name}`] ?? { contents: "read" });
  });

  it("keeps the rules for jobs that hold a secret or may write", () => {
    expect(workflowProblems(workflow(file))).toEqual([]);
  });

  it("calls commands that exist", () => {
    const scripts = (JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { readonly scripts: object }).scripts;
    for (const { run = "" } of Object.values(jobs).flatMap(({ steps = [] }) => steps)) {
      for (const [, name = ""] of run.matchAll(/npm run ([\w:]+)/g)) expect(scripts).toHaveProperty([name]);
      for (const [path] of run.matchAll(/(?:^|\s)\.ci\/\w+/g)) expect(existsSync(join(ROOT, path.trim()))).toBe(true);
    }
  });
});

it("names actions by a commit, or by a version that is listed here with a reason", () => {
  const used = FILES.flatMap((file) => Object.values(workflow(file).jobs).flatMap((job) => actionsOf(job)));
  const movable = new Set(used.filter((action) => !/@[0-9a-f]{40}$/.test(action)));
  expect([...movable].sort()).toEqual(Object.keys(MOVABLE).sort());
});

it("a release is refused while an action of its jobs or the base of an image can be moved by its owner", () => {
  const actions = movableActions(workflow("release.yml")).map((action) => `.github/workflows/release.yml: ${action}`);
  const bases = ["Dockerfile.manager", "Dockerfile.proxy"].flatMap((path) =>
    movableBases(readFileSync(join(ROOT, path), "utf8")).map((base) => `${path}: ${base}`),
  );
  expect(movableNames(ROOT)).toEqual([...actions, ...bases]);
});

it("the release builds every image of the chart, under the names that the chart uses", () => {
  const { strategy, env = {} } = workflow("release.yml").jobs.images ?? {};
  const built = strategy?.matrix.include.map(({ image, dockerfile }) => ({
    dockerfile,
    reference: `${env.IMAGE?.replace(/\$\{\{ vars\.REGISTRY }}/, "R").replace(/\$\{\{ matrix\.image }}/, image)}:TAG`,
  }));
  const shipped = imageReferences({ registry: "R", tag: "TAG" }).filter(({ value }) => value !== undefined);
  expect(built).toEqual(shipped.map(({ dockerfile, reference }) => ({ dockerfile, reference })));
});
