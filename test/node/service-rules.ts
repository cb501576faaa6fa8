// The work of kube-proxy and cluster DNS, as two pure functions of Services and EndpointSlices: the address translation rules for
// iptables-restore, and the /etc/hosts lines of a pod. There is no DNS server.
import type { Resource } from "../../src/kube/client/resource.ts";
import type { KubeObject } from "../../src/kube/types.ts";

export interface ServicePort {
  readonly name?: string;
  readonly port: number;
  readonly protocol?: string;
}

export interface ServiceObject extends KubeObject {
  readonly spec?: { readonly clusterIP?: string; readonly ports?: readonly ServicePort[] };
}

interface Endpoint {
  readonly addresses: readonly string[];
  readonly hostname?: string;
  readonly conditions?: { readonly ready?: boolean; readonly serving?: boolean };
}

export interface EndpointSlice extends KubeObject {
  readonly endpoints?: readonly Endpoint[];
  readonly ports?: readonly { readonly name?: string; readonly port?: number; readonly protocol?: string }[];
}

export const SERVICES: Resource<ServiceObject> = {
  group: "",
  version: "v1",
  resource: "services",
  kind: "Service",
  namespaced: true,
};
export const ENDPOINT_SLICES: Resource<EndpointSlice> = {
  group: "discovery.k8s.io",
  version: "v1",
  resource: "endpointslices",
  kind: "EndpointSlice",
  namespaced: true,
};
export const SERVICE_LABEL = "kubernetes.io/service-name";

/** The slices of a Service. */
export type SlicesOf = (service: ServiceObject) => readonly EndpointSlice[];

/** The tables nat and filter, for iptables-restore. */
export function iptablesRules(services: readonly ServiceObject[], slicesOf: SlicesOf, serviceRange: string): string {
  const translate: string[] = [];
  const hairpin = new Set<string>();
  for (const service of services) {
    const { clusterIP } = service.spec ?? {};
    if (!hasAddress(clusterIP)) continue;
    for (const port of service.spec?.ports ?? []) {
      const protocol = (port.protocol ?? "TCP").toLowerCase();
      const targets = targetsOf(slicesOf(service), port);
      for (const [index, { address, port: target }] of targets.entries()) {
        const left = targets.length - index;
        const share = left === 1 ? "" : ` -m statistic --mode random --probability ${(1 / left).toFixed(6)}`;
        const to = `-j DNAT --to-destination ${address}:${target}`;
        translate.push(`-A SERVICES -d ${clusterIP}/32 -p ${protocol} --dport ${port.port}${share} ${to}`);
        hairpin.add(address);
      }
    }
  }
  return [
    "*nat",
    ":PREROUTING ACCEPT",
    ":OUTPUT ACCEPT",
    ":POSTROUTING ACCEPT",
    ":SERVICES -",
    "-A PREROUTING -j SERVICES",
    "-A OUTPUT -j SERVICES",
    ...translate,
    // A pod that reaches itself by a Service would drop packets from its own address.
    ...[...hairpin].map((address) => `-A POSTROUTING -s ${address}/32 -d ${address}/32 -j MASQUERADE`),
    "COMMIT",
    // A Service without endpoints refuses connections at once.
    "*filter",
    ":FORWARD ACCEPT",
    ":OUTPUT ACCEPT",
    ...["FORWARD", "OUTPUT"].flatMap((chain) => [
      `-A ${chain} -d ${serviceRange} -p tcp -j REJECT --reject-with tcp-reset`,
      `-A ${chain} -d ${serviceRange} -j REJECT`,
    ]),
    "COMMIT",
    "",
  ].join("\n");
}

/** /etc/hosts lines of all Services, as a pod of `namespace` names them. */
export function serviceHosts(services: readonly ServiceObject[], slicesOf: SlicesOf, namespace: string): string[] {
  return services.flatMap((service) => {
    const { name = "", namespace: of = "" } = service.metadata;
    const names = (prefix: string) => [
      `${prefix}${name}.${of}.svc.cluster.local`,
      `${prefix}${name}.${of}.svc`,
      `${prefix}${name}.${of}`,
      ...(of === namespace ? [`${prefix}${name}`] : []),
    ];
    const { clusterIP } = service.spec ?? {};
    if (hasAddress(clusterIP)) return [`${clusterIP} ${names("").join(" ")}`];
    return readyEndpoints(slicesOf(service)).flatMap(({ addresses, hostname }) =>
      addresses.map((address) => {
        const own = hostname === undefined ? [] : names(`${hostname}.`);
        return `${address} ${[...own, ...names("")].join(" ")}`;
      }),
    );
  });
}

function hasAddress(clusterIP: string | undefined): clusterIP is string {
  return clusterIP !== undefined && clusterIP !== "" && clusterIP !== "None";
}

function targetsOf(slices: readonly EndpointSlice[], { name = "" }: ServicePort): { address: string; port: number }[] {
  return slices.flatMap((slice) => {
    const port = slice.ports?.find((each) => (each.name ?? "") === name)?.port;
    if (port === undefined) return [];
    return readyEndpoints([slice], slices).flatMap(({ addresses }) =>
      addresses.slice(0, 1).map((address) => ({ address, port })),
    );
  });
}

// The ready endpoints. If there are none, the ending ones that still serve, like kube-proxy.
function readyEndpoints(slices: readonly EndpointSlice[], all = slices): Endpoint[] {
  const isReady = ({ conditions }: Endpoint) => conditions?.ready !== false;
  const hasReady = all.some(({ endpoints = [] }) => (endpoints ?? []).some(isReady));
  const wanted = hasReady ? isReady : ({ conditions }: Endpoint) => conditions?.serving === true;
  return slices.flatMap(({ endpoints }) => (endpoints ?? []).filter(wanted));
}
