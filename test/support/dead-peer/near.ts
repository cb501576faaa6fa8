// The proxy and its client on the near side: `node near.ts URL CA ROUTER`. Cuts the path under four connections, restores it, and
// prints the observations as one line of JSON. Each connection can notice the cut in one way only.

import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { setForwarding } from "../cuttable-network.ts";
import type { FakeApi } from "../fake-api.ts";
import { startProxy } from "../proxy-harness.ts";
import { noticedWithinMs } from "./noticed-within.ts";

const [url = "", ca = "", router = ""] = process.argv.slice(2);
const liveness = {
  keepAliveIdleMs: 1_000,
  keepAliveIntervalMs: 1_000,
  keepAliveProbes: 2,
  pingEveryMs: 1_500,
  unackedMs: 2_000,
  unackedCheckMs: 500,
};
const api = { url, ca: { certPem: ca }, open: 0 } as FakeApi;
const proxy = await startProxy({ api, upstream: { liveness } });
const PODS = "/api/v1/pods";
const POD = "/api/v1/namespaces/a/pods/b";

const watch = await proxy.open(`${PODS}?watch=1`);
const list = await proxy.open(PODS); // receives only
await proxy.fetch(POD); // leaves an idle connection, on which a request is sent later

setForwarding(router, false);
const cut = performance.now();
const sinceCut = () => performance.now() - cut;
const ended = async (res: IncomingMessage) => {
  res.on("error", () => undefined).resume(); // `once` would reject with it
  await new Promise((resolve) => res.once("close", resolve));
  return { ms: sinceCut(), complete: res.complete };
};
const write = proxy.fetch(POD, { method: "PUT" }).then(({ status, headers }) => ({
  ms: sinceCut(),
  status,
  code: headers["x-ctrlmesh-error"],
  retryAfter: headers["retry-after"],
}));
const [watchEnd, listEnd, writeEnd] = await Promise.all([ended(watch), ended(list), write]);

setForwarding(router, true);
const mended = performance.now();
const again = await proxy.fetch(POD);
const watchAgain = await proxy.open(`${PODS}?watch=1`);
await once(watchAgain, "data");
const backMs = performance.now() - mended;
watchAgain.on("error", () => undefined).destroy();

const lost = await proxy.registry.getSingleMetric("ctrlmesh_proxy_upstream_lost_connections_total")?.get();
const by = lost?.values.map(({ labels }) => `${labels.pool} ${labels.by}`).sort();
process.stdout.write(
  `${JSON.stringify({ boundMs: noticedWithinMs(liveness), watchEnd, listEnd, writeEnd, backMs, status: again.status, by })}\n`,
);
await proxy.stop();
