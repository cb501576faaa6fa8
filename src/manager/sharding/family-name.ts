// The name of the family that a config belongs to. Pure; the config may have any shape.
import { fieldAt } from "../../api/rule.ts";
import { rootNameOf } from "../../api/sharding-config-rules.ts";
import type { KubeObject } from "../../kube/types.ts";

/** Of a child its root, of a root itself; of any other config its lock, or itself if it names none. */
export function familyNameOf(config: KubeObject): string {
  const root = rootNameOf(config.metadata);
  if (root !== undefined) return root;
  const lock = fieldAt(config, "spec", "controller", "leaderElectionName");
  const isAlone = fieldAt(config, "spec", "root") !== undefined || typeof lock !== "string" || lock === "";
  return isAlone ? (config.metadata.name ?? "") : lock;
}
