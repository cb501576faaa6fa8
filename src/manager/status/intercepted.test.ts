import { describe, expect, it } from "vitest";
import { SETTINGS } from "../../../test/support/injection.ts";
import { appOf } from "../../../test/support/source-apps.ts";
import type { Pod, Service } from "../../kube/client/resources.ts";
import { injectPod } from "../injection/inject-pod.ts";
import { webhookVerdict } from "./intercepted.ts";

const SERVER = { certDir: "/certs", port: 9443 };
const labels = { app: "shop" };
const NAMED = { name: "webhook", containerPort: 9443 };

interface PodOptions {
  readonly mode?: "env" | "iptables";
  /** That the spec has at the creation of the pod; null: none. */
  readonly server?: object | null;
  readonly ports?: readonly object[];
  readonly spec?: object;
}

/** A pod as injection makes it. */
function injected(name: string, { mode = "env", server = SERVER, ports = [NAMED], spec = {} }: PodOptions = {}): Pod {
  const metadata = { name: "shop", namespace: "ops", annotations: { "ctrlmesh.kruise.io/intercept": mode } };
  const configuration = server === null ? {} : { configuration: { webhook: server } };
  const app = {
    apiVersion: "ctrlmesh.kruise.io/v1alpha1",
    kind: "VirtualApp",
    metadata,
    spec: { selector: { matchLabels: labels }, ...configuration },
  };
  const account = { name: "access", mountPath: "/var/run/secrets/kubernetes.io/serviceaccount" };
  const pod = {
    metadata: { name, namespace: "ops", labels },
    spec: {
      containers: [{ name: "manager", ports, volumeMounts: [account, { name: "certs", mountPath: "/certs" }] }],
      volumes: [
        { name: "access", projected: { sources: [{ serviceAccountToken: { path: "token" } }] } },
        { name: "certs", secret: { secretName: "c" } },
      ],
      ...spec,
    },
  };
  const injection = injectPod({ pod, namespace: "ops", apps: [appOf(app)], settings: SETTINGS });
  if (injection.kind !== "changed") throw new Error(JSON.stringify(injection));
  return injection.pod as unknown as Pod;
}

const service = (targetPort?: string | number, selector: Record<string, string> = labels, more: object = {}): Service => ({
  metadata: { name: "hooks", namespace: "ops" },
  spec: { selector, ports: [{ port: 443, ...(targetPort === undefined ? {} : { targetPort }), ...more }] },
});

const verdict = (pods: readonly Pod[], services: readonly Service[] | undefined = [service("webhook")]) =>
  webhookVerdict({ server: SERVER, pods, services, problemOf: () => "" });

describe("the condition WebhookIntercepted", () => {
  it("is True if a Service has the name of the port, or the pods redirect it", () => {
    const message = "1 pod: calls through Service hooks go to the proxies";
    expect(verdict([injected("a")])).toEqual({ status: "True", reason: "Intercepted", message });
    expect(verdict([injected("a")], [service(5445)]).status).toBe("True");
    for (const targetPort of ["webhook", 9443]) {
      expect(verdict([injected("a", { mode: "iptables" })], [service(targetPort)]).status).toBe("True");
    }
    const ownPort = { ...service(), spec: { selector: labels, ports: [{ port: 9443 }] } };
    expect(verdict([injected("a", { mode: "iptables" })], [ownPort]).status).toBe("True");
  });

  it.each([
    ["PortNotNamed", { ports: [{ containerPort: 9443 }] }, "no container declares TCP port 9443 with a name"],
    [
      "NoCertificateVolume",
      { spec: { volumes: [{ name: "access", projected: { sources: [{ serviceAccountToken: { path: "t" } }] } }] } },
      "no volume is mounted at /certs",
    ],
    ["InjectedBefore", { server: null }, "restart the pods"],
    [
      "InjectedBefore",
      { server: { ...SERVER, port: 8443 }, ports: [NAMED, { name: "old", containerPort: 8443 }] },
      "restart the pods",
    ],
    ["InjectedBefore", { server: { ...SERVER, certDir: "/certs/tls" } }, "restart the pods"],
  ])("is False because of %s, with the pod and the remedy", (reason, options, text) => {
    const found = verdict([injected("good"), injected("a", options), injected("b", options)]);
    expect(found).toMatchObject({ status: "False", reason });
    expect(found.message).toMatch(/^pod a and 1 more: /);
    expect(found.message).toContain(text);
  });

  it("is False if a proxy reports that it has no certificate", () => {
    const pods = [injected("a"), injected("b")];
    const problemOf = ({ metadata }: Pod) => (metadata.name === "b" ? "/certs has no tls.crt" : "");
    expect(webhookVerdict({ server: SERVER, pods, services: [service("webhook")], problemOf })).toEqual({
      status: "False",
      reason: "CertificateUnreadable",
      message: "pod b: /certs has no tls.crt",
    });
  });

  it("is False for a Service with the number of the port, also beside one with the name", () => {
    const found = verdict([injected("a", { mode: "iptables" }), injected("b")], [service("webhook"), service(9443)]);
    expect(found).toMatchObject({ status: "False", reason: "NumericTargetPort" });
    expect(found.message).toContain("Service hooks has the number 9443 as its targetPort, which leads past the proxy of pod b");
  });

  it("says nothing about Services of other pods, of other ports, of UDP, or without a selector", () => {
    const others = [
      service(9443, { app: "other" }),
      service(8080),
      service(9443, labels, { protocol: "UDP" }),
      service(9443, {}),
    ];
    expect(verdict([injected("a")], [...others, service("webhook")]).status).toBe("True");
    expect(verdict([injected("a")], others)).toMatchObject({ status: "Unknown", reason: "NoService" });
  });

  it("is Unknown without pods, and until the Services are known", () => {
    expect(verdict([])).toMatchObject({ status: "Unknown", reason: "NoPods" });
    const { reason } = webhookVerdict({ server: SERVER, pods: [injected("a")], services: undefined, problemOf: () => "" });
    expect(reason).toBe("NotKnown");
  });
});
