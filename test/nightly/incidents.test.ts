// Five incidents on a real API server: the command line names the cause, and what it names ends the incident.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect } from "vitest";
import { ctrlmesh, forwardingKubectl } from "../support/ctrlmesh.ts";
import { demoVirtualApp } from "../support/demo-app.ts";
import { eventually } from "../support/eventually.ts";
import { APP, INCIDENTS, type IncidentWorld } from "../support/incidents.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { kubectl } from "../support/kubectl.ts";
import { startMesh } from "../support/mesh.ts";
import { describeWithKube, itWithProgram } from "../support/requirements.ts";

const HOME = ["-n", APP.namespace];
const NAMED = [APP.name, ...HOME];
/** A wait is named as one that needs help after 30 s. */
const WITHIN = { withinMs: 60_000, everyMs: 1_000 };

describeWithKube("the command line in an incident", () => {
  const dir = mkdtempSync(join(tmpdir(), "ctrlmesh-incidents-"));
  let kube: Kube;
  let world: IncidentWorld;
  let end = async () => {};
  const run = (...args: string[]) => ctrlmesh(kube.kubeconfig, args, { PATH: `${dir}:${process.env.PATH}` });
  const admin = (...args: string[]) => kubectl(kube.kubeconfig, args);
  const says = async (args: readonly string[], ...texts: RegExp[]) =>
    eventually(async () => {
      const { stdout } = await run(...args);
      for (const text of texts) expect(stdout).toMatch(text);
    }, WITHIN);
  const begin = async (name: string) => {
    end = (await INCIDENTS.find((incident) => incident.name === name)?.begin(world)) ?? end;
  };
  const isWell = async () => {
    expect((await run("wait", ...NAMED, "--timeout", "60s")).code).toBe(0);
    await says(["check", "--app", APP.name, ...HOME], /^ok +apps: /m);
  };

  beforeAll(async () => {
    kube = await startKube();
    const mesh = await startMesh({ kube });
    for (const name of ["team-a", "team-b", "canary-eu"]) await mesh.createNamespace(name);
    await mesh.apply(demoVirtualApp());
    const main = await mesh.addPod({ name: "foo-0" });
    const canary = await mesh.addPod({ name: "foo-canary-0", labels: { version: "v2" } });
    world = { mesh, main, canary };
    forwardingKubectl(dir, [main, canary]);
  });
  afterEach(async () => {
    await end();
    end = async () => {};
  });
  afterAll(async () => {
    await world?.mesh.stop();
    await kube?.stop();
    rmSync(dir, { recursive: true, force: true });
  });

  itWithProgram(
    "kubectl",
    "wrong regex: explain owner shows the expression beside the name, and plan the mended edit",
    async () => {
      await begin("wrong regex");
      await says(
        ["explain", "owner", "canary-eu", ...HOME],
        /the default subset/,
        /no +namespaceRegex \^canray, and the name is canary-eu/,
      );
      await world.mesh.apply(demoVirtualApp());
      expect((await run("wait", ...NAMED, "--timeout", "60s")).code).toBe(0);
      await says(["explain", "owner", "canary-eu", ...HOME], /yes +namespaceRegex \^canary/, /subset "v2"/);
    },
  );

  itWithProgram("kubectl", "bare pod: status and check name the pod, and deleting it ends the wait", async () => {
    await begin("bare pod");
    await says(["status", ...NAMED], /waits for +pod foo-debug +NoProxy/);
    await says(["check", "--app", APP.name, ...HOME], /^error +apps: .*OwnershipConflict/m, /foo-debug carries no proxy/);
    await admin("delete", "pod", "foo-debug", ...HOME, "--force", "--grace-period=0");
    await isWell();
  });

  itWithProgram("kubectl", "breaker open: check names rule and cause, and recover closes it", async () => {
    await begin("breaker open");
    await says(
      ["check", "--app", APP.name, ...HOME],
      /^warning +breakers: .*rule "deletes" refuses everything/m,
      /next: ctrlmesh recover guard -n foo-system/,
    );
    expect((await run("recover", "guard", ...HOME)).code).toBe(0);
    await says(["check", "--app", APP.name, ...HOME], /^ok +breakers: /m);
  });

  itWithProgram(
    "kubectl",
    "stuck drain: status names the pod and where help stands, and the move ends when it is gone",
    async () => {
      await begin("stuck drain");
      await says(
        ["status", ...NAMED],
        /waits for +pod foo-0 +NotConnected/,
        /what helps: docs\/reference\/status\.md#notconnected/,
      );
      await end();
      end = async () => {};
      await isWell();
    },
  );

  itWithProgram("kubectl", "lock forbidden: check has the rule that is missing, and that rule ends it", async () => {
    await begin("lock forbidden");
    await says(["check", "--app", APP.name, ...HOME], /^error +apps: .*LockPermitted is False/m);
    const { stdout } = await run("check", "--app", APP.name, ...HOME);
    const [, rule = ""] = /add to their Role there: (\{.*?\]\})/.exec(stdout) ?? [];
    const both = { ...JSON.parse(rule), verbs: ["*"] };
    const patch = [{ op: "add", path: "/rules/-", value: both }];
    await admin("patch", "clusterrole", APP.name, "--type=json", "-p", JSON.stringify(patch));
    await isWell();
  });
});
