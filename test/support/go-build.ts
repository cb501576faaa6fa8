// Builds the Go programs of the tests on demand, once for each state of their sources. The binary is in the user's cache under
// the hash of its folder, so a fresh clone of the same sources finds it.
import { execFile } from "node:child_process";
import { renameSync, rmSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { cacheDir, isBuilt, makeRoom } from "./build-cache.ts";
import { sourceHash } from "./source-hash.ts";

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const BUILD_TIMEOUT_MS = 20 * 60_000;

export const GO_PROGRAMS = [
  "test/operators/go-foo",
  "test/operators/fake-kubelet",
  "test/operators/go-old",
  "test/operators/go-retry",
  "test/operators/go-children",
  "test/operators/go-consistent",
  "test/operators/go-fetch",
  "test/operators/go-webhooks",
  "test/kube",
  "test/tools/helm",
  "test/tools/actionlint",
] as const;
/** The CI does not build these in advance, since only nightly tests use them. */
const NIGHTLY_PROGRAMS = ["test/operators/go-multicluster"] as const;
/** Modules without sources of their own, by the package of another module that they build. Only nightly tests use them. */
const FOREIGN_PACKAGES = {
  "test/operators/prometheus-operator": "github.com/prometheus-operator/prometheus-operator/cmd/operator",
} as const;
export type GoProgram = (typeof GO_PROGRAMS)[number] | (typeof NIGHTLY_PROGRAMS)[number] | keyof typeof FOREIGN_PACKAGES;

/** Build, vet and test use the same flags, since with other flags Go compiles all of Kubernetes again. */
export const GO_FLAGS: readonly string[] = ["-trimpath"];

/**
 * The path of the built program. The first build takes minutes on a cold cache.
 * @throws Error with the compiler's output
 */
export function goProgram(program: GoProgram): Promise<string> {
  return buildGoPackage({ folder: program, name: basename(program), packagePath: packageOf(program) });
}

export interface GoPackage {
  /** The folder of the module that requires the package. */
  readonly folder: string;
  /** What the binary's name begins with. */
  readonly name: string;
  /** The package, or "." for the module's own. */
  readonly packagePath: string;
  /** Further flags of the build. */
  readonly flags?: readonly string[];
  /** Further flags of the linker. */
  readonly linkerFlags?: string;
  /** Without cgo the binary needs no libraries, but Go compiles more packages anew. */
  readonly isStatic?: boolean;
}

/** The path of the built package, which is in the cache under the hash of its module. @throws Error with the compiler's output */
export async function buildGoPackage(goPackage: GoPackage): Promise<string> {
  const { folder, name, packagePath, flags = [], linkerFlags = "", isStatic = false } = goPackage;
  const cwd = join(ROOT, folder);
  const binary = join(cacheDir(), `${name}-${sourceHash([cwd], { isSource, also: [...flags, linkerFlags].join("") })}`);
  if (isBuilt(binary)) return binary;
  makeRoom();
  const partial = `${binary}.${process.pid}`;
  process.stderr.write(`building ${name} (once for these sources; the control plane takes some minutes on a cold cache)\n`);
  try {
    // Without symbols the control plane is 60 MB smaller.
    const args = ["build", ...GO_FLAGS, ...flags, `-ldflags=-s -w ${linkerFlags}`.trimEnd(), "-o", partial, packagePath];
    const env = isStatic ? { ...process.env, CGO_ENABLED: "0" } : process.env;
    await run("go", args, { cwd, env, maxBuffer: 64 * 1024 * 1024, timeout: BUILD_TIMEOUT_MS });
    renameSync(partial, binary);
  } finally {
    rmSync(partial, { force: true });
  }
  return binary;
}

/** The folder of another module that the program requires, in Go's module cache. @throws Error if it cannot be downloaded */
export async function goModuleFolder(program: GoProgram, module: string): Promise<string> {
  const { stdout } = await run("go", ["mod", "download", "-json", module], {
    cwd: join(ROOT, program),
    timeout: BUILD_TIMEOUT_MS,
  });
  return (JSON.parse(stdout) as { Dir: string }).Dir;
}

/** The reason why Go programs cannot be built here; undefined if they can. */
export async function whyNoGo(): Promise<string | undefined> {
  return (await goVersion()) === undefined ? "Go is not installed" : undefined;
}

/** The output of `go version`; undefined without Go. */
export async function goVersion(): Promise<string | undefined> {
  return run("go", ["version"]).then(
    ({ stdout }) => stdout.trim(),
    () => undefined,
  );
}

function packageOf(program: GoProgram): string {
  return (FOREIGN_PACKAGES as Readonly<Record<string, string>>)[program] ?? ".";
}

function isSource(name: string): boolean {
  return (name.endsWith(".go") && !name.endsWith("_test.go")) || name === "go.mod" || name === "go.sum";
}
