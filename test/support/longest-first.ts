// Orders test files within a group of vitest.config.ts. Of each project, those that take longest come first, so that no long file runs by
// itself at the end. The projects of a group go in step: tests that mostly wait run beside tests that mostly compute, all the time.
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
  "integration/manager/webhooks": 22,
  "e2e/chart-rights": 22,
  "e2e/lost-node": 22,
  "integration/proxy/queue-places": 21,
  "integration/demo/operator": 20,
  "e2e/crds": 18,
  "e2e/object-selector": 18,
  "e2e/invalid-virtual-app": 14,
  "e2e/injection": 12,
};

/** Of a file without an entry. */
const OTHER_SECONDS = 6;

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const longestFirst = (await super.sort(files)).sort((a, b) => secondsOf(b.moduleId) - secondsOf(a.moduleId));
    const placeOf = inStep(
      longestFirst,
      ({ project }) => project.name,
      ({ moduleId }) => secondsOf(moduleId),
    );
    const groupOf = ({ project }: TestSpecification) => project.config.sequence.groupOrder;
    return longestFirst.sort((a, b) => groupOf(a) - groupOf(b) || placeOf(a) - placeOf(b));
  }
}

/** @returns of each file the part of its project's time that is over when the file begins, from 0 to 1 */
export function inStep<T>(
  files: readonly T[],
  projectOf: (file: T) => string,
  seconds: (file: T) => number,
): (file: T) => number {
  const before = new Map<T, number>();
  const totals = new Map<string, number>();
  for (const file of files) {
    const total = totals.get(projectOf(file)) ?? 0;
    before.set(file, total);
    totals.set(projectOf(file), total + seconds(file));
  }
  return (file) => (before.get(file) ?? 0) / (totals.get(projectOf(file)) || 1);
}

function secondsOf(moduleId: string): number {
  const [, file = ""] = /\/test\/([^?]*)\.test\.ts$/.exec(moduleId) ?? [];
  return SECONDS[file] ?? OTHER_SECONDS;
}
