// The bound on streams of exec, attach and port-forward into all other clusters together.
import { expect, it } from "vitest";
import { MAX_TUNNELS } from "../../../src/proxy/clusters/cluster-tunnels.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { snapshot, subset, table } from "../../support/route-table.ts";
import { serveClusters } from "../../support/served-clusters.ts";

const NAMES = ["eu", "us"] as const;
const OWN = table([subset("blue")], { own: [0] });

function setup() {
  const world = serveClusters({ clock: createFakeClock(), home: { leftMs: () => 8_000, authorization: "Bearer of-home" } });
  const clusters = NAMES.map((name, index) => {
    const upstream = { url: `https://127.0.0.1:${index + 1}` };
    return { name, servers: [`${name}.example:443`], drainMs: 1_000, owner: "", isFenced: true, upstream } as const;
  });
  const clusterTables = new Map(NAMES.map((name) => [name, OWN]));
  world.enforcers.enforce(snapshot(table([], {}), { subset: "blue", clusters, clusterTables }));
  const exec = async (cluster: (typeof NAMES)[number]) => {
    const path = `/_ctrlmesh/clusters/${cluster}/api/v1/namespaces/own/pods/p/exec`;
    const { reply, signal } = world.send("POST", path, { upgrade: "spdy/3.1" });
    const { status, headers, body, tunnel } = await reply;
    const text = body instanceof Uint8Array ? Buffer.from(body).toString() : "";
    return { status, headers, text, close: () => signal.abort(new Error("closed")), isCut: () => tunnel?.signal.aborted };
  };
  return { ...world, exec };
}

it("one cluster may take all places; then its next stream is refused until one has ended", async () => {
  const { exec, clusters } = setup();
  const streams = [];
  for (let count = 0; count < MAX_TUNNELS; count++) streams.push(await exec("eu"));
  expect(new Set(streams.map(({ status }) => status))).toEqual(new Set([101]));
  const refused = await exec("eu");
  expect([refused.status, refused.headers["retry-after"]]).toEqual([503, "1"]);
  expect(refused.text).toContain(`all ${MAX_TUNNELS} places for streams into other clusters are taken`);
  expect(streams.some(({ isCut }) => isCut())).toBe(false);
  streams[7]?.close();
  expect((await exec("eu")).status).toBe(101);
  expect((await exec("eu")).status).toBe(503);
  clusters.stop();
});

it("a cluster below its share gets the place of the oldest stream of the other one, and each has its share in the end", async () => {
  const { exec, clusters } = setup();
  const streams = [];
  for (let count = 0; count < MAX_TUNNELS; count++) streams.push(await exec("eu"));
  const others = [];
  for (let count = 0; count < MAX_TUNNELS; count++) others.push(await exec("us"));
  const share = MAX_TUNNELS / 2;
  expect(others.map(({ status }) => status)).toEqual(others.map((_, at) => (at < share ? 101 : 503)));
  expect(streams.map(({ isCut }) => isCut())).toEqual(streams.map((_, at) => at < share));
  clusters.stop();
});

it("places of streams that have ended are free again, however often", async () => {
  const { exec, clusters } = setup();
  for (let count = 0; count < 3 * MAX_TUNNELS; count++) {
    const { status, close } = await exec("eu");
    expect(status).toBe(101);
    close();
  }
  clusters.stop();
});
