// Any pod, any annotations, any meddling by other webhooks between two calls: what is injected is complete, is the same the second time,
// and leaves the user's containers, their order and their other variables alone.

import fc from "fast-check";
import { expect, it } from "vitest";
import { INTERCEPT_MODES } from "../../src/api/annotations.ts";
import { injectPod } from "../../src/manager/injection/inject-pod.ts";
import type { Injection } from "../../src/manager/injection/injection.ts";
import type { Container, PodManifest } from "../../src/manager/injection/pod-manifest.ts";
import { budget } from "../support/fuzz.ts";
import { applyPatch, SETTINGS } from "../support/injection.ts";
import { appOf } from "../support/source-apps.ts";

const OURS = ["ctrlmesh-iptables", "ctrlmesh-proxy"];
const TAKEN = ["KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT", "KUBERNETES_SERVICE_PORT_HTTPS", "KUBECONFIG"];
const ACCOUNT_DIR = "/var/run/secrets/kubernetes.io/serviceaccount";
const KIND = { apiVersion: "ctrlmesh.kruise.io/v1alpha1", kind: "VirtualApp" };
const SELECTOR = { matchLabels: { app: "shop" } };

const env = fc.array(fc.record({ name: fc.constantFrom("A", "B", ...TAKEN), value: fc.constantFrom("1", "$(A)", "127.0.0.1") }), {
  maxLength: 4,
});
const mount = fc.record({ name: fc.constantFrom("access", "data"), mountPath: fc.constantFrom(ACCOUNT_DIR, "/data", "/x") });
const container = (prefix: string) =>
  fc.record(
    {
      name: fc.constantFrom("a", "b", "c", "d").map((name) => prefix + name),
      env,
      volumeMounts: fc.uniqueArray(mount, { selector: ({ mountPath }) => mountPath }),
      ports: fc.array(fc.record({ containerPort: fc.constantFrom(80, 443, 5443) }), { maxLength: 1 }),
      args: fc.constant(["--kubeconfig=x"]),
      future: fc.constant({ field: [1] }),
    },
    { requiredKeys: ["name", "volumeMounts"] },
  );
const containers = (prefix: string, minLength: number) =>
  fc.uniqueArray(container(prefix), { selector: ({ name }) => name, minLength, maxLength: 3 });
const source = fc.constantFrom(
  { serviceAccountToken: { path: "token" } },
  { configMap: { name: "kube-root-ca.crt" } },
  { configMap: { name: "other", items: [{ key: "k", path: "ca.crt" }] } },
  { secret: { name: "s" } },
);
const pod = fc.record({
  metadata: fc.record({
    labels: fc.constant({ app: "shop" }),
    annotations: fc.dictionary(
      fc.constantFrom("host-aliases", "native-sidecar", "note").map((name) => `ctrlmesh.kruise.io/${name}`),
      fc.constantFrom("true", "false"),
    ),
  }),
  spec: fc.record(
    {
      containers: containers("", 1),
      initContainers: containers("init-", 0),
      volumes: fc.array(source, { maxLength: 4 }).map((sources) => [
        { name: "access", projected: { sources: [{ serviceAccountToken: { path: "token" } }, ...sources] } },
        { name: "data", emptyDir: {} },
      ]),
      hostAliases: fc.constant([
        { ip: "127.0.0.1", hostnames: ["x"] },
        { ip: "10.0.0.1", hostnames: ["kubernetes"] },
      ]),
      dnsPolicy: fc.constantFrom("ClusterFirst", "Default", "None"),
      future: fc.constant("kept"),
    },
    { requiredKeys: ["containers", "volumes"] },
  ),
});
const modes = fc.constantFrom(...INTERCEPT_MODES);

function inject(object: unknown, mode: string, configuration: object = {}): Injection {
  const metadata = { name: "shop", namespace: "ops", annotations: { "ctrlmesh.kruise.io/intercept": mode } };
  const app = appOf({ ...KIND, metadata, spec: { selector: SELECTOR, configuration } });
  return injectPod({ pod: object, namespace: "ops", apps: [app], settings: SETTINGS });
}

const without = ({ env: _, volumeMounts: __, ...rest }: Container) => rest;
const others = ({ env: list = [] }: Container) => list.filter(({ name }) => !TAKEN.includes(name));
const mounts = ({ volumeMounts = [] }: Container) => volumeMounts.filter(({ name }) => name !== "ctrlmesh-kubeconfig");
const theirs = (list: readonly Container[] = []) => list.filter(({ name }) => !OURS.includes(name));

function expectLeftAlone(before: PodManifest, after: PodManifest): void {
  for (const field of ["initContainers", "containers"] as const) {
    const [was, is] = [before.spec[field] ?? [], theirs(after.spec[field])];
    expect(is.map(without)).toEqual(was.map(without));
    expect(is.map(others)).toEqual(was.map(others));
    expect(is.map(mounts)).toEqual(was.map(mounts));
  }
  expect(after.spec.future).toEqual(before.spec.future);
}

