// An API server that vanishes silently: no FIN, no RST, no ICMP. The proxy runs in one network namespace and the API
// server in another. The router between them stops forwarding.
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Child, startChild } from "../../support/child-process.ts";
import { type CuttableNetwork, createCuttableNetwork } from "../../support/cuttable-network.ts";
import { describeWithNetworkNamespaces } from "../../support/requirements.ts";

const script = (name: string) => fileURLToPath(new URL(`../../support/dead-peer/${name}.ts`, import.meta.url));

interface Seen {
  readonly boundMs: number;
  readonly watchEnd: { readonly ms: number };
  readonly listEnd: { readonly ms: number; readonly complete: boolean };
  readonly writeEnd: { readonly ms: number; readonly status: number; readonly code: string; readonly retryAfter?: string };
  readonly backMs: number;
  readonly status: number;
  readonly by: readonly string[];
}

describeWithNetworkNamespaces("an API server that vanishes", () => {
  let network: CuttableNetwork;
  let far: Child;
  let near: Child;
  let seen: Seen;

  const run = (name: string, space: string, ...args: string[]) =>
    startChild({
      name,
      command: "ip",
      args: ["netns", "exec", space, process.execPath, script(name), ...args],
      readyMs: 25_000,
    });

  beforeAll(async () => {
    network = createCuttableNetwork();
    far = await run("far", network.far, network.farAddress);
    near = await run("near", network.near, String(far.ready.url), String(far.ready.ca), network.router);
    seen = near.ready as unknown as Seen;
  });
  afterAll(async () => {
    await near?.stop();
    await far?.stop();
    network?.remove();
  });

  it("makes the proxy end a watch in time, by PING", () => {
    expect(seen.watchEnd.ms).toBeLessThan(seen.boundMs + 2_000);
    expect(seen.by).toContain("watch ping");
  });

  it("makes the proxy break a list that only receives in time, by TCP keepalive", () => {
    expect(seen.listEnd.ms).toBeLessThan(seen.boundMs + 2_000);
    expect(seen.listEnd.complete).toBe(false);
    expect(seen.by).toContain("list keepalive");
  });

  it("makes the proxy answer an unacknowledged write in time, without Retry-After, since the write may have arrived", () => {
    expect(seen.writeEnd.ms).toBeLessThan(seen.boundMs + 2_000);
    expect([seen.writeEnd.status, seen.writeEnd.code, seen.writeEnd.retryAfter]).toEqual([503, "UPSTREAM_BROKEN", undefined]);
    expect(seen.by).toContain("short unacknowledged");
  });

  it("gets requests again as soon as the network is back", () => {
    expect(seen.status).toBe(200);
    expect(seen.backMs).toBeLessThan(2_000);
  });
});
