// Cases that the golden files (test/golden/injection) do not cover: injected pods that other webhooks have
// changed, and pods that imitate injected ones.
import { describe, expect, it } from "vitest";
import { applyPatch, SETTINGS } from "../../../test/support/injection.ts";
import { sampleShardingRoot } from "../../../test/support/sharding-config.ts";
import { appOf } from "../../../test/support/source-apps.ts";
import { threadCpuMs } from "../../../test/support/thread-cpu.ts";
import { INJECTED_LABEL } from "../../api/injected-pod.ts";
import type { ShardingConfig } from "../../api/sharding-config.ts";
import { SHARD_INJECTED } from "../../api/sharding-keys.ts";
import { createShardingSource } from "../sharding/sharding-source.ts";
import { injectPod } from "./inject-pod.ts";
import { hasNativeSidecars, type InjectionSettings } from "./injection.ts";
import type { PodManifest } from "./pod-manifest.ts";

const ACCOUNT = { name: "access", mountPath: "/var/run/secrets/kubernetes.io/serviceaccount" };
const APP = { metadata: { name: "shop" }, spec: { selector: { matchLabels: { app: "shop" } } } };

const NAME_TAKEN = {
  kind: "refused",
  message: expect.stringContaining("container ctrlmesh-proxy has a name of the mesh and differs from what the mesh adds"),
};

const operatorPod = (): PodManifest => ({
  metadata: { name: "shop-0", labels: { app: "shop" } },
  spec: {
    containers: [{ name: "manager", volumeMounts: [ACCOUNT] }],
    volumes: [{ name: "access", projected: { sources: [{ serviceAccountToken: { path: "token" } }] } }],
  },
});

function inject(pod: unknown, settings: Partial<InjectionSettings> = {}, apps = [APP]) {
  return injectPod({ pod, namespace: "ops", apps: apps.map(appOf), settings: { ...SETTINGS, ...settings } });
}

function injected(pod: unknown, settings: Partial<InjectionSettings> = {}): PodManifest {
  const injection = inject(pod, settings);
  if (injection.kind !== "changed") throw new Error(JSON.stringify(injection));
  expect(applyPatch(pod, injection.patch)).toEqual(injection.pod);
  return injection.pod;
}

const proxyOf = ({ spec }: PodManifest) => spec.initContainers?.find(({ name }) => name === "ctrlmesh-proxy");

