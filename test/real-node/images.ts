// The images that the node imports, as archives in the user's cache: manager and proxy, built by `npm run images` from the Dockerfiles; the
// operator of the guides, CoreDNS and the pause image, each one program.
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { readImage } from "../../scripts/image-root.ts";
import { cacheDir, isBuilt, makeRoom } from "../support/build-cache.ts";
import { buildGoPackage } from "../support/go-build.ts";
import { meshImage, REGISTRY } from "../support/helm.ts";
import { sourceHash } from "../support/source-hash.ts";
import { buildBaseImage } from "./base-image.ts";
import { exportImage, imageOfFolder, runBuilder } from "./buildah.ts";
import type { NodePrograms } from "./programs.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
export const VERSION = "0.1.0";
export const PAUSE_IMAGE = `${REGISTRY}/pause:test`;
export const COREDNS_IMAGE = `${REGISTRY}/coredns:test`;

/** Further names of images, with those that the documents' and the other tests' workloads have. */
export const FURTHER_NAMES = ["docker.io/test/go-foo:1", "docker.io/test/go-foo:2"].map((name) => {
  return { image: `${REGISTRY}/ctrlmesh/foo-operator:${VERSION}`, name };
});

/** Builds what is not in the cache. Returns the paths of the archives. @throws Error with the output of the failed step */
export async function buildImages(programs: NodePrograms): Promise<readonly string[]> {
  return [
    ...(await buildMesh()),
    await imageOfOperator(`${REGISTRY}/ctrlmesh/foo-operator:${VERSION}`, "go-foo"),
    await imageOfOperator("docker.io/test/go-webhooks:1", "go-webhooks"),
    await imageOfProgram(COREDNS_IMAGE, "coredns", programs.coredns),
    await imageOfProgram(PAUSE_IMAGE, "pause", programs.pause),
  ];
}

/** Manager and proxy, from the Dockerfiles. */
async function buildMesh(): Promise<string[]> {
  const names = ["manager", "proxy"] as const;
  const copied = names.flatMap((name) => readImage(name).stages.flatMap(({ copies }) => copies));
  const sources = copied.flatMap(({ from, sources }) => (from === undefined ? sources : []));
  const files = [...new Set([...names.map((name) => `Dockerfile.${name}`), ...sources])].map((path) => join(ROOT, path));
  const hash = sourceHash(files, { also: process.version });
  const archives = names.map((name) => ({ name, file: archiveFile(name, hash) }));
  if (archives.every(({ file }) => isBuilt(file))) return archives.map(({ file }) => file);
  await buildBaseImage();
  process.stderr.write("npm run images -- --builder buildah (once for these sources)\n");
  await runBuilder(process.execPath, [join(ROOT, "scripts/images.ts"), "--builder", "buildah"], ROOT);
  for (const { name, file } of archives) await writeArchive(meshImage(name, VERSION), file);
  return archives.map(({ file }) => file);
}

/** An operator of test/operators. */
async function imageOfOperator(reference: string, name: string): Promise<string> {
  const folder = `test/operators/${name}`;
  const program = await buildGoPackage({ folder, name: `${name}-static`, packagePath: ".", isStatic: true });
  return imageOfProgram(reference, name, program, "65534:65534");
}

/** An image that contains one static program. */
async function imageOfProgram(reference: string, name: string, program: string, user = "0:0"): Promise<string> {
  const file = archiveFile(name, sourceHash([program], { also: reference }));
  if (isBuilt(file)) return file;
  const folder = mkdtempSync(join(tmpdir(), "ctrlmesh-image-"));
  try {
    mkdirSync(join(folder, "etc"));
    // Go looks up its user when it reads a kubeconfig.
    writeFileSync(join(folder, "etc/passwd"), "root:x:0:0::/:/none\nnobody:x:65534:65534::/:/none\n");
    copyFileSync(program, join(folder, name));
    await imageOfFolder(folder, reference, ["--entrypoint", JSON.stringify([`/${name}`]), "--user", user]);
    await writeArchive(reference, file);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  return file;
}

function archiveFile(name: string, hash: string): string {
  return join(cacheDir(), `image-archive-${name}-${hash}.tar`);
}

async function writeArchive(reference: string, file: string): Promise<void> {
  makeRoom();
  const partial = `${file}.${process.pid}`;
  if (existsSync(partial)) rmSync(partial);
  await exportImage(reference, partial);
  renameSync(partial, file);
}
