import { expect, it } from "vitest";
import { fleetCluster } from "../../../test/support/mesh-cluster.ts";
import type { MeshCluster } from "../../api/mesh-cluster.ts";
import { createRegistry } from "../../base/metrics.ts";
import { addExpiryMetric, MAX_EXPIRIES } from "./expiry-metric.ts";

const NAME = "ctrlmesh_manager_cluster_expiry_timestamp_seconds";
const expiring = (name: string, of: string, time: string): MeshCluster => ({
  ...fleetCluster(name, {}),
  status: { earliestExpiry: { of, time } },
});

async function linesOf(...clusters: MeshCluster[]): Promise<string[]> {
  const registry = createRegistry("manager", "0");
  addExpiryMetric([registry], () => clusters);
  return (await registry.metrics()).split("\n").filter((line) => line.startsWith(NAME));
}

it("the metric of expiries has a series for each cluster of which the manager sees one", async () => {
  expect(
    await linesOf(
      expiring("eu", "KubeconfigToken", "2026-01-01T00:00:00Z"),
      fleetCluster("tunnel", {}),
      expiring("us", "Ghost", "9999-12-31T23:59:59Z"),
    ),
  ).toEqual([
    `${NAME}{namespace="fleet",name="eu",of="KubeconfigToken"} 1767225600`,
    `${NAME}{namespace="fleet",name="us",of="Other"} 253402300799`,
  ]);
});

it("the metric of expiries leaves out what is no time, and is bounded", async () => {
  const many = Array.from({ length: MAX_EXPIRIES + 5 }, (_, at) =>
    expiring(`c-${at}`, "KubeconfigToken", "2026-01-01T00:00:00Z"),
  );
  expect(await linesOf(expiring("eu", "KubeconfigToken", "soon"), ...many)).toHaveLength(MAX_EXPIRIES);
});
