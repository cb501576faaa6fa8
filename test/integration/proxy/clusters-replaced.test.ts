// A cluster whose MeshCluster is edited again and again, or that the app no longer divides: nothing of the cluster as it was served before
// is left, neither in memory nor as an open stream.
import { afterEach, beforeEach, expect, it } from "vitest";
import type { Snapshot } from "../../../src/mesh/ownership/snapshot.ts";
import { answerJson, type FakeApi, startFakeApi } from "../../support/fake-api.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { snapshot, subset, table } from "../../support/route-table.ts";
import { serveClusters } from "../../support/served-clusters.ts";

const EDITS = 20;
const OWN = table([subset("blue")], { own: [0] });
const OBJECT = "/_ctrlmesh/clusters/eu/api/v1/namespaces/own/configmaps/c";
const EXEC = "/_ctrlmesh/clusters/eu/api/v1/namespaces/own/pods/p/exec";

let api: FakeApi;
beforeEach(async () => {
  api = await startFakeApi((req, res) => {
    req.resume();
    answerJson(res, 200, { kind: "ConfigMap", apiVersion: "v1", metadata: { name: "c", namespace: "own" } });
  });
});
afterEach(() => api.close());

function setup() {
  const world = serveClusters({ clock: createFakeClock(), home: { leftMs: () => 8_000, authorization: "Bearer of-home" } });
  let version = 0;
  const enforce = (more: Partial<Snapshot>) => {
    version++;
    world.enforcers.enforce(snapshot(table([], {}), { subset: "blue", version, digest: `digest-${version}`, ...more }));
  };
  /** Serves the cluster, with the CA that its server has now. */
  const serve = (drainMs = 5_000) => {
    const upstream = { url: api.url, ca: api.ca.certPem, serverName: "localhost" };
    const clusters = [{ name: "eu", servers: [new URL(api.url).host], drainMs, owner: "", isFenced: true, upstream } as const];
    enforce({ clusters, clusterTables: new Map([["eu", OWN]]) });
  };
  return { ...world, serve, stopDividing: () => enforce({ clusters: [] }) };
}

/** Counts the listeners of the cluster's routes. */
function countListeners({ enforcers }: ReturnType<typeof setup>): () => number {
  const inside = enforcers.inside("eu");
  const { onChange } = inside;
  let listeners = 0;
  Object.assign(inside, {
    onChange(...args: Parameters<typeof onChange>) {
      listeners++;
      const end = onChange(...args);
      let isEnded = false;
      return () => {
        if (!isEnded) listeners--;
        isEnded = true;
        end();
      };
    },
  });
  return () => listeners;
}

it("edits of a cluster leave nothing of the cluster before the edit that follows the routes", async () => {
  const world = setup();
  const listeners = countListeners(world);
  world.serve();
  const before = listeners();
  for (let edit = 1; edit <= EDITS; edit++) {
    if (edit % 2 === 0) api.rotateCa();
    world.serve(5_000 + edit);
    expect((await world.send("GET", OBJECT).reply).status).toBe(200);
  }
  expect([before > 0, listeners()]).toEqual([true, before]);
  world.clusters.stop();
  expect(listeners()).toBe(0);
});

it.each(["stopDividing", "serve"] as const)(
  "a tunnel into a pod of the cluster ends when the cluster changes: %s",
  async (change) => {
    const world = setup();
    world.serve();
    const { tunnel } = await world.send("POST", EXEC, { upgrade: "spdy/3.1" }).reply;
    world.serve();
    expect(tunnel?.signal.aborted).toBe(false);
    api.rotateCa();
    world[change]();
    expect(tunnel?.signal.aborted).toBe(true);
    world.clusters.stop();
  },
);
