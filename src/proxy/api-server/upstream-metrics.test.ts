import { expect, it } from "vitest";
import { createRegistry } from "../../base/metrics.ts";
import { connectFailureOf, createUpstreamMetrics } from "./upstream-metrics.ts";

it.each([
  ["ECONNREFUSED", "refused"],
  ["UND_ERR_CONNECT_TIMEOUT", "timeout"],
  ["EHOSTUNREACH", "unreachable"],
  ["ENOTFOUND", "dns"],
  ["ECONNRESET", "reset"],
  ["UNABLE_TO_VERIFY_LEAF_SIGNATURE", "tls"],
  ["SELF_SIGNED_CERT_IN_CHAIN", "tls"],
  ["ERR_TLS_CERT_ALTNAME_INVALID", "tls"],
  ["ERR_SSL_WRONG_VERSION_NUMBER", "tls"],
  ["CA_UNREADABLE", "tls"],
  ["SOMETHING_NEW", "other"],
])("a connection that fails with %s counts as %s", (code, reason) => {
  expect(connectFailureOf(Object.assign(new Error("x"), { code }))).toBe(reason);
});

it("a failure without a code is other", () => expect(connectFailureOf(new Error("x"))).toBe("other"));

it("counts, and asks for open and waiting at each scrape", async () => {
  const registry = createRegistry("proxy", "test");
  const metrics = createUpstreamMetrics(registry, {
    openIn: (pool) => (pool === "watch" ? 1 : 0),
    waitingIn: (pool) => (pool === "list" ? 7 : 0),
  });
  metrics.connected("watch");
  metrics.connectFailed("short", "refused");
  metrics.lost("watch", "ping");
  metrics.retried("short");
  const text = await registry.metrics();
  for (const line of [
    'ctrlmesh_proxy_upstream_connections{pool="watch"} 1',
    'ctrlmesh_proxy_upstream_connections{pool="lock"} 0',
    'ctrlmesh_proxy_upstream_waiting_requests{pool="list"} 7',
    'ctrlmesh_proxy_upstream_connects_total{pool="watch"} 1',
    'ctrlmesh_proxy_upstream_connect_failures_total{pool="short",reason="refused"} 1',
    'ctrlmesh_proxy_upstream_lost_connections_total{pool="watch",by="ping"} 1',
    'ctrlmesh_proxy_upstream_retries_total{pool="short"} 1',
  ])
    expect(text).toContain(line);
});
