// The program ctrlmesh on a real API server, as people run it: with kubectl on the PATH, and without.
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { SHARDING_CONFIGS, VIRTUAL_APPS } from "../../src/api/resources.ts";
import { LEASES } from "../../src/kube/client/resources.ts";
import { ctrlmesh, forwardingKubectl, PATIENT } from "../support/ctrlmesh.ts";
import { demoVirtualApp } from "../support/demo-app.ts";
import { eventually } from "../support/eventually.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { type Mesh, type MeshPod, startMesh } from "../support/mesh.ts";
import { describeWithKube, itWithProgram } from "../support/requirements.ts";

const APP = { namespace: "foo-system", name: "foo-operator" };
const NAMED = [APP.name, "-n", APP.namespace];
/** Within which each command answers, whatever is wrong. */
const ANSWER_MS = 5_000;

async function kubectl(kubeconfig: string, args: readonly string[]) {
  return new Promise<{ readonly stdout: string; readonly stderr: string }>((resolve) => {
    execFile("kubectl", args, { env: { ...process.env, KUBECONFIG: kubeconfig }, timeout: 30_000 }, (_error, stdout, stderr) =>
      resolve({ stdout, stderr }),
    );
  });
}

describeWithKube("ctrlmesh", () => {
  let kube: Kube;
  let mesh: Mesh;
  let pods: MeshPod[] = [];
  const wrapped = mkdtempSync(join(tmpdir(), "ctrlmesh-kubectl-"));
  const run = (...args: string[]) => ctrlmesh(kube.kubeconfig, [...args, PATIENT]);
  const portOf = (name: string) => new URL(pods.find((pod) => pod.name === name)?.healthUrl ?? "").port;
  const isPaused = async () => (await mesh.client.get(VIRTUAL_APPS, APP)).spec.route?.paused;

  beforeAll(async () => {
    kube = await startKube();
    mesh = await startMesh({ kube, managers: 2 });
    for (const name of ["team-a", "canary-eu"]) await mesh.createNamespace(name);
  });
  afterAll(async () => {
    await mesh?.stop();
    await kube?.stop();
    rmSync(wrapped, { recursive: true, force: true });
  });

  itWithProgram("kubectl", "says that there is no app, then shows it, waits for it, pauses it and lets it go on", async () => {
    expect(await run("status", "-A")).toMatchObject({ code: 0, stdout: "", stderr: "there is no app in this cluster\n" });
    await mesh.apply(demoVirtualApp());
    pods = [await mesh.addPod({ name: "foo-0" }), await mesh.addPod({ name: "foo-canary-0", labels: { version: "v2" } })];
    forwardingKubectl(wrapped, pods);
    expect(await run("wait", ...NAMED, "--timeout", "30s")).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^foo-operator: Converged/),
    });
    const { stdout } = await run("status", ...NAMED);
    expect(stdout).toMatch(/^VirtualApp foo-system\/foo-operator: ready \(/);
    expect(stdout).toMatch(/^ {2}v2 +1 namespace +1 of 1 pods ready/m);
    expect((await run("pause", ...NAMED, "--dry-run")).code).toBe(0);
    expect(await isPaused()).not.toBe(true);
    expect((await run("pause", ...NAMED)).code).toBe(0);
    expect(await isPaused()).toBe(true);
    expect((await run("status", ...NAMED)).stdout).toContain("paused by its spec");
    expect((await run("resume", ...NAMED)).code).toBe(0);
    expect(await isPaused()).toBe(false);
  });

  itWithProgram("kubectl", "asks each sidecar who owns a namespace, and shows who could not be asked", async () => {
    const owner = (namespace: string) =>
      ctrlmesh(kube.kubeconfig, ["explain", "owner", `ns/${namespace}`, "-n", APP.namespace], {
        PATH: `${wrapped}:${process.env.PATH}`,
      });
    expect((await owner("canary-eu")).stdout).toMatch(/foo-0 +default +\d+ +subset "v2"\n.*foo-canary-0 +v2 +\d+ +subset "v2"\n/);
    expect((await owner("team-a")).stdout).toMatch(/foo-0 +default +\d+ +the default subset\n/);
    writeFileSync(join(wrapped, "ports"), `foo-0 ${portOf("foo-0")}\n`);
    const { code, stdout } = await owner("team-a");
    expect(code).toBe(0);
    expect(stdout).toMatch(/foo-canary-0 +- +- +not asked: error: unable to forward port/);
  });

  itWithProgram("kubectl", "shows who owns each place from the slices that the manager has published", async () => {
    await eventually(async () => {
      const { code, stdout } = await run("owners", ...NAMED, "-o", "wide");
      expect(code).toBe(0);
      expect(stdout).toMatch(/^foo-system\/foo-operator +canary-eu +v2 +Owned +\d+[ms]\S* +all +foo-operator-0$/m);
      expect(stdout).toMatch(/ team-a +default +Owned .*\n.* \(cluster scope\) +default +Owned /);
    });
  });

  itWithProgram("kubectl", "finds no difference between a sidecar and what is published, once nothing moves", async () => {
    forwardingKubectl(wrapped, pods);
    const env = { PATH: `${wrapped}:${process.env.PATH}` };
    for (const { name } of pods) {
      await eventually(async () => {
        const { code, stdout } = await ctrlmesh(kube.kubeconfig, ["diff", name, "-n", APP.namespace], env);
        expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringMatching(/nothing differs in \d+ places/) });
      });
    }
  });

  itWithProgram("kubectl", "explains a request as the sidecar then answers it", async () => {
    forwardingKubectl(wrapped, pods);
    const env = { PATH: `${wrapped}:${process.env.PATH}` };
    const explain = (...args: string[]) =>
      ctrlmesh(kube.kubeconfig, ["explain", "request", "foo-0", ...args, "-n", APP.namespace], env);
    const asOperator = (...args: string[]) => kubectl(pods[0]?.adminKubeconfig ?? "", args);
    const refused = await explain("delete", "configmaps/web", "--in", "canary-eu");
    expect(refused.code).toBe(2);
    expect(refused.stdout).toMatch(
      /^pod foo-0 \(subset default, route \d+\): DELETE \/api\/v1\/namespaces\/canary-eu\/configmaps\/web\n {2}refused with 403 \(other-subset\): ctrlmesh: /,
    );
    const [, text = ""] = /refused with 403 \(other-subset\): (.*)\n/.exec(refused.stdout) ?? [];
    expect((await asOperator("delete", "configmap", "web", "-n", "canary-eu")).stderr).toContain(text);
    expect(await explain("delete", "cm/web", "--in", "team-a")).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("  forwarded:"),
    });
    expect(await explain("list", "deploy.apps")).toMatchObject({ code: 0, stdout: expect.stringContaining("  narrowed:") });
    const lock = await explain("get", `leases.coordination.k8s.io/${APP.name}`, "--in", APP.namespace, "-o", "json");
    expect(JSON.parse(lock.stdout)).toMatchObject({ kind: "RequestExplanation", decision: "forwarded" });
    expect((await explain("get", "/healthz")).stdout).toContain("GET /healthz");
  });

  itWithProgram("kubectl", "says which part of the request is wrong", async () => {
    const env = { PATH: `${wrapped}:${process.env.PATH}` };
    const explain = (...args: string[]) =>
      ctrlmesh(kube.kubeconfig, ["explain", "request", "foo-0", ...args, "-n", APP.namespace], env);
    expect(await explain("remove", "configmaps")).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("verb: must be one of get, list"),
    });
    expect((await explain("get", "configmaps")).stderr).toContain("name: must be set: get is about one object");
    expect((await explain("get", "deployments/web")).stderr).toContain("there is no resource deployments of the core group");
    expect((await explain("get", "widgets.example.com/web")).stderr).toContain("the API server has no group example.com");
    expect(await explain("get", "nodes/a", "--in", "team-a")).toMatchObject({ code: 64 });
    expect((await ctrlmesh(kube.kubeconfig, ["explain", "request", "gone-0", "list", "pods"], env)).code).toBe(1);
  });

  itWithProgram("kubectl", "plans the moves that then follow", async () => {
    const file = join(wrapped, "edit.yaml");
    const ownedByV2 = async () => {
      const { subsets = [] } = (await mesh.client.get(VIRTUAL_APPS, APP)).status ?? {};
      return subsets.find(({ name }) => name === "v2")?.namespaces;
    };
    const before = await ownedByV2();
    const edit = demoVirtualApp().replace("^canary", "^(canary|team-a)");
    writeFileSync(file, edit);
    const planned = await run("plan", "-f", file);
    expect(planned).toMatchObject({
      code: 2,
      stdout: expect.stringMatching(/ 1 of \d+ namespaces moves\n {2}default -> v2 {2}1 {2}team-a\n/),
    });
    const limit = (maxMovingPercent: number | null) =>
      mesh.client.patch(VIRTUAL_APPS, APP, { type: "merge", body: { spec: { route: { maxMovingPercent } } } });
    await limit(1);
    const limited = await run("plan", "-f", file);
    expect(limited.stdout).toContain("is above spec.route.maxMovingPercent (1): nothing moves until");
    expect(limited.stderr).not.toContain("as the file has it");
    expect((await run("plan", "-f", file, "--as", "nobody")).code).toBe(1);
    await limit(null);
    await mesh.apply(edit);
    expect((await run("wait", ...NAMED, "--timeout", "30s")).code).toBe(0);
    expect(await ownedByV2()).toBe((before ?? 0) + 1);
    expect(await run("plan", "-f", file)).toMatchObject({ code: 0, stdout: expect.stringContaining("nothing moves") });
    await mesh.apply(demoVirtualApp());
    expect((await run("wait", ...NAMED, "--timeout", "30s")).code).toBe(0);
  });

  itWithProgram("kubectl", "checks the mesh, and finds what somebody has broken or left on", async () => {
    const findings = async (...args: string[]) => {
      const { stdout, code } = await run("check", "-o", "json", ...args);
      return { code, found: (JSON.parse(stdout).findings as { check: string; object?: string }[]).map((each) => each.check) };
    };
    // The managers of this test are processes without pods, and serve no webhooks.
    const { code, found } = await findings();
    expect({ code, found: [...new Set(found)].sort() }).toEqual({ code: 2, found: ["replicas", "webhooks"] });
    forwardingKubectl(wrapped, pods);
    const asked = await ctrlmesh(kube.kubeconfig, ["check", "--sidecars"], { PATH: `${wrapped}:${process.env.PATH}` });
    expect(asked.stdout).toMatch(/^ok {7}certificates: the sidecars that were asked, 20 at most, renew their certificates$/m);
    expect(asked.stdout).toMatch(/^ok {7}slices: /m);
    expect((await run("pause", ...NAMED)).code).toBe(0);
    expect((await findings("--app", APP.name, "-n", APP.namespace)).found).toContain("left-on");
    expect((await run("resume", ...NAMED)).code).toBe(0);
    const asNobody = await findings("--as", "nobody");
    expect(asNobody.found).toContain("leader");
    const pre = await run("check", "--pre");
    expect(pre.stdout).toMatch(/^ok {7}kubernetes: .*\nok {7}rights: .*\n/);
    expect((await run("check", "--pre", "--as", "nobody")).stdout).toContain(
      "you may not create clusterroles.rbac.authorization.k8s.io",
    );
  });

  itWithProgram("kubectl", "asks the API server which pod it would create, and creates none", async () => {
    const { namespace } = APP;
    await mesh.apply(JSON.stringify({ apiVersion: "v1", kind: "ServiceAccount", metadata: { namespace, name: "default" } }));
    const file = join(wrapped, "workload.yaml");
    const template = { metadata: { labels: { app: "web" } }, spec: { containers: [{ name: "web", image: "web:1" }] } };
    const workload = { apiVersion: "apps/v1", kind: "Deployment", metadata: { namespace, name: "web" }, spec: { template } };
    writeFileSync(file, JSON.stringify(workload));
    const inject = (...args: string[]) => run("inject", "-f", file, ...args);
    // No webhook of this test's managers is called.
    const answer = { code: 0, stdout: "# Deployment foo-system/web: no sidecar; why is said by: ctrlmesh explain inject POD\n" };
    expect(await inject()).toMatchObject(answer);
    expect(await ctrlmesh(kube.kubeconfig, ["inject", "-f", file], { PATH: "/nonexistent" })).toMatchObject(answer);
    expect(await inject("--as", "nobody")).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('cannot create resource "pods"'),
    });
    const { stdout } = await kubectl(kube.kubeconfig, ["get", "pods", "-n", namespace, "-o", "name"]);
    expect(stdout).not.toContain("web");
  });

  itWithProgram("kubectl", "removes the labels of a family from its objects and from namespaces, and no others", async () => {
    const [key, hash] = ["ctrlmesh.kusionstack.io/namespace", "ctrlmesh.kusionstack.io/shard-hash"];
    const relateResources = [{ apiGroups: [""], resources: ["configmaps"] }];
    const spec = {
      selector: { matchLabels: { shard: "east" } },
      controller: { leaderElectionName: "labelled" },
      limits: [{ relateResources, selector: { matchLabels: { [key]: "team-a" } } }],
    };
    const metadata = { namespace: APP.namespace, name: "labelled" };
    const labels = { [key]: "team-a", [hash]: "3", mine: "kept" };
    const config = { apiVersion: "ctrlmesh.kusionstack.io/v1alpha1", kind: "ShardingConfig", metadata, spec };
    const configMap = { apiVersion: "v1", kind: "ConfigMap", metadata: { namespace: "team-a", name: "old", labels } };
    const namespace = { apiVersion: "v1", kind: "Namespace", metadata: { name: "team-a", labels } };
    for (const object of [config, configMap, namespace]) await mesh.apply(JSON.stringify(object));
    const asNobody = await run("labels", "remove", "labelled", "-n", APP.namespace, "--as", "nobody");
    expect(asNobody).toMatchObject({ code: 1, stderr: expect.stringContaining("cannot list resource") });
    expect(await run("labels", "remove", "labelled", "-n", APP.namespace)).toMatchObject({
      code: 0,
      stdout: "namespaces: removed from 1 object\nconfigmaps: removed from 1 object\n",
    });
    const left = async (type: string, name: string) =>
      JSON.parse((await kubectl(kube.kubeconfig, ["get", type, name, "-n", "team-a", "-o", "json"])).stdout).metadata.labels;
    expect(await left("configmap", "old")).toEqual({ mine: "kept" });
    expect(Object.keys(await left("namespace", "team-a"))).not.toContain(key);
    await mesh.client.delete(SHARDING_CONFIGS, metadata);
  });

  itWithProgram("kubectl", "names the right that is missing", async () => {
    const { code, stdout, stderr } = await run("status", "-A", "--as", "nobody");
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toContain('User "nobody" cannot list resource "');
  });

  itWithProgram("kubectl", "says that the API server does not accept a token for another audience", async () => {
    const create = ["create", "token", APP.name, "-n", APP.namespace, "--audience", "other"];
    const { stdout: token } = await kubectl(kube.kubeconfig, create);
    const config = JSON.parse((await kubectl(kube.kubeconfig, ["config", "view", "--raw", "--flatten", "-o", "json"])).stdout);
    for (const one of config.users) one.user = { token: token.trim() };
    const file = join(wrapped, "other-audience");
    writeFileSync(file, JSON.stringify(config));
    const bare = { PATH: "/nonexistent" };
    const calls = [
      [["pause", ...NAMED], {}],
      [["check"], {}],
      [["status", "-A"], bare],
    ] as const;
    for (const [args, env] of calls) {
      const { ms, ...said } = await ctrlmesh(file, args, env);
      const stderr = expect.stringMatching(/^ctrlmesh: the API server does not accept the user's credentials .*\n$/);
      expect({ args, env, ...said }).toEqual({ args, env, code: 1, stdout: "", stderr });
      expect(ms).toBeLessThan(ANSWER_MS);
    }
  });

  it("says the same by its own client, where there is no kubectl", async () => {
    const bare = { PATH: "/nonexistent" };
    const { code, stdout, stderr } = await ctrlmesh(kube.kubeconfig, ["status", "-A", "-o", "json"], bare);
    expect([code, stderr]).toEqual([0, ""]);
    expect(JSON.parse(stdout).items).toMatchObject([{ kind: "VirtualApp", ...APP }]);
    expect((await ctrlmesh(kube.kubeconfig, ["status", "-A", "--as", "nobody"], bare)).stderr).toContain("--as needs kubectl");
  });

  describe("while the leading manager is dead", () => {
    const inTime = async (...args: string[]) => {
      const { ms, ...ended } = await run(...args);
      expect({ args, ms }).toEqual({ args, ms: expect.toSatisfy((each) => each < ANSWER_MS) });
      return ended;
    };
    const killLeader = async () => {
      const { spec } = await mesh.client.get(LEASES, { namespace: "ctrlmesh-system", name: "ctrlmesh-manager" });
      const leader = mesh.managers.findIndex((_, at) => spec?.holderIdentity?.startsWith(`ctrlmesh-manager-${at}_`));
      await mesh.managers[leader]?.kill();
    };
    const edited = (rule: string) => mesh.apply(demoVirtualApp().replace("^canary", rule));

    itWithProgram("kubectl", "answers at once, and waits until the other manager has done the last edit", async () => {
      await killLeader();
      await edited("^(canary|team-b)");
      const [status, owners] = await Promise.all([inTime("status", ...NAMED), inTime("owners", ...NAMED)]);
      expect(status).toMatchObject({
        code: 0,
        stdout: expect.stringMatching(/^VirtualApp foo-system\/foo-operator: (not known yet for the last edit|ready) /),
      });
      expect(owners).toMatchObject({ code: 0, stdout: expect.stringMatching(/ canary-eu +v2 +Owned /) });
      expect(await run("wait", ...NAMED, "--timeout", "30s")).toMatchObject({ code: 0 });
    });

    itWithProgram("kubectl", "names it if there is no other manager, once its Lease has ended", async () => {
      await killLeader();
      await edited("^canary");
      const pausing = inTime("pause", ...NAMED);
      // A busy API server may not answer within the second.
      await eventually(async () => {
        expect(await inTime("wait", ...NAMED, "--timeout", "1s")).toMatchObject({
          code: 4,
          stdout: expect.stringContaining("whether a manager leads is said by: ctrlmesh check\n"),
        });
      });
      expect((await pausing).code).toBe(0);
      await eventually(async () => {
        const { code, stdout } = await inTime("check");
        expect({ code, stdout }).toEqual({
          code: 2,
          stdout: expect.stringMatching(/: the leader ctrlmesh-manager-\d\S* has not renewed its Lease for \d+s\n/),
        });
      });
    });
  });
});

describe("ctrlmesh and a server that accepts a connection and says nothing", () => {
  let silent: Server;
  let dir: string;

  beforeAll(async () => {
    silent = createServer();
    await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
    dir = mkdtempSync(join(tmpdir(), "ctrlmesh-cli-"));
    const { port } = silent.address() as { port: number };
    const cluster = { name: "c", cluster: { server: `http://127.0.0.1:${port}` } };
    const content = {
      clusters: [cluster],
      contexts: [{ name: "c", context: { cluster: "c", user: "u" } }],
      users: [{ name: "u", user: {} }],
    };
    writeFileSync(join(dir, "config"), JSON.stringify({ apiVersion: "v1", kind: "Config", "current-context": "c", ...content }));
  });
  afterAll(() => {
    silent.close();
    rmSync(dir, { recursive: true, force: true });
  });

  itWithProgram("kubectl", "ends in time, and says what to do", async () => {
    const { code, stderr, ms } = await ctrlmesh(join(dir, "config"), ["status", "-A", "--request-timeout", "1s"]);
    expect(code).toBe(1);
    expect(stderr).toContain("has not answered within 1 s; check it with: kubectl get --raw /readyz");
    expect(ms).toBeLessThan(8_000);
  });
});
