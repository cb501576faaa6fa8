// The problems that the manager's validation finds in an example, by the kind of the example.
import { fieldAt } from "../../src/api/rule.ts";
import { shardingProblemsOf } from "./sharding-config.ts";
import { problemsOf } from "./virtual-app.ts";

export function exampleProblems(object: unknown): string[] {
  return fieldAt(object, "kind") === "ShardingConfig" ? shardingProblemsOf(object) : problemsOf(object);
}
