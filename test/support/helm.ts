// Runs Helm as a user does (test/tools/helm), with its own folders, so that the machine's Helm is neither read nor written.
import { execFile } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { cacheDir } from "./build-cache.ts";
import { goProgram } from "./go-build.ts";

export const CHART = fileURLToPath(new URL("../../charts/ctrlmesh", import.meta.url));
/** The release and its namespace, as the docs name them. */
export const RELEASE = "ctrlmesh";
export const MESH_NAMESPACE = "ctrlmesh-system";

/** The registry of the images, which the chart demands; that of docs/quickstart.md. The test node has the images under such names. */
export const REGISTRY = "kind.local";
const REGISTRY_VALUES = fileURLToPath(new URL("./registry-values.yaml", import.meta.url));

/** The name of one of the mesh's images in the tests. */
export function meshImage(name: "manager" | "proxy", version: string): string {
  return `${REGISTRY}/ctrlmesh/${name}:${version}`;
}

/** The chart, and the registry as the first values, so that any others take precedence. */
export const CHART_ARGS: readonly string[] = [CHART, "--values", REGISTRY_VALUES];

export interface HelmResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs helm to its end in the mesh's namespace. Never throws for an exit code. */
export async function tryHelm(args: readonly string[], kubeconfig = "/dev/null", input = ""): Promise<HelmResult> {
  const program = await goProgram("test/tools/helm");
  const home = join(cacheDir(), "helm-home");
  mkdirSync(home, { recursive: true });
  const env = {
    ...process.env,
    KUBECONFIG: kubeconfig,
    HELM_CACHE_HOME: join(home, "cache"),
    HELM_CONFIG_HOME: join(home, "config"),
    HELM_DATA_HOME: join(home, "data"),
  };
  return new Promise((resolve, reject) => {
    const child = execFile(
      program,
      ["--namespace", MESH_NAMESPACE, ...args],
      { env, maxBuffer: 64 * 1024 * 1024, timeout: 120_000 },
      (error, stdout, stderr) => {
        if (error !== null && typeof error.code !== "number") reject(error);
        else resolve({ code: typeof error?.code === "number" ? error.code : 0, stdout, stderr });
      },
    );
    child.stdin?.end(input);
  });
}

/** Runs helm and returns its output. @throws Error with helm's output if it fails */
export async function helm(args: readonly string[], kubeconfig?: string, input?: string): Promise<string> {
  const { code, stdout, stderr } = await tryHelm(args, kubeconfig, input);
  if (code !== 0) throw new Error(`helm ${args.join(" ")}: exit ${code}\n${stderr}`);
  return stdout;
}

/** The chart's objects as YAML. `values` is YAML too. @param more further flags */
export function helmTemplate(values = "", ...more: string[]): Promise<string> {
  return helm(["template", RELEASE, ...CHART_ARGS, "--values", "-", ...more], undefined, values);
}
