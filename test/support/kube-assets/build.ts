// Builds the programs of an older Kubernetes, unmodified, from the module test/kube-VERSION, once for each state of it.
import { execFile } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { cacheDir, isBuilt, makeRoom } from "../build-cache.ts";
import { GO_FLAGS } from "../go-build.ts";
import { sourceHash } from "../source-hash.ts";
import type { AssetName } from "./folder.ts";

const TEST = fileURLToPath(new URL("../../", import.meta.url));
const PREFIX = "kube-";
const BUILD_TIMEOUT_MS = 60 * 60_000;
const PACKAGES: Readonly<Record<AssetName, string>> = {
  etcd: "go.etcd.io/etcd/server/v3",
  "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
  "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
  "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
};

/** The versions that can be built, such as "1.30". */
export function olderVersions(): string[] {
  return readdirSync(TEST).flatMap((name) => (/^kube-\d/.test(name) ? [name.slice(PREFIX.length)] : []));
}

/**
 * The folder with the programs, as KUBEBUILDER_ASSETS names it. The first build takes ten minutes and more.
 * @throws Error with the compiler's output
 */
export async function buildKubeAssets(version: string): Promise<string> {
  const module = join(TEST, `${PREFIX}${version}`);
  if (!existsSync(module)) throw new Error(`Kubernetes ${version} is not one of ${olderVersions().join(", ")}`);
  const folder = join(cacheDir(), `${PREFIX}${version}-${sourceHash([module])}`);
  if (isBuilt(folder)) return folder;
  makeRoom();
  const partial = `${folder}.${process.pid}`;
  mkdirSync(partial);
  try {
    for (const [name, path] of Object.entries(PACKAGES)) {
      const args = ["build", ...GO_FLAGS, `-ldflags=-s -w ${versionFlags(module)}`, "-o", join(partial, name), path];
      await promisify(execFile)("go", args, { cwd: module, maxBuffer: 64 * 1024 * 1024, timeout: BUILD_TIMEOUT_MS });
    }
    renameSync(partial, folder);
  } finally {
    rmSync(partial, { recursive: true, force: true });
  }
  return folder;
}

/** Flags of the linker that make the programs report the version of the module, as released ones do. */
export function versionFlags(module: string): string {
  const [, patch = "", major = "", minor = ""] =
    /k8s\.io\/kubernetes (v(\d+)\.(\d+)\.\d+)/.exec(readFileSync(join(module, "go.mod"), "utf8")) ?? [];
  const values = { gitVersion: patch, gitMajor: major, gitMinor: minor };
  return Object.entries(values)
    .map(([name, value]) => `-X k8s.io/component-base/version.${name}=${value}`)
    .join(" ");
}
