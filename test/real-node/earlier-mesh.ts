// The mesh of an earlier commit, from which flows/upgrade.ts upgrades: its chart, and its two images as archives. That commit's own `npm run images`
// builds them once, and they are kept in the user's cache. The version of both commits is the same, so the images have a tag of their own.
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { cacheDir, isBuilt, makeRoom } from "../support/build-cache.ts";
import { meshImage, REGISTRY } from "../support/helm.ts";
import { buildBaseImage } from "./base-image.ts";
import { exportImage, runBuilder } from "./buildah.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const NAMES = ["manager", "proxy"] as const;
const CHART = "chart";
const OPTIONS = "options";

/**
 * The first commit whose sidecars and managers exchange routes with those of today (docs/decisions/0045): an upgrade from an earlier one
 * is another, docs/tasks/upgrade.md. Once there is a release, its tag belongs here.
 */
export const EARLIER_COMMIT = "a708f27e9f9af2f75af33db35c32e2b3b1b244ba";
export const EARLIER_TAG = "earlier";

export interface EarlierMesh {
  readonly chart: string;
  readonly archives: readonly string[];
  /** For helm, as `npm run images` of that commit prints them. */
  readonly options: string;
}

/** Builds it unless it is in the cache. Undefined if this clone does not have the commit. @throws Error with the output of the failed step */
export async function buildEarlierMesh(): Promise<EarlierMesh | undefined> {
  const found = findEarlierMesh();
  if (found !== undefined) return found;
  if (!isInClone()) {
    process.stderr.write(`the flows of an upgrade are skipped: this clone does not have commit ${EARLIER_COMMIT}\n`);
    return undefined;
  }
  makeRoom();
  await buildBaseImage();
  process.stderr.write(`npm run images -- --builder buildah, in commit ${EARLIER_COMMIT} (once)\n`);
  const work = mkdtempSync(join(tmpdir(), "ctrlmesh-earlier-"));
  const result = `${folder()}.${process.pid}`;
  try {
    const source = checkOut(work);
    // The script imports nothing but Node.js, so the folder needs no node_modules. The Dockerfiles have their own `npm ci`.
    const script = ["scripts/images.ts", "--builder", "buildah", "--registry", REGISTRY, "--tag", EARLIER_TAG];
    const options = await runBuilder(process.execPath, script, source);
    mkdirSync(result);
    writeFileSync(join(result, OPTIONS), options);
    for (const name of NAMES) await exportImage(meshImage(name, EARLIER_TAG), join(result, `${name}.tar`));
    await runBuilder("buildah", ["rmi", ...NAMES.map((name) => meshImage(name, EARLIER_TAG))], work);
    cpSync(join(source, "charts/ctrlmesh"), join(result, CHART), { recursive: true });
    if (!existsSync(folder())) renameSync(result, folder());
  } finally {
    for (const path of [work, result]) rmSync(path, { recursive: true, force: true });
  }
  return findEarlierMesh();
}

/** What is in the cache. */
export function findEarlierMesh(): EarlierMesh | undefined {
  if (!isBuilt(folder())) return undefined;
  return {
    chart: join(folder(), CHART),
    archives: NAMES.map((name) => join(folder(), `${name}.tar`)),
    options: readFileSync(join(folder(), OPTIONS), "utf8"),
  };
}

function folder(): string {
  return join(cacheDir(), `earlier-mesh-${EARLIER_COMMIT.slice(0, 16)}-${process.version}`);
}

function isInClone(): boolean {
  try {
    execFileSync("git", ["cat-file", "-e", `${EARLIER_COMMIT}^{commit}`], { cwd: ROOT, stdio: "ignore" });
    return true;
  } catch {
    return false; // a shallow clone, or no git
  }
}

/** Returns the folder with that commit's files. */
function checkOut(work: string): string {
  const [source, archive] = [join(work, "source"), join(work, "source.tar")];
  mkdirSync(source);
  execFileSync("git", ["archive", `--output=${archive}`, EARLIER_COMMIT], { cwd: ROOT });
  execFileSync("tar", ["-xf", archive, "-C", source]);
  return source;
}
