// The workflows cannot run here. actionlint checks their syntax, expressions, and the inputs of the actions that it knows. The rest is about
// what they have in common with the repository, and about rights.
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { imageReferences } from "../../scripts/images/plan.ts";
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

interface Job {
  readonly permissions?: object;
  readonly env?: Readonly<Record<string, string>>;
  readonly steps?: readonly { readonly uses?: string; readonly run?: string }[];
  readonly strategy?: {
    readonly matrix: { readonly include: readonly { readonly image: string; readonly dockerfile: string }[] };
  };
}
interface Workflow {
  readonly permissions: object;
  readonly jobs: Readonly<Record<string, Job>>;
}
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
  const { permissions, jobs } = workflow(file);

  it("gives each job only the rights that it uses", () => {
    for (const [name, job] of Object.entries(jobs))
      expect(job.permissions ?? permissions, name).toEqual(RIGHTS[`${file} ${name}`] ?? { contents: "read" });
  });

  it("uses actions by version, and commands that exist", () => {
    const scripts = (JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { readonly scripts: object }).scripts;
    for (const { uses, run = "" } of Object.values(jobs).flatMap(({ steps = [] }) => steps)) {
      if (uses !== undefined) expect(uses).toMatch(/^[\w-]+\/[\w-]+@(?:v\d+|[0-9a-f]{40})$/);
      for (const [, name = ""] of run.matchAll(/npm run ([\w:]+)/g)) expect(scripts).toHaveProperty([name]);
      for (const [path] of run.matchAll(/(?:^|\s)\.ci\/\w+/g)) expect(existsSync(join(ROOT, path.trim()))).toBe(true);
    }
  });
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
