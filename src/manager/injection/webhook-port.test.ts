// Cases that the golden files webhook*.yaml do not cover.
import { describe, expect, it } from "vitest";
import { applyPatch, SETTINGS } from "../../../test/support/injection.ts";
import { appOf } from "../../../test/support/source-apps.ts";
import { injectPod } from "./inject-pod.ts";
import type { Container, PodManifest, PodSpec } from "./pod-manifest.ts";
import { proxiedServer, webhookPort } from "./webhook-port.ts";

const SERVER = { certDir: "/certs", port: 9443 };
const APP = {
  apiVersion: "ctrlmesh.kruise.io/v1alpha1",
  kind: "VirtualApp",
  metadata: { name: "shop", namespace: "ops" },
  spec: { selector: { matchLabels: { app: "shop" } }, configuration: { webhook: SERVER } },
};
const ACCOUNT = { name: "access", mountPath: "/var/run/secrets/kubernetes.io/serviceaccount" };
const CERTS = { name: "certs", mountPath: "/certs" };
const NAMED = { name: "webhook", containerPort: 9443 };

const podWith = (container: Partial<Container>, spec: Partial<PodSpec> = {}): PodManifest => ({
  metadata: { name: "shop-0", labels: { app: "shop" } },
  spec: {
    containers: [{ name: "manager", ports: [NAMED], volumeMounts: [ACCOUNT, CERTS], ...container }],
    volumes: [
      { name: "access", projected: { sources: [{ serviceAccountToken: { path: "token" } }] } },
      { name: "certs", secret: { secretName: "certs" } },
    ],
    ...spec,
  },
});

const inject = (pod: PodManifest, settings = {}) =>
  injectPod({ pod, namespace: "ops", apps: [appOf(APP)], settings: { ...SETTINGS, ...settings } });

function injected(pod: PodManifest, settings = {}): PodManifest {
  const injection = inject(pod, settings);
  if (injection.kind !== "changed") throw new Error(JSON.stringify(injection));
  expect(applyPatch(pod, injection.patch)).toEqual(injection.pod);
  expect(inject(injection.pod, settings)).toEqual({ kind: "unchanged", app: "shop", warnings: injection.warnings });
  return injection.pod;
}

const variable = ({ spec }: PodManifest, name: string) =>
  [...(spec.initContainers ?? []), ...spec.containers]
    .find((each) => each.name === "ctrlmesh-proxy")
    ?.env?.find((each) => each.name === name)?.value;

describe("the names of the operator's webhook port", () => {
  it.each([true, false])(
    "go to the proxy's port, also after defaults of the API server (native sidecar: %s)",
    (nativeSidecars) => {
      const pod = injected(podWith({ ports: [NAMED, { name: "also", containerPort: 9443, protocol: "TCP", hostPort: 443 }] }), {
        nativeSidecars,
      });
      const manager = pod.spec.containers.find(({ name }) => name === "manager");
      expect(manager?.ports).toEqual([
        { name: "webhook", containerPort: 5445 },
        { name: "also", containerPort: 5445, protocol: "TCP", hostPort: 443 },
      ]);
      const defaulted = (each: Container) => ({ ...each, ports: each.ports?.map((port) => ({ protocol: "TCP", ...port })) });
      const stored = { ...pod, spec: { ...pod.spec, containers: pod.spec.containers.map(defaulted) } };
      expect(inject(stored, { nativeSidecars }).kind).toBe("unchanged");
    },
  );

  it("leave other containers alone, also those with an equal name", () => {
    const other: Container = {
      name: "other",
      ports: [{ name: "webhook", containerPort: 8443 }],
      readinessProbe: { tcpSocket: { port: "webhook" } },
    };
    const pod = podWith({});
    const result = injected({ ...pod, spec: { ...pod.spec, containers: [...pod.spec.containers, other] } });
    expect(result.spec.containers[1]).toMatchObject(other);
  });

  it("do not move for UDP, nor without a webhook server", () => {
    const udp = podWith({ ports: [{ ...NAMED, protocol: "UDP" }] });
    expect(inject(udp).warnings).toEqual([expect.stringContaining("no container declares TCP port 9443 with a name")]);
    expect(variable(injected(udp), "CTRLMESH_WEBHOOK_LISTEN")).toBeUndefined();
    const apps = [appOf({ ...APP, spec: { selector: APP.spec.selector } })];
    const without = injectPod({ pod: podWith({}), namespace: "ops", apps, settings: SETTINGS });
    expect(without.kind === "changed" && without.pod.spec.containers[0]?.ports).toEqual([NAMED]);
  });

  it("need port 5445 free", () => {
    const ports = [NAMED, { name: "x", containerPort: 5445 }];
    expect(inject(podWith({ ports }))).toMatchObject({
      kind: "refused",
      message: expect.stringContaining("declares port 5445, which the proxy needs for admission webhooks"),
    });
  });
});

