// The API custom.metrics.k8s.io behind the aggregator of the real API server, as an adapter for Prometheus serves it: one metric of the pods
// of a namespace. So the HorizontalPodAutoscaler of kube-controller-manager reads what a test measures.
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { createCa, issueServerCertificate } from "../../src/base/certificates.ts";
import { eventually } from "./eventually.ts";
import type { Kube } from "./kube.ts";
import { kubectl } from "./kubectl.ts";

const GROUP = "custom.metrics.k8s.io";
const VERSION = "v1beta2";
const API = `/apis/${GROUP}/${VERSION}`;

export interface PodMetric {
  readonly namespace: string;
  readonly name: string;
  /** The current value of each pod that has one. */
  readonly read: () => ReadonlyMap<string, number>;
}

/** Serves the metric until the test calls the result. */
export async function serveCustomMetric(kube: Kube, metric: PodMetric): Promise<() => Promise<void>> {
  const now = Date.now();
  const { certPem, keyPem } = issueServerCertificate(createCa({ commonName: "metrics", now }), { dnsNames: ["localhost"], now });
  const server = createServer({ cert: certPem, key: keyPem }, (req, res) => {
    const answer = answerTo(new URL(req.url ?? "/", "https://localhost").pathname, metric);
    res.writeHead(answer === undefined ? 404 : 200, { "content-type": "application/json" }).end(JSON.stringify(answer ?? {}));
  });
  await new Promise<void>((resolve) => server.listen(0, "localhost", resolve));
  const { port } = server.address() as AddressInfo;
  await kubectl(kube.kubeconfig, ["apply", "-f", "-"], JSON.stringify({ apiVersion: "v1", kind: "List", items: objects(port) }));
  await eventually(async () => expectAvailable(await kubectl(kube.kubeconfig, ["get", "--raw", API])), 60_000);
  return async () => {
    const closed = new Promise((resolve) => server.close(resolve));
    server.closeAllConnections();
    await closed;
  };
}

/** The aggregator calls the server by a Service of the type ExternalName, which needs no endpoint. */
function objects(port: number): readonly object[] {
  const service = { namespace: "kube-system", name: "custom-metrics" };
  return [
    { apiVersion: "v1", kind: "Service", metadata: service, spec: { type: "ExternalName", externalName: "localhost" } },
    {
      apiVersion: "apiregistration.k8s.io/v1",
      kind: "APIService",
      metadata: { name: `${VERSION}.${GROUP}` },
      spec: {
        group: GROUP,
        version: VERSION,
        groupPriorityMinimum: 100,
        versionPriority: 100,
        insecureSkipTLSVerify: true,
        service: { ...service, port },
      },
    },
  ];
}

function answerTo(path: string, { namespace, name, read }: PodMetric): object | undefined {
  if (path === API) return { kind: "APIResourceList", apiVersion: "v1", groupVersion: `${GROUP}/${VERSION}`, resources: [] };
  if (path !== `${API}/namespaces/${namespace}/pods/*/${name}` && path !== `${API}/namespaces/${namespace}/pods/%2A/${name}`)
    return undefined;
  const timestamp = `${new Date().toISOString().slice(0, 19)}Z`;
  const items = [...read()].map(([pod, value]) => ({
    describedObject: { kind: "Pod", apiVersion: "/v1", namespace, name: pod },
    metric: { name },
    timestamp,
    value: `${Math.round(value * 1000)}m`,
  }));
  return { kind: "MetricValueList", apiVersion: `${GROUP}/${VERSION}`, metadata: {}, items };
}

function expectAvailable(text: string): void {
  if (!text.includes(`${GROUP}/${VERSION}`)) throw new Error(`the API server answers ${text}`);
}
