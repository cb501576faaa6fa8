// Every command of ctrlmesh on a mesh that the chart has installed, with the pods of the quickstart, by kubectl and its port-forward.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { parse, stringify } from "yaml";
import { EXIT } from "../../../src/cli/frame/exit.ts";
import { COMMANDS } from "../../../src/cli/run.ts";
import { ctrlmesh } from "../../support/ctrlmesh.ts";
import { flow, type World } from "../world.ts";

const APP = "foo-operator";
const HOME = ["-n", "foo-system"];

export function commandLine(world: () => World): void {
  const ran = new Set<string>();
  const run = async (...args: string[]) => {
    const name = COMMANDS.find((command) => `${args.join(" ")} `.startsWith(`${command.name} `))?.name;
    if (name !== undefined) ran.add(name);
    return ctrlmesh(world().kube.kubeconfig, args);
  };
  const does = async (args: readonly string[], text: RegExp, code: number = EXIT.ok) => {
    const { stdout, stderr, ...ended } = await run(...args);
    expect([ended.code, ended.code === code ? "" : stderr]).toEqual([code, ""]);
    expect(stdout).toMatch(text);
  };
  const podOf = async (version: string) =>
    (await world().podNames(HOME[1] ?? "", `component=${APP},version=${version}`))[0] ?? "";

  flow("command line: finds nothing wrong after an installation", world, async () => {
    // One node has no room for a second manager, which is a warning.
    await does(["check", "--wait", "1m"], /^0 errors, [01] warnings?$/m);
    await does(["version"], /sidecar/i);
    await does(["status", "-A"], /^VirtualApp foo-system\/foo-operator: ready/m);
    await does(["wait", APP, ...HOME, "--for", "ready"], /Ready/);
    await does(["owners", APP, ...HOME], / team-b +v2 +Owned /);
  });

  flow("command line: asks the sidecars", world, async () => {
    const [main, canary] = [await podOf("v1"), await podOf("v2")];
    await does(["proxies", APP, ...HOME], new RegExp(`${canary} +v2 `));
    await does(["diff", main, ...HOME], /nothing differs/);
    await does(["explain", "owner", "team-b", ...HOME], /subset "v2"[\s\S]*yes +namespaceSelector/);
    await does(
      ["explain", "request", main, "delete", "foos.demo.ctrlmesh.io/b", "--in", "team-b", ...HOME],
      /refused/,
      EXIT.findings,
    );
    await does(["explain", "inject", main, ...HOME], /has sidecar/);
    await does(["tap", APP, ...HOME, "--for", "3s"], /foos/);
    await does(["top", APP, ...HOME, "--for", "3s"], /REQUESTS/);
    await does(["events", APP, ...HOME], /MovedNamespaces/);
  });

  flow("command line: plans and checks files", world, async (own) => {
    const { spec } = parse(await own.run("get", "vapp", APP, ...HOME, "-o", "yaml")) as { readonly spec: object };
    const app = {
      apiVersion: "ctrlmesh.kruise.io/v1alpha1",
      kind: "VirtualApp",
      metadata: { name: APP, namespace: HOME[1] },
      spec,
    };
    const file = join(own.folder, "app.yaml");
    writeFileSync(file, stringify(app));
    await does(["lint", "-f", file], /1 object, no problems/);
    await does(["plan", "-f", file], /nothing moves/);
    writeFileSync(file, await own.run("get", "deployment", "foo-canary", ...HOME, "-o", "yaml"));
    await does(["inject", "-f", file], /ctrlmesh-proxy/);
    await does(["completion", "bash"], /complete/);
    await does(["bug-report", ...HOME], /"kind": "BugReport"/);
  });

  flow("command line: changes the app, and takes that back", world, async (own) => {
    const frozenIn = async () => own.run("get", "vapp", APP, ...HOME, "-o", "jsonpath={.spec.route.frozen}");
    await does(["pause", APP, ...HOME], /paused/);
    await does(["check", "--app", APP, ...HOME], /is paused: no namespace moves/);
    await does(["resume", APP, ...HOME], /resumed/);
    await does(["freeze", "default", "--app", APP, ...HOME, "--reason", "a test"], /has frozen namespace default/);
    await does(["wait", APP, ...HOME], /Converged/);
    expect(await frozenIn()).toBe('{"default":"a test"}');
    await does(["thaw", "default", "--app", APP, ...HOME], /has thawed namespace default/);
    await does(["confirm", APP, ...HOME], /^$/, EXIT.failed);
    await does(["labels", "remove", APP, ...HOME], /^$/, EXIT.failed);
    await does(["recover", "guard", ...HOME], /^$/, EXIT.failed);
    await does(["roll", APP, ...HOME, "--dry-run"], /foo-canary/);
    await does(["wait", APP, ...HOME], /Converged/);
  });

  flow("command line: is in the manager's image", world, async (own) => {
    const inPod = ["exec", "-n", "ctrlmesh-system", "deployment/ctrlmesh-manager", "--", "node", "dist/cli/ctrlmesh.js"];
    expect(await own.run(...inPod, "status", "-A")).toMatch(/^VirtualApp foo-system\/foo-operator: ready/m);
    expect(await own.run(...inPod, "version", "--client")).toMatch(/\d/);
  });

  it("command line: has no other command, but the one that serves a page", () => {
    expect(COMMANDS.map(({ name }) => name).filter((name) => !ran.has(name) && name !== "dashboard")).toEqual([]);
  });
}
