// One pod registers as often as it may, with tables that are cheap to send and slow to parse, over real sockets.
import { createHash } from "node:crypto";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { expect, it } from "vitest";
import { systemClock } from "../../../src/base/clock.ts";
import { silentLogger } from "../../../src/base/log.ts";
import { createMeshServer } from "../../../src/manager/server/mesh-server.ts";
import { createProxyRegistry } from "../../../src/manager/server/proxy-registry.ts";
import { namedRoute } from "../../../src/mesh/contract/route-type.ts";
import { eventually } from "../../support/eventually.ts";
import { readBody, snapshot, table } from "../../support/route-table.ts";
import { openProxy, registrationOf } from "../../support/scripted-proxy.ts";
import { claimsOf } from "../../support/updates.ts";

const REGISTRATIONS = 10;
const NAMES = Array.from({ length: 10_000 }, (_, at) => `namespace-${at}`);

/** A table within all bounds, and a field that no version knows: objects of 40 keys, each another. */
function tableOfKeys(number: string): Buffer {
  const keys = (at: number) => Array.from({ length: 40 }, (_, key) => `"${number}${at.toString(36)}.${key.toString(36)}":0`);
  const objects = Array.from({ length: 4_250 }, (_, at) => `{${keys(at).join()}}`);
  return Buffer.from(`{"x":[${objects.join()}],"classes":[],"rules":[],"fenced":[],"retained":[],"sharedResources":[]}`);
}

function claimOf(bytes: Buffer) {
  const route = namedRoute(snapshot(table([], {})));
  const tableHash = createHash("sha256").update(bytes).digest("base64");
  return { ...route, body: Buffer.from(JSON.stringify({ ...(readBody(route.body) as object), tableHash })) };
}

it("a pod's registrations leave the leader the time to renew its lease of 15 s, which ends after 10 s without", async () => {
  const registry = createProxyRegistry({ log: silentLogger() });
  const [leadership, listen] = [{ epoch: 3 }, { host: "127.0.0.1", port: 0 }];
  const options = { registry, leadership, listen, clock: systemClock, log: silentLogger(), namespaces: () => NAMES };
  const server = createMeshServer({ ...options, leaderElsewhere: () => undefined, judge: () => ({ kind: "serve" }) });
  await server.start(new AbortController().signal);
  const calls = Array.from({ length: REGISTRATIONS }, (_, call) => {
    const tables = Array.from({ length: 5 }, (_, each) => tableOfKeys(`${call}/${each}`));
    return { tables, route: { ...claimsOf(), inDoubt: tables.map(claimOf) } };
  });
  const delay = monitorEventLoopDelay({ resolution: 20 });
  delay.enable();
  const proxies = calls.map(({ tables, route }, call) => {
    const proxy = openProxy(`127.0.0.1:${server.port}`, { isSilent: true });
    proxy.send(registrationOf("evil", { streamNumber: call + 1, route }));
    return { ...proxy, tables, isOver: () => proxy.ended !== undefined };
  });
  await eventually(() => proxies.every(({ received }) => received.length > 0)); // the promises come together
  for (const { send, tables } of proxies) send({ promise: { epoch: 3, tables } });
  await eventually(() => proxies.filter(({ isOver }) => isOver()).length >= REGISTRATIONS - 1, 50_000);
  for (const proxy of proxies) proxy.close();
  await server.stop();
  expect(delay.max / 1e6).toBeLessThan(5_000);
});