describe("injecting a pod", () => {
  it("keeps all names of the pod for an address, also of two entries with the same address", () => {
    const { spec, ...rest } = operatorPod();
    const hostAliases = [
      { ip: "10.96.0.47", hostnames: ["a"] },
      { ip: "10.96.0.47", hostnames: ["b"] },
    ];
    const pod = { ...rest, spec: { ...spec, dnsPolicy: "None", hostAliases } };
    const manager = "ctrlmesh-manager.ctrlmesh-system.svc";
    expect(injected(pod).spec.hostAliases).toEqual([{ ip: "10.96.0.47", hostnames: [manager, "a", "b"] }]);
  });

  it("reads a path of a million slashes in linear time", () => {
    const pod = operatorPod();
    const containers = [{ name: "manager", volumeMounts: [ACCOUNT, { name: "x", mountPath: `${"/".repeat(1_000_000)}x` }] }];
    const startedMs = threadCpuMs();
    expect(inject({ ...pod, spec: { ...pod.spec, containers } }).kind).toBe("changed");
    expect(threadCpuMs() - startedMs).toBeLessThan(5_000); // quadratic time would be ten minutes
  });

  it("looks for what is meant by some of 50,000 unknown annotations only", () => {
    const pod = operatorPod();
    const unknown = Object.fromEntries(Array.from({ length: 50_000 }, (_, i) => [`ctrlmesh.kruise.io/proxy-${i}`, ""]));
    const startedMs = threadCpuMs();
    const { warnings } = inject({ ...pod, metadata: { ...pod.metadata, annotations: unknown } });
    expect(warnings.length).toBeLessThan(20);
    expect(threadCpuMs() - startedMs).toBeLessThan(1_000); // 1.3 s for all on a quiet machine, and more on a busy one
  });

  it("refuses a pod of more containers than a node runs, each of which would get variables and mounts", () => {
    const pod = operatorPod();
    const many = (count: number) => Array.from({ length: count }, (_, i) => ({ name: `init-${i}` }));
    const answer = (count: number) => inject({ ...pod, spec: { ...pod.spec, initContainers: many(count) } });
    expect(answer(999).kind).toBe("changed");
    expect(answer(1_000)).toMatchObject({
      kind: "refused",
      message: expect.stringContaining("have 1001 entries together, but at most 1000 are allowed"),
    });
  });

  it("names the shard in a label, instead of what the template says, and writes none for a pod of no shard", () => {
    const root = sampleShardingRoot() as unknown as ShardingConfig;
    const shardOf = (name: string, more: object = {}) => {
      const pod = operatorPod();
      const labels = { "statefulset.kubernetes.io/pod-name": name, ...more };
      const apps = createShardingSource().appsOf([root]);
      const answer = injectPod({ pod: { ...pod, metadata: { name, labels } }, namespace: "ops", apps, settings: SETTINGS });
      if (answer.kind !== "changed") throw new Error(JSON.stringify(answer));
      return answer.pod.metadata.labels?.[SHARD_INJECTED];
    };
    expect(shardOf("shop-operator-0")).toBe("shop-0-canary");
    expect(shardOf("shop-operator-1")).toBe("shop-1-normal");
    expect(shardOf("shop-operator-6", { [SHARD_INJECTED]: "shop-1-normal" })).toBe("shop-3-normal");
    expect(shardOf("shop-operator-7", { [SHARD_INJECTED]: "shop-1-normal" })).toBeUndefined();
    expect(injected(operatorPod()).metadata.labels).not.toHaveProperty([SHARD_INJECTED]);
  });

  it("does not trust the label of an injected pod", () => {
    const pod = operatorPod();
    const liar = { ...pod, metadata: { ...pod.metadata, labels: { app: "shop", [INJECTED_LABEL]: "shop" } } };
    expect(proxyOf(injected(liar))).toBeDefined();
  });

  it("does not trust a container with the proxy's name", () => {
    const pod = operatorPod();
    const liar = {
      ...pod,
      spec: { ...pod.spec, initContainers: [{ name: "ctrlmesh-proxy", image: "own", restartPolicy: "Always" }] },
    };
    expect(inject(liar)).toMatchObject(NAME_TAKEN);
  });

  it("restores the fields that the proxy needs, and keeps other changes of other webhooks", () => {
    const first = injected(operatorPod());
    const proxy = proxyOf(first);
    const changed = {
      ...proxy,
      name: "ctrlmesh-proxy",
      image: "mirror.example/proxy:1",
      imagePullPolicy: "Always",
      securityContext: { runAsUser: 0 },
      restartPolicy: undefined,
      env: [...(proxy?.env ?? []).filter(({ name }) => name !== "CTRLMESH_IDENTITY"), { name: "HTTPS_PROXY", value: "x" }],
    };
    const again = proxyOf(injected({ ...first, spec: { ...first.spec, initContainers: [changed] } }));
    expect(again).toMatchObject({ image: "mirror.example/proxy:1", imagePullPolicy: "Always", restartPolicy: "Always" });
    expect(again?.securityContext).toEqual(proxy?.securityContext);
    expect(again?.env).toEqual([...(proxy?.env ?? []), { name: "HTTPS_PROXY", value: "x" }]);
  });

  it("runs the image's own command in an existing container, without additions of other webhooks", () => {
    const first = injected(operatorPod());
    const proxy = proxyOf(first);
    const foreign = {
      ...proxy,
      name: "ctrlmesh-proxy",
      image: "old.example/proxy:0",
      command: ["sleep"],
      args: ["forever"],
      workingDir: "/tmp",
      envFrom: [{ configMapRef: { name: "settings" } }],
      env: [
        ...(proxy?.env ?? []),
        { name: "CTRLMESH_API_SERVER", value: "https://elsewhere" },
        { name: "CTRLMESH_DRAIN_MS", value: "1000" },
      ],
    };
    const pod = { ...first, spec: { ...first.spec, initContainers: [foreign] } };
    const again = proxyOf(injected(pod));
    expect(again).toEqual({
      ...proxy,
      image: "old.example/proxy:0",
      env: [...(proxy?.env ?? []), { name: "CTRLMESH_DRAIN_MS", value: "1000" }],
    });
    expect(inject(pod).warnings).toEqual([
      "container ctrlmesh-proxy has the image old.example/proxy:0 already, which is kept; the mesh's is ctrlmesh/proxy:0.1.0",
    ]);
    const desired = { ...pod.metadata, annotations: { "ctrlmesh.kruise.io/proxy-image": "old.example/proxy:0" } };
    expect(inject({ ...pod, metadata: desired }).warnings).toEqual([]);
  });

  it("runs nothing but the mesh's program in an init container of the pod that would get the rights of root", () => {
    const intercept = { "ctrlmesh.kruise.io/intercept": "iptables" };
    const pod = operatorPod();
    const first = injected({ ...pod, metadata: { ...pod.metadata, annotations: intercept } });
    const [own, ...others] = first.spec.initContainers ?? [];
    const brought = {
      ...own,
      name: "ctrlmesh-iptables",
      image: "evil.example/proxy:1",
      env: [{ name: "NODE_OPTIONS", value: "--require=/evil/start.js" }],
      volumeMounts: [...(own?.volumeMounts ?? []), { name: "evil", mountPath: "/evil" }],
      lifecycle: { postStart: { exec: { command: ["sh"] } } },
      terminationMessagePath: "/dev/termination-log",
    };
    const again = injected({ ...first, spec: { ...first.spec, initContainers: [brought, ...others] } });
    expect(again.spec.initContainers?.[0]).toEqual({ ...own, terminationMessagePath: "/dev/termination-log" });
  });

  it("keeps the hooks that make the operator wait for the proxy in an ordinary container", () => {
    const first = injected(operatorPod(), { nativeSidecars: false });
    const [proxy, ...others] = first.spec.containers;
    const changed = { ...proxy, name: "ctrlmesh-proxy", lifecycle: {} };
    const pod = { ...first, spec: { ...first.spec, containers: [changed, ...others] } };
    expect(injected(pod, { nativeSidecars: false }).spec.containers[0]).toEqual(proxy);
  });

  it.each(
    ["API_SERVER", "API_SERVER_CA", "TLS_CERT", "TLS_KEY", "LISTEN", "ALSO_LISTEN", "POD_UID", "NOT_KNOWN_YET"]
      .map((name) => `CTRLMESH_${name}`)
      .concat([
        "KUBERNETES_SERVICE_HOST",
        "KUBERNETES_SERVICE_PORT",
        "NODE_OPTIONS",
        "NODE_EXTRA_CA_CERTS",
        "LD_PRELOAD",
        "SSL_CERT_FILE",
      ]),
  )("lets no annotation set %s of the proxy", (name) => {
    const annotations = { [`ctrlmesh.kruise.io/proxy-env.${name}`]: "x" };
    const pod = operatorPod();
    expect(inject({ ...pod, metadata: { ...pod.metadata, annotations } })).toMatchObject({
      kind: "refused",
      message: expect.stringContaining(`metadata.annotations[ctrlmesh.kruise.io/proxy-env.${name}]`),
    });
  });

  it("allows annotations for the settings that users may choose, and for variables of other programs", () => {
    const names = ["CTRLMESH_ACCESS_LOG", "CTRLMESH_DRAIN_MS", "GRPC_VERBOSITY", "TZ"];
    const annotations = Object.fromEntries(names.map((name) => [`ctrlmesh.kruise.io/proxy-env.${name}`, "1"]));
    const pod = operatorPod();
    const env = proxyOf(injected({ ...pod, metadata: { ...pod.metadata, annotations } }))?.env;
    expect(env?.slice(-4)).toEqual(names.map((name) => ({ name, value: "1" })));
  });

  it("treats /run as /var/run, which it is in most images", () => {
    const pod = operatorPod();
    const mountPath = "/run/secrets/kubernetes.io/serviceaccount/";
    const containers = [{ name: "manager", volumeMounts: [{ name: "access", mountPath }] }];
    const spec = injected({ ...pod, spec: { ...pod.spec, containers } }).spec;
    const sources = spec.volumes?.find(({ name }) => name === "access")?.projected?.sources;
    expect(sources?.at(-1)?.configMap?.name).toBe("ctrlmesh-ca");
    const volumes = [...(pod.spec.volumes ?? []), { name: "old", secret: { secretName: "token" } }];
    const both = [{ name: "manager", volumeMounts: [ACCOUNT, { name: "old", mountPath }] }];
    expect(inject({ ...pod, spec: { containers: both, volumes } })).toMatchObject({
      kind: "refused",
      message: expect.stringContaining("volume old at "),
    });
    const file = { name: "access", mountPath: `${mountPath}ca.crt`, subPath: "ca.crt" };
    const withFile = { ...pod.spec, containers: [{ name: "manager", volumeMounts: [ACCOUNT, file] }] };
    expect(inject({ ...pod, spec: withFile }).warnings).toHaveLength(1);
  });

  it("warns of envFrom if one of its variables could bypass the proxy", () => {
    const warningsOf = (container: object, mode = "env") => {
      const pod = operatorPod();
      const [manager] = pod.spec.containers;
      const annotations = { "ctrlmesh.kruise.io/intercept": mode };
      const spec = { ...pod.spec, containers: [{ ...manager, ...container }] };
      return inject({ metadata: { ...pod.metadata, annotations }, spec }).warnings;
    };
    const settings = { configMapRef: { name: "settings" } };
    const warning = (name: string) => `container manager: envFrom is not checked; a ${name} in it bypasses the proxy`;
    expect(warningsOf({ envFrom: [settings] })).toEqual([warning("KUBECONFIG")]);
    expect(warningsOf({ envFrom: [{ ...settings, prefix: "KUBE" }] })).toEqual([warning("KUBECONFIG")]);
    expect(warningsOf({ envFrom: [{ ...settings, prefix: "MY_" }] })).toEqual([]);
    expect(warningsOf({ envFrom: [settings] }, "kubeconfig")).toEqual([]);
    expect(warningsOf({ envFrom: [{ ...settings, prefix: "KUBERNETES_" }] }, "iptables")).toEqual([
      warning("KUBERNETES_SERVICE_HOST"),
    ]);
  });

  it("keeps the sidecar of another mesh before the proxy, which connects through it", () => {
    const first = injected(operatorPod());
    const istio = { name: "istio-proxy", restartPolicy: "Always", volumeMounts: [ACCOUNT] };
    const spec = { ...first.spec, initContainers: [istio, ...(first.spec.initContainers ?? [])] };
    const names = injected({ ...first, spec }).spec.initContainers?.map(({ name }) => name);
    expect(names).toEqual(["istio-proxy", "ctrlmesh-proxy"]);
  });

  it("refuses a copy of an injected pod if the cluster now uses another kind of container", () => {
    const first = injected(operatorPod(), { nativeSidecars: false });
    expect(inject(first, { nativeSidecars: true })).toMatchObject(NAME_TAKEN);
  });

  it("listens for the kubelet of a cluster without IPv4, and for its own operator on the loopback", () => {
    const proxy = proxyOf(injected(operatorPod(), { kubernetesService: { ips: ["fd00::1"], port: 443 } }));
    expect(proxy?.env).toContainEqual({ name: "CTRLMESH_HEALTH_LISTEN", value: "[::]:5441" });
    expect(proxy?.env).toContainEqual({ name: "CTRLMESH_LISTEN", value: "127.0.0.1:5443" });
  });

  it("names the problem of an object that is not a pod", () => {
    for (const pod of [undefined, null, "pod", {}, { metadata: {}, spec: { containers: [] } }]) {
      expect(inject(pod)).toMatchObject({
        kind: "refused",
        message: expect.stringMatching(/^ctrlmesh: the pod cannot be injected: ./),
      });
    }
    expect(inject({ metadata: {}, spec: { containers: [{}] } })).toMatchObject({
      message: "ctrlmesh: the pod cannot be injected: spec.containers[0].name: required",
    });
  });

  it("refuses a pod whose VirtualApp has an unknown mode, which admission may have missed", () => {
    const app = { ...APP, metadata: { name: "shop", annotations: { "ctrlmesh.kruise.io/intercept": "magic" } } };
    expect(inject(operatorPod(), {}, [app])).toMatchObject({
      kind: "refused",
      message: expect.stringContaining("VirtualApp shop: metadata.annotations[ctrlmesh.kruise.io/intercept]: must be one of"),
    });
  });

  it("ignores an invalid VirtualApp that selects nothing or everything", () => {
    const broken = { metadata: { name: "broken" } } as unknown as typeof APP;
    const empty = { metadata: { name: "empty" }, spec: { selector: {} } } as unknown as typeof APP;
    expect(inject(operatorPod(), {}, [broken, empty])).toEqual({ kind: "unchanged", app: undefined, warnings: [] });
    expect(inject(operatorPod(), {}, [broken, empty, APP])).toMatchObject({ kind: "changed", app: "shop" });
  });

  it("warns once for each container whose variable is replaced", () => {
    const pod = operatorPod();
    const env = [
      { name: "KUBERNETES_SERVICE_HOST", value: "a" },
      { name: "KUBERNETES_SERVICE_HOST", value: "b" },
    ];
    const [manager] = pod.spec.containers;
    const first = inject({ ...pod, spec: { ...pod.spec, containers: [{ ...manager, name: "manager", env }] } });
    expect(first.warnings).toEqual(["container manager: the mesh's value replaces KUBERNETES_SERVICE_HOST"]);
    if (first.kind === "changed") expect(inject(first.pod).warnings).toEqual([]);
  });
});

