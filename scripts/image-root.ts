// Runs a Dockerfile's steps into a folder, for machines without an image engine or registry: the content of an image without its
// base. `node scripts/image-root.ts proxy|manager [--out DIR]` prints the folder; tests use buildImageRoot.
//
// It runs the same COPY and RUN, in the same order, from the same sources, with three replacements. The base image is this
// machine with the repository's Node. `npm ci` is this repository's own node_modules, which is linked. The stage `system` is
// left out, since this machine is the base's system: the result has only what the Dockerfile adds to that.
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, symlinkSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs, promisify } from "node:util";
import { cacheDir, isBuilt, makeRoom } from "../test/support/build-cache.ts";
import { type Dockerfile, readDockerfile, type Stage, type Step } from "../test/support/dockerfile.ts";
import type { Program } from "./build/bundle.ts";

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL("../", import.meta.url));
const SYSTEM = "system";
const RUN_TIMEOUT_MS = 5 * 60_000;

/** The manager's image has ctrlmesh too. */
export type ImageName = Exclude<Program, "cli">;

export interface ImageRoot {
  /** The folder with the image's paths, such as app/dist. */
  readonly dir: string;
  readonly last: Stage;
}

export function readImage(name: ImageName): Dockerfile {
  return readDockerfile(readFileSync(join(ROOT, `Dockerfile.${name}`), "utf8"));
}

/** The image's files, built once for each state of their sources. @throws Error with the output of the failed step */
export async function buildImageRoot(name: ImageName): Promise<ImageRoot> {
  const { stages } = readImage(name);
  const last = stages.at(-1);
  if (last === undefined) throw new Error(`Dockerfile.${name} has no stage`);
  const dir = join(cacheDir(), `image-${name}-${hashOf(name, stages)}`);
  if (!isBuilt(dir)) {
    makeRoom();
    const work = `${dir}.${process.pid}`;
    try {
      const roots = new Map<string, string>();
      for (const [index, stage] of stages.entries()) {
        const root = join(work, String(index));
        mkdirSync(root, { recursive: true });
        if (stage.name !== undefined) roots.set(stage.name, root);
        if (stage.name !== SYSTEM) await performStage(stage, root, roots);
      }
      publish(join(work, String(stages.length - 1)), dir);
    } finally {
      rmSync(work, { recursive: true, force: true });
    }
  }
  return { dir, last };
}

async function performStage(stage: Stage, root: string, roots: ReadonlyMap<string, string>): Promise<void> {
  let cwd = root;
  for (const step of stage.steps) {
    if (step.instruction === "WORKDIR") {
      cwd = join(root, step.text);
      mkdirSync(cwd, { recursive: true });
    } else if (step.copy !== undefined && step.copy.from !== SYSTEM) {
      copy(step, cwd, roots);
    } else if (step.instruction === "RUN") {
      await perform(step.text, cwd);
    }
  }
}

function copy({ copy: what }: Step, cwd: string, roots: ReadonlyMap<string, string>): void {
  const { from, sources = [], destination = "" } = what ?? {};
  const origin = from === undefined ? ROOT : roots.get(from);
  if (origin === undefined) throw new Error(`COPY --from=${from}: the stage does not exist`);
  for (const source of sources) {
    const to = destination.endsWith("/") ? join(cwd, destination, source.split("/").at(-1) ?? "") : join(cwd, destination);
    mkdirSync(dirname(to), { recursive: true });
    cpSync(join(origin, source), to, { recursive: true, verbatimSymlinks: true });
  }
}

async function perform(command: string, cwd: string): Promise<void> {
  if (command === "npm ci --ignore-scripts") {
    symlinkSync(join(ROOT, "node_modules"), join(cwd, "node_modules"));
  } else {
    await shell(command, cwd);
  }
}

async function shell(command: string, cwd: string): Promise<void> {
  const env = {
    ...process.env,
    PATH: `${dirname(process.execPath)}${delimiter}${process.env.PATH ?? ""}`,
  };
  await run("sh", ["-c", command], { cwd, env, timeout: RUN_TIMEOUT_MS }).catch((error: Error & { stdout?: string }) => {
    throw new Error(`RUN ${command}: ${error.message}\n${error.stdout ?? ""}`);
  });
}

/** Moves the complete folder to its place, unless another process was faster. */
function publish(work: string, dir: string): void {
  try {
    renameSync(work, dir);
  } catch (error) {
    if (!existsSync(dir)) throw error;
  }
}

function hashOf(name: ImageName, stages: readonly Stage[]): string {
  const hash = createHash("sha256").update(readFileSync(join(ROOT, `Dockerfile.${name}`)));
  const sources = stages.flatMap(({ copies }) => copies.flatMap(({ from, sources }) => (from === undefined ? sources : [])));
  for (const source of new Set(sources))
    for (const file of filesOf(source)) hash.update(`\0${file}\0`).update(readFileSync(join(ROOT, file)));
  return hash.digest("hex").slice(0, 16);
}

function filesOf(path: string): string[] {
  if (!lstatSync(join(ROOT, path)).isDirectory()) return [path];
  return readdirSync(join(ROOT, path), { recursive: true, withFileTypes: true })
    .flatMap((entry) => (entry.isFile() ? [join(entry.parentPath, entry.name).slice(ROOT.length)] : []))
    .sort();
}

if (import.meta.main) {
  const { values, positionals } = parseArgs({ options: { out: { type: "string" } }, allowPositionals: true });
  const [name] = positionals;
  if (name !== "proxy" && name !== "manager") {
    console.error("usage: node scripts/image-root.ts proxy|manager [--out DIR]");
    process.exit(64);
  }
  const { dir } = await buildImageRoot(name);
  if (values.out !== undefined) cpSync(dir, values.out, { recursive: true, verbatimSymlinks: true });
  console.log(values.out ?? dir);
}