/** What other webhooks do to every container: variables, another image, another pull policy, a sidecar in front. */
function meddle({ spec, ...rest }: PodManifest): PodManifest {
  const touch = (each: Container) => ({
    ...each,
    image: `mirror/${each.image}`,
    imagePullPolicy: "Always",
    env: [...(each.env ?? []), { name: "OTHER", value: "1" }],
  });
  const sidecar = { name: "other-sidecar", restartPolicy: "Always" };
  const late = { name: "late", volumeMounts: [{ name: "access", mountPath: ACCOUNT_DIR }] };
  const initContainers = [sidecar, ...(spec.initContainers ?? []).map(touch)];
  return { ...rest, spec: { ...spec, initContainers, containers: [...spec.containers.map(touch), late] } };
}

it("injects completely, leaves what is the user's alone, and does it once", () => {
  let changed = 0;
  fc.assert(
    fc.property(pod, modes, (before, mode) => {
      const copy: unknown = structuredClone(before);
      const injection = inject(before, mode);
      expect(before).toEqual(copy);
      if (injection.kind === "refused") {
        expect(injection.message).toMatch(/^ctrlmesh: pod .* cannot be injected: ./);
        return;
      }
      if (injection.kind === "unchanged") throw new Error("an app's pod was let through");
      changed++;
      expect(applyPatch(before, injection.patch)).toEqual(injection.pod);
      expectLeftAlone(copy as PodManifest, injection.pod);
      const all = [...(injection.pod.spec.initContainers ?? []), ...injection.pod.spec.containers];
      expect(all.filter(({ name }) => name === "ctrlmesh-proxy")).toHaveLength(1);
      expect(inject(injection.pod, mode)).toMatchObject({ kind: "unchanged", app: "shop" });
    }),
    budget(),
  );
  expect(changed).toBeGreaterThan(0);
});

const port = fc.record(
  { containerPort: fc.constantFrom(80, 9443), name: fc.constantFrom("a", "b"), protocol: fc.constantFrom("TCP", "UDP") },
  { requiredKeys: ["containerPort"] },
);
const probe = fc.constantFrom("a", "b", 80, 9443).map((to) => ({ httpGet: { port: to } }));
const serving = fc.record(
  {
    ports: fc.uniqueArray(port, { maxLength: 4, selector: (each) => each.name ?? JSON.stringify(each) }),
    readinessProbe: probe,
    lifecycle: fc.record({ preStop: probe }),
  },
  { requiredKeys: ["ports"] },
);

/** The number to which the kubelet of this container connects. */
function probed({ ports = [], readinessProbe, lifecycle }: Container): unknown[] {
  return [readinessProbe, lifecycle?.preStop].map((handler) => {
    const to = handler?.httpGet?.port;
    return typeof to === "string" ? ports.find(({ name }) => name === to)?.containerPort : to;
  });
}

it("moves the names of the webhook port once, and probes still reach what they did", () => {
  let moved = 0;
  fc.assert(
    fc.property(pod, fc.array(serving, { minLength: 3, maxLength: 3 }), modes, (some, servers, mode) => {
      // Most other pods would be refused for what they mount.
      const volumeMounts = [
        { name: "access", mountPath: ACCOUNT_DIR },
        { name: "data", mountPath: "/data" },
      ];
      const containers = some.spec.containers.map((each, index) => ({ ...each, volumeMounts, ...servers[index] }));
      const before = { ...some, spec: { ...some.spec, initContainers: [], containers } } as unknown as PodManifest;
      const webhook = { certDir: "/data", port: 9443 };
      const injection = inject(before, mode, { webhook });
      fc.pre(injection.kind === "changed");
      const after = theirs(injection.pod.spec.containers);
      expect(after.map(probed)).toEqual(before.spec.containers.map(probed));
      const [was, is] = [before.spec.containers, after].map((list) =>
        list.map(({ ports = [] }) => ports.map(({ name }) => name)),
      );
      expect(is).toEqual(was);
      if (JSON.stringify(after).includes("5445")) moved++;
      expect(inject(injection.pod, mode, { webhook })).toMatchObject({ kind: "unchanged" });
      expect(inject(JSON.parse(JSON.stringify(meddle(injection.pod))), mode, { webhook }).kind).not.toBe("refused");
    }),
    budget(),
  );
  expect(moved).toBeGreaterThan(0);
});

it("takes in what other webhooks add, and is at rest again after one more call", () => {
  fc.assert(
    fc.property(pod, modes, (before, mode) => {
      const first = inject(before, mode);
      fc.pre(first.kind === "changed");
      const meddled = meddle(first.pod);
      const second = inject(meddled, mode);
      if (second.kind === "refused") throw new Error(second.message);
      // With iptables there is nothing to do for a container that is added.
      const after = second.kind === "changed" ? second.pod : meddled;
      expectLeftAlone({ ...meddled, spec: { ...meddled.spec, ...userPart(meddled) } }, after);
      for (const { env: list } of mode === "iptables" ? [] : theirs(after.spec.containers)) {
        expect(list?.[0]).toEqual({ name: "KUBERNETES_SERVICE_HOST", value: "127.0.0.1" });
      }
      expect(after.spec.initContainers?.[0]?.name).toBe("other-sidecar");
      expect(inject(after, mode)).toMatchObject({ kind: "unchanged" });
    }),
    budget(),
  );
});

function userPart({ spec }: PodManifest): Pick<PodManifest["spec"], "containers" | "initContainers"> {
  return { containers: theirs(spec.containers), initContainers: theirs(spec.initContainers) };
}