describe("the proxy's listener for webhooks", () => {
  it("listens on both families if the cluster has IPv6", () => {
    expect(variable(injected(podWith({})), "CTRLMESH_WEBHOOK_LISTEN")).toBe("0.0.0.0:5445");
    const kubernetesService = { ips: ["10.96.0.1", "fd00::1"], port: 443 };
    const pod = injected(podWith({}), { kubernetesService });
    expect(variable(pod, "CTRLMESH_WEBHOOK_LISTEN")).toBe("[::]:5445");
    expect(proxiedServer(pod.spec)).toEqual({ port: 9443, certDir: "/var/run/ctrlmesh/webhook" });
  });
});

describe("the operator's certificate", () => {
  const found = (container: Partial<Container>, spec: Partial<PodSpec> = {}, certDir = "/certs") =>
    webhookPort(podWith(container, spec).spec, { certDir, port: 9443 }, false);

  it("is in the innermost mount that has the folder", () => {
    const volumeMounts = [
      { name: "access", mountPath: "/" },
      { name: "certs", mountPath: "/a//b/" },
      { name: "access", mountPath: "/a/bc" },
    ];
    expect(found({ volumeMounts }, {}, "/a/b/tls/")).toMatchObject({
      kind: "intercepted",
      mount: { name: "certs", mountPath: "/var/run/ctrlmesh/webhook", readOnly: true },
      certDir: "/var/run/ctrlmesh/webhook/tls",
    });
    expect(found({ volumeMounts }, {}, "/a/bc")).toMatchObject({
      mount: { name: "access" },
      certDir: "/var/run/ctrlmesh/webhook",
    });
    expect(found({ volumeMounts }, {}, "/x")).toMatchObject({
      mount: { name: "access" },
      certDir: "/var/run/ctrlmesh/webhook/x",
    });
  });

  it("is taken from the container with the port before any other", () => {
    const first: Container = { name: "first", volumeMounts: [{ name: "access", mountPath: "/certs" }] };
    const containers = [first, ...podWith({}).spec.containers];
    expect(found({}, { containers })).toMatchObject({ mount: { name: "certs" } });
  });

  it.each([
    ["in no volume", [], "NoCertificateVolume"],
    ["in a volume that does not exist", [{ name: "gone", mountPath: "/certs" }], "NoCertificateVolume"],
    ["under a variable path", [{ ...CERTS, subPathExpr: "$(NAME)" }], "NoCertificateVolume"],
  ])("%s leaves the calls with the operator", (_, volumeMounts, reason) => {
    expect(found({ volumeMounts })).toMatchObject({ kind: "direct", reason });
    const pod = podWith({ volumeMounts: [ACCOUNT, ...volumeMounts] });
    expect(injected(pod).spec.containers[0]?.ports).toEqual([NAMED]);
    expect(inject(pod).warnings).toEqual([
      expect.stringMatching(/^webhooks are not intercepted: no volume is mounted at \/certs: /),
    ]);
  });

  it("is not readable for the proxy in a Secret for root alone, unless the pod has an fsGroup", () => {
    const volumes = [{ name: "certs", secret: { defaultMode: 0o400 } }];
    expect(found({}, { volumes })).toMatchObject({
      reason: "CertificateUnreadable",
      message: expect.stringContaining("set spec.securityContext.fsGroup"),
    });
    expect(found({}, { volumes, securityContext: { fsGroup: 65532 } }).kind).toBe("intercepted");
    expect(found({}, { volumes: [{ name: "certs", emptyDir: {} }] }).kind).toBe("intercepted");
  });
});
