// What apps see of clusters whose namespaces come and go all the time.
import { expect, test } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { createRemoteCluster } from "../../../test/support/remote-cluster.ts";
import { silentLogger } from "../../base/log.ts";
import { createWatchedClusters } from "./watched-clusters.ts";

const MINUTE_MS = 60_000;
/** How often apps see changes of the clusters of one namespace at home. */
const MOST_A_MINUTE = 70;
const CLUSTERS = ["eu", "us"];
const CREDENTIALS = { caPem: undefined, tlsServerName: undefined, clientCert: undefined, clientKey: undefined, token: () => "t" };

async function setup() {
  const clock = createFakeClock();
  const remotes = CLUSTERS.map(() => createRemoteCluster());
  const remoteOf = (isIt: (name: string) => boolean) => remotes[CLUSTERS.findIndex(isIt)] ?? createRemoteCluster();
  const watched = createWatchedClusters({
    userAgent: "t",
    connect: (connection) => remoteOf((name) => connection.server.includes(name)).connect(connection),
    clock,
    random: () => 0.5,
    log: silentLogger(),
  });
  const timesMs = new Set<number>();
  watched.onNamespaces(() => timesMs.add(clock.monotonicMs()));
  for (const name of CLUSTERS) watched.use({ namespace: "fleet", name }, { server: `https://${name}.example`, ...CREDENTIALS });
  await clock.flush();
  const storeOf = (name: string) => watched.storeOf({ namespace: "fleet", name });
  let changes = 0;
  for (const name of CLUSTERS) storeOf(name)?.onChange(() => changes++);
  return {
    clock,
    remote: (name: string) => remoteOf((each) => each === name),
    timesMs: () => [...timesMs],
    changesShown: () => changes,
    names: (name: string) => (storeOf(name)?.list() ?? []).map(({ metadata }) => metadata.name).sort(),
  };
}

test("apps see new namespaces after 100 ms, and those of all clusters together once a second while they never stop changing", async () => {
  const { clock, remote, timesMs, changesShown, names } = await setup();
  remote("eu").put("first");
  await clock.advance(100);
  expect(names("eu")).toEqual(["first"]);
  const before = timesMs().length;
  for (let at = 0; at < MINUTE_MS / 50; at++) {
    const cluster = remote(CLUSTERS[at % 2] ?? "");
    if (at % 4 < 2) cluster.put("flapping");
    else cluster.remove("flapping");
    cluster.put("labelled", { at: String(at) });
    await clock.advance(50);
  }
  expect(timesMs().length - before).toBeLessThanOrEqual(MOST_A_MINUTE);
  expect(changesShown()).toBeLessThan(5 * MOST_A_MINUTE);
  remote("eu").put("last");
  remote("eu").remove("first");
  remote("us").put("flapping");
  await clock.advance(1_100);
  expect([names("eu"), names("us")]).toEqual([
    ["labelled", "last"],
    ["flapping", "labelled"],
  ]);
});
