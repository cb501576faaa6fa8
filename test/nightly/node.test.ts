// The cluster that the install tests use: the real control plane, and a test node that runs pods as processes in network namespaces.
// The tests check the pods' environment, and the real controllers' reactions to the status that the node writes.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { createCa, issueServerCertificate } from "../../src/base/certificates.ts";
import { startTestCluster, type TestCluster } from "../node/cluster.ts";
import { pod, service, workload } from "../node/manifests.ts";
import type { ContainerStatus, NodePod } from "../node/pod-types.ts";
import { remainsOf } from "../node/remains.ts";
import { nodeImage, SHELL_IMAGE } from "../node/test-image.ts";
import { startChild } from "../support/child-process.ts";
import { eventually } from "../support/eventually.ts";
import { kubectl, tryKubectl } from "../support/kubectl.ts";
import { describeWithTestNode } from "../support/requirements.ts";

const PROGRAMS = fileURLToPath(new URL("../node/programs", import.meta.url));
const WEB = nodeImage(["/app/web.ts"], { "/app": PROGRAMS });
const READY = { httpGet: { port: 8080, path: "/ready" }, periodSeconds: 1 };
const WEB_MAIN = { name: "main", image: "web:1", readinessProbe: READY };

describeWithTestNode("a cluster with a node that runs pods", () => {
  let cluster: TestCluster;
  beforeAll(async () => {
    const v = (version: string) => ({ ...WEB, env: { VERSION: version } });
    cluster = await startTestCluster({ nodes: 2, images: { "web:1": v("1"), "web:2": v("2"), "sh:1": SHELL_IMAGE } });
    await apply(pod("client", [WEB_MAIN]));
  });
  afterAll(async () => {
    await cluster?.stop();
  });

  const run = (...args: string[]) => kubectl(cluster.kube.kubeconfig, args);
  const apply = (...objects: object[]) =>
    kubectl(cluster.kube.kubeconfig, ["apply", "-f", "-"], JSON.stringify({ apiVersion: "v1", kind: "List", items: objects }));
  const get = async <T>(...args: string[]) => JSON.parse(await run("get", ...args, "-o", "json")) as T;
  const pods = async (label: string) => (await get<{ items: NodePod[] }>("pods", "-l", label)).items;
  const podNamed = (name: string) => get<NodePod>("pod", name);
  const isReady = ({ status }: NodePod): boolean =>
    status?.conditions?.some((each) => each.type === "Ready" && each.status === "True") ?? false;
  const readyPod = (name: string) =>
    eventually(async () => {
      const found = await podNamed(name);
      return isReady(found) && found;
    }, 20_000);
  const eventsOf = async (name: string) =>
    (await get<{ items: { reason: string; message: string }[] }>("events", "--field-selector", `involvedObject.name=${name}`))
      .items;
  const inClient = async (script: string) => {
    await readyPod("client");
    return cluster.exec("default", "client", "main", ["node", "--input-type=module", "-e", script]);
  };
  const container = (of: NodePod, name: string): ContainerStatus | undefined =>
    [...(of.status?.containerStatuses ?? []), ...(of.status?.initContainerStatuses ?? [])].find((each) => each.name === name);

  it("rolls a Deployment, and new pods get traffic only once they are ready", { timeout: 60_000 }, async () => {
    const deployment = (image: string, ...env: object[]) =>
      workload(
        "Deployment",
        "web",
        2,
        { containers: [{ name: "web", image, env, readinessProbe: READY }] },
        {
          strategy: { rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } },
        },
      );
    await apply(deployment("web:1"), service("web", "web"));
    await run("rollout", "status", "deployment/web", "--timeout=30s");

    await apply(deployment("web:2", { name: "READY_FILE", value: "/tmp/ready" }));
    const [surge] = await eventually(async () => {
      const found = (await pods("app=web")).filter(({ spec }) => spec.containers[0]?.image === "web:2");
      return found.some((each) => each.status?.phase === "Running") && found;
    });
    const fetched = await inClient(
      `for (let i = 0; i < 10; i++) console.log((await (await fetch(["http://web", "http://web.default.svc:80"][i % 2], { headers: { connection: "close" } })).json()).version)`,
    );
    expect(fetched.output.trim().split("\n")).toEqual(new Array(10).fill("1"));
    const old = (await pods("app=web")).filter(({ spec }) => spec.containers[0]?.image === "web:1");
    const why = "Readiness probe failed: HTTP probe failed with statuscode: 503";
    await eventually(async () => (await eventsOf(surge?.metadata.name ?? "")).some(({ message }) => message === why));
    expect([surge && isReady(surge), old.length, old.every(isReady)]).toEqual([false, 2, true]);

    await eventually(async () => {
      for (const { metadata, status } of await pods("app=web")) {
        const isNew = status?.containerStatuses?.[0]?.image === "web:2" && status.phase === "Running";
        if (isNew) await cluster.exec("default", metadata.name ?? "", "web", ["touch", "/tmp/ready"]).catch(() => {});
      }
      return (
        (await run(
          "get",
          "deployment",
          "web",
          "-o",
          "jsonpath={.status.updatedReplicas} {.status.readyReplicas} {.status.replicas}",
        )) === "2 2 2"
      );
    }, 30_000);
    const after = await inClient(`console.log((await (await fetch("http://web")).json()).version)`);
    expect(after.output.trim()).toBe("2");
  });

  it("rolls a StatefulSet in order over two nodes, and its pods are found by name", { timeout: 60_000 }, async () => {
    const apart = { topologyKey: "kubernetes.io/hostname", labelSelector: { matchLabels: { app: "db" } } };
    const affinity = { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [apart] } };
    const set = (image: string) => {
      const containers = [{ name: "web", image, readinessProbe: READY }];
      return workload("StatefulSet", "db", 2, { containers, affinity }, { serviceName: "db" });
    };
    await apply(set("web:1"), { ...service("db", "db"), spec: { ...service("db", "db").spec, clusterIP: "None" } });
    await run("rollout", "status", "statefulset/db", "--timeout=30s");
    const found = await inClient(
      `console.log((await (await fetch("http://db-1.db.default.svc.cluster.local:8080")).json()).version)`,
    );
    expect(found.output.trim()).toBe("1");
    await apply(set("web:2"));
    await run("rollout", "status", "statefulset/db", "--timeout=30s");
    const rolled = await pods("app=db");
    expect(rolled.map(({ metadata, spec }) => [metadata.name, spec.containers[0]?.image])).toEqual([
      ["db-0", "web:2"],
      ["db-1", "web:2"],
    ]);
    expect(rolled.map(({ spec }) => spec.nodeName).sort()).toEqual(["node-1", "node-2"]);
    const started = rolled.map(({ status }) => Date.parse(status?.startTime ?? ""));
    expect(started[0]).toBeGreaterThanOrEqual(started[1] ?? 0);
  });

  it("starts sidecars in order before the containers, and ends them in reverse order after the containers", async () => {
    const stamp = (name: string) => `stamp() { echo "$(date +%s%3N) ${name} $1"; }`;
    const loop = "while :; do sleep 0.05; done";
    const volumeMounts = [{ name: "shared", mountPath: "/shared" }];
    const sidecar = (name: string, seconds: string) => ({
      ...script(name, `${stamp(name)}; trap 'stamp end; exit 0' TERM; sleep ${seconds}; stamp up; touch /tmp/up; ${loop}`),
      restartPolicy: "Always",
      startupProbe: { exec: { command: ["test", "-e", "/tmp/up"] }, periodSeconds: 1, failureThreshold: 30 },
      lifecycle: { preStop: { exec: { command: ["touch", `/shared/${name}`] } } },
      volumeMounts,
    });
    // The preStop hooks of sidecars run at once, before the sidecars end. This container waits for the hooks.
    const hooks = "while [ ! -e /shared/first ] || [ ! -e /shared/second ]; do sleep 0.05; done";
    const app = script("app", `${stamp("app")}; trap '${hooks}; stamp end; exit 0' TERM; stamp up; ${loop}`, { volumeMounts });
    const init = script("init", `${stamp("init")}; stamp up`);
    const initContainers = [sidecar("first", "0.4"), init, sidecar("second", "0.2")];
    await apply(pod("ordered", [app], { initContainers, volumes: [{ name: "shared", emptyDir: {} }] }));
    await readyPod("ordered");
    await run("delete", "pod", "ordered", "--grace-period=10");
    const lines = ["first", "init", "second", "app"].flatMap((name) =>
      cluster.logs("default", "ordered", name).trim().split("\n"),
    );
    expect(lines.sort().map((line) => line.replace(/^\d+ /, ""))).toEqual([
      "first up",
      "init up",
      "second up",
      "app up",
      "app end",
      "second end",
      "first end",
    ]);
  });

  it("ends the sidecars of a pod after all its containers have completed", async () => {
    const sidecar = { ...script("side", "trap 'exit 0' TERM; while :; do sleep 0.05; done"), restartPolicy: "Always" };
    await apply(pod("job", [script("main", "exit 0")], { initContainers: [sidecar], restartPolicy: "Never" }));
    const done = await eventually(async () => {
      const found = await podNamed("job");
      return found.status?.phase === "Succeeded" && container(found, "side")?.state.terminated !== undefined && found;
    });
    expect(container(done, "main")?.state.terminated).toMatchObject({ exitCode: 0, reason: "Completed" });
  });

  it("restarts a container after a failed liveness probe, a kill or a failure, and records events", async () => {
    const livenessProbe = { httpGet: { port: 8080 }, periodSeconds: 1, failureThreshold: 1 };
    await apply(
      pod(
        "broken",
        [
          { ...WEB_MAIN, livenessProbe },
          script("other", "[ -e /d/x ] || { touch /d/x; exit 3; }; exec sleep 1000", {
            volumeMounts: [{ name: "d", mountPath: "/d" }],
          }),
        ],
        {
          volumes: [{ name: "d", emptyDir: { medium: "Memory", sizeLimit: "1Mi" } }],
        },
      ),
    );
    const first = await eventually(async () => {
      const found = await podNamed("broken");
      return container(found, "other")?.restartCount === 1 && isReady(found) && found;
    });
    expect(container(first, "other")?.lastState.terminated?.exitCode).toBe(3);
    await cluster.exec("default", "broken", "main", ["touch", "/tmp/broken"]);
    const second = await eventually(async () => {
      const found = await podNamed("broken");
      return container(found, "main")?.restartCount === 1 && isReady(found) && found;
    }, 15_000);
    expect(container(second, "main")?.lastState.terminated?.exitCode).toBe(0);
    await cluster.kill("default", "broken", "main");
    await eventually(async () => container(await podNamed("broken"), "main")?.lastState.terminated?.exitCode === 137);
    expect((await eventsOf("broken")).map(({ reason }) => reason)).toEqual(
      expect.arrayContaining(["Unhealthy", "BackOff", "Killing"]),
    );
  });

  it("gives a pod a token that is bound to the pod and that TokenReview accepts only for its audience", async () => {
    const sources = [{ serviceAccountToken: { audience: "ctrlmesh", expirationSeconds: 3600, path: "token" } }];
    const mount = { name: "identity", mountPath: "/var/run/identity" };
    await apply(
      pod("token", [{ ...WEB_MAIN, volumeMounts: [mount] }], {
        volumes: [{ name: "identity", projected: { sources } }],
      }),
    );
    const { metadata } = await readyPod("token");
    const { output } = await cluster.exec("default", "token", "main", ["cat", "/var/run/identity/token"]);
    const review = async (audience: string) => {
      const spec = { token: output, audiences: [audience] };
      const review = JSON.stringify({ apiVersion: "authentication.k8s.io/v1", kind: "TokenReview", spec });
      const answer = await kubectl(cluster.kube.kubeconfig, ["create", "-o", "json", "-f", "-"], review);
      return (JSON.parse(answer) as { status: { authenticated?: boolean; user?: { extra?: Record<string, string[]> } } }).status;
    };
    const { authenticated, user } = await review("ctrlmesh");
    expect(authenticated).toBe(true);
    expect(user?.extra).toMatchObject({
      "authentication.kubernetes.io/pod-name": ["token"],
      "authentication.kubernetes.io/pod-uid": [metadata.uid],
    });
    expect((await review("another")).authenticated ?? false).toBe(false);
  });

  it("lets a pod call the API server by its Service with its own service account", async () => {
    const folder = "/var/run/secrets/kubernetes.io/serviceaccount";
    const { output } = await inClient(`
      import { readFileSync } from "node:fs";
      import { get } from "node:https";
      const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = process.env;
      const [ca, token] = ["ca.crt", "token"].map((name) => readFileSync("${folder}/" + name));
      for (const name of [host, "kubernetes.default.svc"])
        get({ host: name, port, path: "/api/v1/nodes", ca, headers: { authorization: "Bearer " + token } }, (answer) => {
          answer.on("data", (data) => console.log(JSON.parse(data).message.slice(0, 70)));
        });
    `);
    const refused = 'nodes is forbidden: User "system:serviceaccount:default:default" canno';
    expect(output.trim().split("\n")).toEqual([refused, refused]);
  });

  it("waits for a missing ConfigMap with an event, and updates all files of a changed ConfigMap at once", async () => {
    const map = (a: string) => ({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "late" }, data: { a, b: a } });
    const env = [
      { name: "A", valueFrom: { configMapKeyRef: { name: "late", key: "a" } } },
      { name: "NAME", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } },
      { name: "BOTH", value: "$(A) $(NAME) $$(A)" },
    ];
    const main = { ...WEB_MAIN, env, volumeMounts: [{ name: "v", mountPath: "/config" }] };
    await apply(pod("late", [main], { volumes: [{ name: "v", configMap: { name: "late" } }] }));
    await eventually(async () =>
      (await eventsOf("late")).some(
        (each) => each.reason === "FailedMount" && each.message.includes('configmap "late" not found'),
      ),
    );
    expect(container(await podNamed("late"), "main")?.state.waiting?.reason).toBe("ContainerCreating");
    await apply(map("1"));
    await readyPod("late");
    const read = async () =>
      (await cluster.exec("default", "late", "main", ["sh", "-c", 'cat /config/a /config/b; echo " $BOTH"'])).output.trim();
    expect(await read()).toBe("11 1 late $(A)");
    await apply(map("2"));
    await eventually(async () => (await read()) === "22 1 late $(A)");
  });

  it("applies the security context of a container", async () => {
    const securityContext = {
      runAsNonRoot: true,
      runAsUser: 1359,
      readOnlyRootFilesystem: true,
      allowPrivilegeEscalation: false,
      capabilities: { drop: ["ALL"] },
    };
    const net = script("net", "iptables -t nat -A OUTPUT -p tcp --dport 81 -j REDIRECT --to-ports 8080", {
      securityContext: { capabilities: { drop: ["ALL"], add: ["NET_ADMIN"] } },
    });
    const volumeMounts = [{ name: "d", mountPath: "/data" }];
    const main = { ...WEB_MAIN, securityContext, volumeMounts, readinessProbe: READY };
    await apply(pod("confined", [main], { initContainers: [net], volumes: [{ name: "d", emptyDir: {} }] }));
    await readyPod("confined");
    const { output } = await cluster.exec("default", "confined", "main", [
      "sh",
      "-c",
      "id -u; grep -E 'CapBnd|NoNewPrivs' /proc/self/status | cut -f2; touch /x /tmp/x /data/x; ls /data",
    ]);
    expect(output.trim().split("\n")).toEqual([
      "1359",
      "0000000000000000",
      "1",
      "x",
      "touch: cannot touch '/x': Read-only file system",
      "touch: cannot touch '/tmp/x': Read-only file system",
    ]);
    const redirected = await cluster.exec("default", "confined", "main", [
      "node",
      "-e",
      "fetch('http://10.200.0.1:81').then(({ status }) => console.log(status))",
    ]);
    expect(redirected.output.trim()).toBe("200");
  });

  it("refuses root if the pod forbids it, and an unknown image", async () => {
    await apply(
      pod("root", [{ ...script("main", "true"), securityContext: { runAsNonRoot: true } }]),
      pod("unknown", [{ name: "main", image: "nobody/knows:1" }]),
    );
    const reason = async (name: string) => container(await podNamed(name), "main")?.state.waiting?.reason;
    await eventually(async () => (await reason("root")) === "CreateContainerConfigError");
    await eventually(async () => (await reason("unknown")) === "ErrImagePull");
  });

  it("evicts a pod only if its disruption budget allows it, and the evicted pod ends cleanly", async () => {
    const budget = { apiVersion: "policy/v1", kind: "PodDisruptionBudget", metadata: { name: "kept" } };
    const spec = { minAvailable: 1, selector: { matchLabels: { app: "kept" } } };
    await apply({ ...budget, spec }, pod("kept", [WEB_MAIN]));
    await readyPod("kept");
    const evict = () => {
      const eviction = { apiVersion: "policy/v1", kind: "Eviction", metadata: { name: "kept", namespace: "default" } };
      return tryKubectl(
        cluster.kube.kubeconfig,
        ["create", "--raw", "/api/v1/namespaces/default/pods/kept/eviction", "-f", "-"],
        JSON.stringify(eviction),
      );
    };
    await eventually(async () => (await evict()).stderr.includes("disruption budget"));
    await run("delete", "pdb", "kept");
    expect((await evict()).code).toBe(0);
    await eventually(async () => (await tryKubectl(cluster.kube.kubeconfig, ["get", "pod", "kept"])).stderr.includes("NotFound"));
    expect(cluster.logs("default", "kept", "main")).toContain("SIGTERM");
  });

  it("serves a mutating webhook from a pod, which the API server calls by its Service", { timeout: 60_000 }, async () => {
    const now = Date.now();
    const ca = createCa({ commonName: "hook", now });
    const { certPem, keyPem } = issueServerCertificate(ca, { dnsNames: ["hook.default.svc"], now });
    const base64 = (text: string) => Buffer.from(text).toString("base64");
    const env = [
      { name: "CERTIFICATES", value: "/certs" },
      { name: "PORT", value: "443" },
    ];
    const readinessProbe = { httpGet: { port: 443, scheme: "HTTPS" }, periodSeconds: 1 };
    const main = { ...WEB_MAIN, env, readinessProbe, volumeMounts: [{ name: "certs", mountPath: "/certs" }] };
    const secret = { apiVersion: "v1", kind: "Secret", metadata: { name: "certs" } };
    await apply(
      { ...secret, data: { "tls.crt": base64(certPem), "tls.key": base64(keyPem) } },
      pod("hook", [main], { volumes: [{ name: "certs", secret: { secretName: "certs" } }] }),
      service("hook", "hook", 443, 443),
    );
    await readyPod("hook");
    await apply({
      apiVersion: "admissionregistration.k8s.io/v1",
      kind: "MutatingWebhookConfiguration",
      metadata: { name: "hook" },
      webhooks: [
        {
          ...{
            name: "hook.example.com",
            sideEffects: "None",
            admissionReviewVersions: ["v1"],
            timeoutSeconds: 5,
            failurePolicy: "Fail",
          },
          clientConfig: { service: { namespace: "default", name: "hook", path: "/mutate" }, caBundle: base64(ca.certPem) },
          rules: [{ apiGroups: [""], apiVersions: ["v1"], resources: ["configmaps"], operations: ["CREATE"] }],
        },
      ],
    });
    try {
      await eventually(async () => {
        await run("delete", "configmap", "hooked", "--ignore-not-found");
        await run("create", "configmap", "hooked");
        return (await run("get", "configmap", "hooked", "-o", "jsonpath={.metadata.labels.seen}")) === "yes";
      });
    } finally {
      await run("delete", "mutatingwebhookconfiguration", "hook");
    }
  });

  it("serves logs to kubectl", async () => {
    await readyPod("client");
    await eventually(async () => (await run("logs", "client", "--tail=1")).endsWith("up 1\n"));
  });

  it("forwards a port of a pod to the test", async () => {
    await readyPod("client");
    const address = await cluster.forward("default", "client", 8080);
    expect(await (await fetch(`http://${address}`)).json()).toEqual({
      version: "1",
      from: expect.stringContaining(cluster.nodeAddress),
    });
  });

  it("restarts and starts pods after an outage of the API server", async () => {
    await cluster.kube.crash();
    await cluster.kill("default", "client", "main");
    await cluster.kube.restart();
    await eventually(async () => container(await podNamed("client"), "main")?.restartCount === 1, 30_000);
    await apply(pod("later", [WEB_MAIN]));
    await readyPod("later");
  });

  it("leaves no process or network behind when the node's agent is killed", async () => {
    const { pid = 0 } = (await cluster.processesOf("default", "client"))[0] ?? {};
    const remains = remainsOf(cluster.nodePid, pid);
    const without = (lines: readonly string[]) => lines.filter((line) => !line.startsWith(`${cluster.kube.pid}:`));
    expect(without(remains()).length).toBeGreaterThan(2);
    process.kill(cluster.nodePid, "SIGKILL");
    await eventually(() => expect(without(remains())).toEqual([]));
  });

  it("leaves no process or network behind when the test is killed", async () => {
    const args = [`${PROGRAMS}/doomed-test.ts`];
    const folder = mkdtempSync(join(tmpdir(), "ctrlmesh-doomed-")); // the killed test cannot remove its logs and data
    const env = { TMPDIR: folder };
    const child = await startChild({ name: "doomed", command: process.execPath, args, env, readyMs: 60_000 });
    const { kube, node, container: pid } = child.ready as Record<string, number>;
    const remains = remainsOf(kube, node, pid);
    // At least: the control plane, the agent, the container's shell with its two children, and the shell that waits for them.
    await eventually(() => remains().length >= 6).finally(() => child.kill("SIGKILL"));
    await eventually(() => expect(remains()).toEqual([]));
    rmSync(folder, { recursive: true });
  });
});

function script(name: string, text: string, more: object = {}): { readonly name: string } {
  return { name, image: "sh:1", args: [text], ...more } as { readonly name: string };
}
