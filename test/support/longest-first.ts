// Orders test files within a group of vitest.config.ts: first those that take longest, so that no long file runs by itself at the end. The
// other files follow in vitest's own order, which goes by their size.
import type { TestSpecification } from "vitest/node";
import { BaseSequencer } from "vitest/node";

/** Seconds in a run of all tests on two cores. Only the order matters. An integration test of less than 20 s needs no entry. */
const SECONDS: Readonly<Record<string, number>> = {
  "e2e/adopt-and-leave": 115,
  "e2e/operator-webhooks": 100,
  "e2e/traffic": 85,
  "e2e/ctrlmesh": 70,
  "e2e/restart": 60,
  "e2e/sharding": 60,
  "e2e/webhooks": 53,
  "e2e/chart-rights": 52,
  "e2e/status": 45,
  "e2e/cluster-namespaces": 45,
  "e2e/upgrades": 43,
  "e2e/placement-input": 42,
  "e2e/invisible": 40,
  "e2e/clusters": 40,
  "e2e/gitops": 40,
  "e2e/identity": 38,
  "e2e/sharding-clusters": 38,
  "e2e/kubectl": 36,
  "integration/proxy/webhooks-bounds": 35,
  "integration/demo/demo": 35,
  "e2e/ownership-slices": 35,
  "e2e/locks": 34,
  "e2e/freeze": 34,
  "e2e/exact": 33,
  "integration/manager/failover": 32,
  "e2e/no-bytes-of-other-subsets": 32,
  "e2e/callers": 30,
  "e2e/egress": 30,
  "e2e/divide": 30,
  "integration/dashboard/page": 30,
  "e2e/cluster-profiles": 30,
  "e2e/ctrlmesh-bad-days": 28,
  "integration/runtime/example-operator": 28,
  "e2e/contract": 28,
  "integration/images": 28,
  "e2e/dashboard": 25,
  "e2e/unreachable-cluster": 25,
  "integration/proxy/webhooks": 23,
  "e2e/lost-node": 22,
  "integration/proxy/queue-places": 21,
  "integration/demo/operator": 20,
  "e2e/crds": 18,
  "e2e/object-selector": 18,
  "e2e/invalid-virtual-app": 14,
  "e2e/injection": 12,
};

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const groupOf = ({ project }: TestSpecification) => project.config.sequence.groupOrder;
    return (await super.sort(files)).sort((a, b) => groupOf(a) - groupOf(b) || secondsOf(b) - secondsOf(a));
  }
}

function secondsOf({ moduleId }: TestSpecification): number {
  const [, file = ""] = /\/test\/([^?]*)\.test\.ts$/.exec(moduleId) ?? [];
  return SECONDS[file] ?? 0;
}