describe("requests to other servers", () => {
  const egress = { "ctrlmesh.kruise.io/egress": "true" };
  const podWith = (container: object, annotations: Readonly<Record<string, string>> = egress) => {
    const pod = operatorPod();
    const [manager] = pod.spec.containers;
    const containers = [{ name: "manager", ...manager, ...container }];
    return { metadata: { ...pod.metadata, annotations }, spec: { ...pod.spec, containers } };
  };
  const envOf = (pod: PodManifest) =>
    Object.fromEntries((injected(pod).spec.containers[0]?.env ?? []).map(({ name, value }) => [name, value]));

  it("go through the proxy only if the pod asks for it", () => {
    expect(envOf(podWith({}))).toMatchObject({ https_proxy: "http://127.0.0.1:15002", NO_PROXY: expect.any(String) });
    expect(proxyOf(injected(podWith({})))?.env).toContainEqual({ name: "CTRLMESH_EGRESS_LISTEN", value: "127.0.0.1:15002" });
    const off = injected(podWith({}, { "ctrlmesh.kruise.io/egress": "false" }));
    expect(JSON.stringify(off)).not.toMatch(/15002|HTTP_PROXY|EGRESS_/);
  });

  it("with a NO_PROXY of more hosts than a client has are refused, with the reason", () => {
    const env = [{ name: "NO_PROXY", value: "a,".repeat(40_000) }];
    expect(inject(podWith({ env }))).toMatchObject({
      kind: "refused",
      message: expect.stringContaining(
        "NO_PROXY and no_proxy of all containers have 80000 characters together, but at most 65536",
      ),
    });
    expect(inject(podWith({ env }, {})).kind).toBe("changed");
  });

  it("leave the API server alone, also by its address in iptables mode and by its names", () => {
    const annotations = { ...egress, "ctrlmesh.kruise.io/intercept": "iptables" };
    const direct = envOf(podWith({}, annotations)).NO_PROXY?.split(",");
    expect(direct).toEqual(expect.arrayContaining(["10.96.0.1", "127.0.0.1", "kubernetes.default", ".svc", ".cluster.local"]));
  });

  it.each([
    ["another proxy", { name: "http_proxy", value: "http://proxy.corp:3128" }],
    ["none on purpose", { name: "HTTPS_PROXY", value: "" }],
    ["one that is not in the pod", { name: "HTTP_PROXY", valueFrom: { secretKeyRef: { name: "s", key: "k" } } }],
    ["direct hosts that are not in the pod", { name: "NO_PROXY", valueFrom: { configMapKeyRef: { name: "s", key: "k" } } }],
  ])("of a container that sets %s stay as they are, with a warning", (_, variable) => {
    const pod = podWith({ env: [variable] });
    expect(injected(pod).spec.containers[0]?.env?.slice(3)).toEqual([variable]);
    const warning = `container manager: it sets ${variable.name} itself, which is not changed; its requests to other servers do not go through the proxy`;
    expect(inject(pod).warnings).toEqual([warning]);
  });

  it("go through the proxy in a container that another webhook adds later, and a further call changes nothing", () => {
    const first = injected(podWith({ env: [{ name: "NO_PROXY", value: "db.internal" }] }));
    const added = injected({ ...first, spec: { ...first.spec, containers: [...first.spec.containers, { name: "late" }] } });
    expect(added.spec.containers.map(({ env }) => env?.find(({ name }) => name === "NO_PROXY")?.value)).toEqual([
      expect.stringMatching(/^db\.internal,localhost,/),
      expect.stringMatching(/^localhost,/),
    ]);
    expect(inject(added)).toMatchObject({ kind: "unchanged", warnings: [] });
  });

  it("need the port 15002", () => {
    const ports = [{ containerPort: 15_002 }];
    expect(inject(podWith({ ports }))).toMatchObject({
      kind: "refused",
      message: expect.stringContaining("declares port 15002, which the proxy needs for requests to other servers"),
    });
    expect(inject(podWith({ ports }, {})).kind).toBe("changed");
  });

  it("are waited for before an ordinary container ends", () => {
    const [proxy] = injected(podWith({}), { nativeSidecars: false }).spec.containers;
    expect(JSON.stringify(proxy)).toContain("--ports=5443,15002");
  });

  it("cannot be made by an init container before an ordinary proxy, which a warning says", () => {
    const pod = podWith({});
    const early = { ...pod, spec: { ...pod.spec, initContainers: [{ name: "migrate" }] } };
    expect(inject(early, { nativeSidecars: false }).warnings).toEqual([
      "init container migrate runs before the proxy: it cannot reach the API server or other servers",
    ]);
  });
});

describe("native sidecars", () => {
  it.each([
    ["v1.28.9", false],
    ["v1.29.0", true],
    ["v1.36.3", true],
    ["v1.30.1-gke.100", true],
    ["v2.0.0", true],
    ["unknown", true],
  ])("of %s: %s", (version, has) => {
    expect(hasNativeSidecars(version)).toBe(has);
  });
});
