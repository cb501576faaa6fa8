// The rules of kube-proxy and the names of cluster DNS, as pure functions.
import { describe, expect, it } from "vitest";
import { type EndpointSlice, iptablesRules, type ServiceObject, serviceHosts } from "./service-rules.ts";

const service = (clusterIP: string, ports = [{ port: 80 }]): ServiceObject => ({
  metadata: { name: "web", namespace: "shop" },
  spec: { clusterIP, ports },
});
const slice = (...endpoints: NonNullable<EndpointSlice["endpoints"]>): EndpointSlice => ({
  metadata: { name: "web-1" },
  endpoints,
  ports: [{ port: 8080 }],
});
const rulesOf = (slices: readonly EndpointSlice[], of = service("10.96.1.1")) =>
  iptablesRules([of], () => slices, "10.96.0.0/16").split("\n");
const dnat = (lines: readonly string[]) => lines.filter((line) => line.includes("DNAT"));

describe("rules of address translation", () => {
  it("share the connections of a Service evenly among its ready endpoints", () => {
    const rules = dnat(rulesOf([slice({ addresses: ["10.200.1.1"] }, { addresses: ["10.200.1.2"] })]));
    expect(rules).toEqual([
      "-A SERVICES -d 10.96.1.1/32 -p tcp --dport 80 -m statistic --mode random --probability 0.500000 -j DNAT --to-destination 10.200.1.1:8080",
      "-A SERVICES -d 10.96.1.1/32 -p tcp --dport 80 -j DNAT --to-destination 10.200.1.2:8080",
    ]);
  });

  it("leave out endpoints that are not ready, unless there is no ready one and ending ones still serve", () => {
    const ending = { addresses: ["10.200.1.1"], conditions: { ready: false, serving: true } };
    const unready = { addresses: ["10.200.1.2"], conditions: { ready: false, serving: false } };
    const ready = { addresses: ["10.200.1.3"], conditions: { ready: true } };
    expect(dnat(rulesOf([slice(ending, unready)])).join()).toContain("10.200.1.1:8080");
    expect(dnat(rulesOf([slice(ending, unready, ready)])).join()).not.toMatch(/10\.200\.1\.[12]:/);
    expect(dnat(rulesOf([slice(unready)]))).toEqual([]);
  });

  it("let a pod reach itself by its Service and refuse a Service without endpoints", () => {
    expect(rulesOf([slice({ addresses: ["10.200.1.1"] })])).toContain(
      "-A POSTROUTING -s 10.200.1.1/32 -d 10.200.1.1/32 -j MASQUERADE",
    );
    expect(rulesOf([])).toContain("-A FORWARD -d 10.96.0.0/16 -p tcp -j REJECT --reject-with tcp-reset");
  });

  it("have nothing for a headless Service", () => {
    expect(dnat(rulesOf([slice({ addresses: ["10.200.1.1"] })], service("None")))).toEqual([]);
  });
});

describe("names of Services in /etc/hosts", () => {
  it("are short only in the Service's own namespace", () => {
    const hosts = (namespace: string) => serviceHosts([service("10.96.1.1")], () => [], namespace);
    expect(hosts("shop")).toEqual(["10.96.1.1 web.shop.svc.cluster.local web.shop.svc web.shop web"]);
    expect(hosts("other")).toEqual(["10.96.1.1 web.shop.svc.cluster.local web.shop.svc web.shop"]);
  });

  it("of a headless Service are those of its pods", () => {
    const lines = serviceHosts([service("None")], () => [slice({ addresses: ["10.200.1.1"], hostname: "web-0" })], "other");
    expect(lines).toEqual([
      "10.200.1.1 web-0.web.shop.svc.cluster.local web-0.web.shop.svc web-0.web.shop web.shop.svc.cluster.local web.shop.svc web.shop",
    ]);
  });
});
