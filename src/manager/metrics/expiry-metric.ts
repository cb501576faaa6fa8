// The metric of the certificates and tokens by which the mesh reaches other clusters. As for conditions, each scrape reads the statuses.
// Invariant: at most MAX_EXPIRIES series, whose labels are names of objects and words of this version.
import type { MeshCluster } from "../../api/mesh-cluster.ts";
import { Gauge, type Registry } from "../../base/metrics.ts";
import { CREDENTIALS } from "../cluster-namespaces/credential-ends.ts";

/** A namespace has at most 32 such clusters. */
export const MAX_EXPIRIES = 1_000;

const KNOWN: ReadonlySet<string> = new Set(CREDENTIALS);

/** @param clusters none unless this replica leads */
export function addExpiryMetric(registers: Registry[], clusters: () => readonly MeshCluster[]): void {
  new Gauge({
    name: "ctrlmesh_manager_cluster_expiry_timestamp_seconds",
    help: "When the first certificate or token for another cluster expires, in seconds since the epoch, and what it is.",
    labelNames: ["namespace", "name", "of"],
    registers,
    collect() {
      this.reset();
      const rows = clusters().flatMap(({ metadata: { namespace = "", name = "" }, status }) => {
        const { of = "", time = "" } = status?.earliestExpiry ?? {};
        const seconds = Date.parse(time) / 1_000;
        return Number.isFinite(seconds) ? [{ seconds, labels: { namespace, name, of: KNOWN.has(of) ? of : "Other" } }] : [];
      });
      for (const { labels, seconds } of rows.slice(0, MAX_EXPIRIES)) this.set(labels, seconds);
    },
  });
}
