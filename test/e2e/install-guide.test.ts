// The commands of docs/tasks/install.md in their order, from `helm install` to the removal, on the real control plane with a node that runs
// pods. The test runs each block marked `sh` and compares its output with the block marked `text`. Names of pods, times and route
// versions may differ.
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { eventually } from "../support/eventually.ts";
import { goProgram } from "../support/go-build.ts";
import { operatorImage } from "../support/install/operator.ts";
import { type InstalledMesh, startInstalledMesh } from "../support/install/world.ts";
import { describeWithTestNode } from "../support/requirements.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const BLOCK = /```sh( refused)?\n(.*?)```\n(?:\n```text\n(.*?)```)?/gs;
/** Commands that change nothing. A reader repeats such a command until the expected output appears. */
const READS = /^(kubectl (\S+ )*(get|wait) .*\n)+$/;
/** Enough for an operator to acquire a released lock, and to read a namespace that has moved. */
const RETRY_MS = 15_000;
/** No pod is restarted for a namespace that is younger (docs/tasks/move-namespaces.md). A reader takes longer to come this far. */
const NEW_NAMESPACE_MS = 10_000;
const TIMEOUT_MS = 300_000;
/** The built helm. It installs with one more value, so that restarts of pods begin after 2 s instead of the chart's 20 s. */
const HELM = `helm() {
  if [ "$1" = install ]; then "$HELM" "$@" --set restartSettleMs=2000; else "$HELM" "$@"; fi
}`;

interface Block {
  readonly commands: string;
  readonly isRefused: boolean;
  readonly output: string | undefined;
}

describeWithTestNode("docs/tasks/install.md", () => {
  let mesh: InstalledMesh;
  let helm: string;
  beforeAll(async () => {
    [mesh, helm] = await Promise.all([startInstalledMesh({ install: false }), goProgram("test/tools/helm")]);
    await mesh.cluster.addImages({ "ctrlmesh/foo-operator:0.1.0": await operatorImage() });
  });
  afterAll(() => mesh?.stop());

  const bash = async (commands: string): Promise<string> => {
    // The test node's images have the names of a registry "ctrlmesh".
    const env = { ...process.env, KUBECONFIG: mesh.kubeconfig, HELM: helm, REGISTRY: "ctrlmesh", NS: "foo-system" };
    const script = `${HELM}\n${commands}`;
    const { stdout } = await promisify(execFile)("bash", ["-euo", "pipefail", "-c", script], {
      cwd: ROOT,
      env,
      timeout: TIMEOUT_MS,
    });
    return stdout;
  };
  const follow = async (section: string) => {
    for (const { commands, output } of blocksOf(section).filter(({ isRefused }) => !isRefused)) {
      const run = async () => {
        const stdout = await bash(commands);
        if (output !== undefined) expect(shapeOf(stdout)).toEqual(shapeOf(output));
      };
      await (READS.test(commands) ? eventually(run, RETRY_MS) : run());
    }
  };

  it("installs the mesh", { timeout: TIMEOUT_MS }, () => follow("Install"));

  it("brings the operator of examples/install into the mesh", { timeout: TIMEOUT_MS }, () => follow("The first operator"));

  it("moves a namespace to the canary, which reconciles the objects there", { timeout: TIMEOUT_MS }, async () => {
    await eventually(async () => {
      const created = await mesh.run("get", "namespace", "team-b", "-o", "jsonpath={.metadata.creationTimestamp}");
      return Date.now() - Date.parse(created) > NEW_NAMESPACE_MS + 1_000; // the timestamp has whole seconds
    }, 2 * NEW_NAMESPACE_MS);
    await follow("See it work");
    const pod = await mesh.run("get", "foo", "b", "-n", "team-b", "-o", "jsonpath={.status.reconciledBy}");
    expect(pod).toMatch(/^foo-canary-/);
  });

  // The test node has no port-forward. So the command runs in a pod, next to the proxy.
  it("shows the message of a refused write", async () => {
    const [block] = blocksOf("See it work").filter(({ isRefused }) => isRefused);
    const command = /^kubectl --server.*$/m.exec(block?.commands.replaceAll("\\\n", "") ?? "")?.[0] ?? "";
    const [name = ""] = (await mesh.podNames("foo-system", "component=foo-operator,version=v1")) ?? [];
    const token = (await mesh.run("create", "token", "foo-operator", "-n", "foo-system")).trim();
    const argv = command
      .replace(/\$\(.*\)/, token)
      .replace("mesh-ca.crt", "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt")
      .split(/ +/);
    const answer = await mesh.cluster.exec("foo-system", name, "operator", argv);
    expect(answer).toEqual({ code: 1, output: block?.output });
    expect(readFileSync(`${ROOT}README.md`, "utf8")).toContain(block?.output ?? "no output");
  });

  it("shows the managers' logs and the leader", () => follow("If something does not work"));

  it("upgrades the mesh, lists the sidecars' images, and rolls back", { timeout: TIMEOUT_MS }, () => follow("Upgrade"));

  it("removes the mesh", { timeout: TIMEOUT_MS }, async () => {
    await follow("Leave");
    expect(await mesh.run("get", "pods", "-n", "foo-system", "-o", "jsonpath={.items[*].spec.initContainers[*].name}")).toBe("");
  });
});

function blocksOf(section: string): readonly Block[] {
  const text = readFileSync(`${ROOT}docs/tasks/install.md`, "utf8");
  const [, body = ""] = text.split(`\n## ${section}\n`);
  const [own = ""] = body.split("\n## ");
  return [...own.matchAll(BLOCK)].map(([, refused, commands = "", output]) => ({
    commands,
    isRefused: refused !== undefined,
    output,
  }));
}

/** The lines of an output without pods' hashes and times, sorted, since hashes decide the order of pods. */
function shapeOf(output: string): string[] {
  const lines = output.trim().split("\n");
  return lines
    .map((line) =>
      line
        .replace(/_[0-9a-f-]{36}/g, "_UID")
        .replace(/-[bcdfghjklmnpqrstvwxz2456789]{7,10}-[bcdfghjklmnpqrstvwxz2456789]{5}(?![a-z0-9])/g, "-POD")
        .replace(/\b\d+(\.\d+)? ms\b/g, "T")
        .replace(/\b(\d+m)?\d+s\b/g, "T")
        .replace(/route \d+/g, "route N")
        .replace(/\s+/g, " ")
        .trim(),
    )
    .sort();
}
