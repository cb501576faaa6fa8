// The watch of the namespaces of a cluster whose API server is hostile, on real TLS connections.
import { afterEach, expect, test } from "vitest";
import { systemClock } from "../../../src/base/clock.ts";
import { silentLogger } from "../../../src/base/log.ts";
import { createWatchedClusters } from "../../../src/manager/cluster-namespaces/watched-clusters.ts";
import { eventually } from "../../support/eventually.ts";
import { type FakeApi, startFakeApi } from "../../support/fake-api.ts";

const CLUSTER = { namespace: "fleet", name: "eu" };
type Handler = Parameters<typeof startFakeApi>[0];

const ends: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});

async function watchedAt(handler: Handler, more: object = {}) {
  const api: FakeApi = await startFakeApi(handler);
  const watched = createWatchedClusters({
    userAgent: "mesh/test",
    clock: systemClock,
    random: () => 0,
    log: silentLogger(),
  });
  ends.push(
    () => watched.runnable.stop(),
    () => api.close(),
  );
  watched.use(CLUSTER, {
    server: api.url,
    caPem: api.ca.certPem,
    tlsServerName: undefined,
    clientCert: undefined,
    clientKey: undefined,
    token: () => "t",
    ...more,
  });
  return { api, watched, state: () => watched.stateOf(CLUSTER) };
}
const listOf = (...names: string[]) =>
  JSON.stringify({
    metadata: { resourceVersion: "5" },
    items: names.map((name) => ({ metadata: { name, resourceVersion: "1" } })),
  });

test("an answer without an end is given up after 1 MiB", async () => {
  let sent = 0;
  const { state } = await watchedAt((_, res) => {
    res.setHeader("content-type", "application/json");
    const chunk = Buffer.alloc(64 * 1024, " ");
    const send = () => {
      while (!res.destroyed && sent < 256 * 1024 * 1024) {
        sent += chunk.length;
        if (!res.write(chunk)) return void res.once("drain", send);
      }
    };
    send();
  });
  await eventually(() => expect(state().reason).toBe("Unreachable"), 5_000);
  expect(state().message).toMatch(/UND_ERR_RES_EXCEEDED_MAX_SIZE/);
  expect(sent).toBeLessThan(64 * 1024 * 1024);
});

test("a watch without a line end is given up, and the namespaces stay known", async () => {
  let watches = 0;
  const { api, watched } = await watchedAt((req, res) => {
    res.setHeader("content-type", "application/json");
    if (!req.url?.includes("watch=")) return void res.end(listOf("a"));
    watches++;
    res.on("error", () => undefined);
    res.write(Buffer.alloc(3 * 1024 * 1024, "x"));
  });
  await eventually(() => expect(watches).toBeGreaterThan(1), 10_000);
  expect(
    watched
      .storeOf(CLUSTER)
      ?.list()
      .map(({ metadata }) => metadata.name),
  ).toEqual(["a"]);
  expect(api.accepted).toBeLessThan(10);
});

test("a redirect to another server is not followed, and its words are not shown", async () => {
  let asked = 0;
  const other = await startFakeApi((_, res) => {
    asked++;
    res.end(listOf("stolen"));
  });
  ends.push(() => other.close());
  const { state, watched } = await watchedAt((_, res) => {
    res.writeHead(302, { location: `${other.url}/a-secret` }).end("a-secret");
  });
  await eventually(() => expect(state().reason).toBe("Unreachable"), 5_000);
  expect([asked, watched.storeOf(CLUSTER)]).toEqual([0, undefined]);
  expect(state().message).toMatch(/HTTP 302$/);
});

test("a server with a certificate of another CA gets no token", async () => {
  const other = await startFakeApi(() => undefined);
  ends.push(() => other.close());
  const { api, state } = await watchedAt((_, res) => res.end(listOf("a")), { caPem: other.ca.certPem });
  await eventually(() => expect(state().reason).toBe("Unreachable"), 5_000);
  expect(api.seen).toEqual([]);
});

test("a client key of another certificate breaks nothing else", async () => {
  const [one, other] = [await startFakeApi(() => undefined), await startFakeApi(() => undefined)];
  ends.push(
    () => one.close(),
    () => other.close(),
  );
  const { state } = await watchedAt((_, res) => res.end(listOf("a")), { clientCert: one.ca.certPem, clientKey: other.ca.keyPem });
  await eventually(() => expect(state().reason).toBe("Unreachable"), 5_000);
});

test("32 hostile clusters of four namespaces give way, in words, and a good one of another namespace does not", async () => {
  const labels = Object.fromEntries(Array.from({ length: 256 }, (_, index) => [`key-${index}`, "v".repeat(60)]));
  let page = 0;
  const hostile = await startFakeApi((_, res) => {
    const items = Array.from({ length: 30 }, () => ({ metadata: { name: `ns-${page++}`, resourceVersion: "1", labels } }));
    res
      .setHeader("content-type", "application/json")
      .end(JSON.stringify({ metadata: { resourceVersion: "5", continue: "x" }, items }));
  });
  const good = await startFakeApi((req, res) => {
    res.setHeader("content-type", "application/json");
    if (!req.url?.includes("watch=")) res.end(listOf("a"));
    else res.write("\n");
  });
  const watched = createWatchedClusters({
    userAgent: "mesh/test",
    maxMemoryBytes: 48 * 1024 * 1024,
    clock: systemClock,
    random: () => 0,
    log: silentLogger(),
  });
  ends.push(
    () => watched.runnable.stop(),
    () => hostile.close(),
    () => good.close(),
  );
  const use = (cluster: typeof CLUSTER, { url, ca }: FakeApi) =>
    watched.use(cluster, {
      server: url,
      caPem: ca.certPem,
      tlsServerName: undefined,
      clientCert: undefined,
      clientKey: undefined,
      token: () => "t",
    });
  const bad = Array.from({ length: 32 }, (_, index) => ({ namespace: `bad-${index % 4}`, name: `c-${index}` }));
  use(CLUSTER, good);
  for (const cluster of bad) use(cluster, hostile);
  const refused = () => bad.map(watched.stateOf).filter(({ reason }) => reason === "TooMany");
  await eventually(() => expect(refused().length).toBeGreaterThan(8), 20_000);
  expect(refused()[0]?.message).toMatch(
    /other clusters may take 48 MiB in the manager, and those of the clusters of namespace bad-\d take most/,
  );
  await eventually(() => expect(watched.stateOf(CLUSTER).reason).toBe("Listed"), 5_000);
});
