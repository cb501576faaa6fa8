// The problems that the manager's validation finds in an example, by the kind of the example.
import { validateMeshCluster } from "../../src/api/mesh-cluster.ts";
import { formatProblem } from "../../src/api/problems.ts";
import { fieldAt } from "../../src/api/rule.ts";
import { shardingProblemsOf } from "./sharding-config.ts";
import { policyProblemsOf } from "./traffic-objects.ts";
import { problemsOf } from "./virtual-app.ts";

export function exampleProblems(object: unknown): string[] {
  const kind = fieldAt(object, "kind");
  switch (kind) {
    case "VirtualApp":
      return problemsOf(object);
    case "ShardingConfig":
      return shardingProblemsOf(object);
    case "MeshCluster":
      return meshClusterProblemsOf(object);
    default:
      return policyProblemsOf(String(kind), object);
  }
}

function meshClusterProblemsOf(object: unknown): string[] {
  const result = validateMeshCluster(object);
  return result.ok ? [] : result.problems.map(formatProblem);
}
