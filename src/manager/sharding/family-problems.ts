// Why a family is refused. Pure. Admission only warns of what the configs of a family must have in common:
// otherwise nobody could change it in one config after the other.
import { formatProblem } from "../../api/problems.ts";
import { type ShardingConfig, validateShardingConfig } from "../../api/sharding-config.ts";
import { isDeepEqual } from "../../runtime/merge-patch.ts";
import type { Family } from "./family.ts";
import { coveringSelector } from "./family-pods.ts";
import { objectLimitProblems } from "./object-limits.ts";
import { shardsOfConfigs } from "./shards.ts";

/** All problems: of each config, between families, and between the configs of the family. */
export function familyProblems(family: Family): string[] {
  return [...family.problems, ...configProblems(family), ...memberProblems(family)];
}

function configProblems({ configs }: Family): string[] {
  return configs.flatMap((config) => {
    const checked = validateShardingConfig(config);
    const prefix = configs.length === 1 ? "" : `${config.metadata.name}: `;
    return checked.ok ? [] : checked.problems.map((problem) => prefix + formatProblem(problem));
  });
}

/**
 * What hand-written configs must have in common, and have not. Nothing is said before each config is valid.
 */
export function memberProblems(family: Family): string[] {
  const { root, configs } = family;
  if (root !== undefined || configProblems(family).length > 0) return [];
  return [...coverProblems(configs), ...webhookProblems(configs), ...objectLimitProblems(shardsOfConfigs(configs).shards)];
}

// One operator serves all shards. Its pods of one shard forward reviews to those of another.
function webhookProblems([first, ...others]: readonly ShardingConfig[]): string[] {
  const different = others.find(({ spec }) => !isDeepEqual(spec.webhook, first?.spec.webhook));
  if (different === undefined) return [];
  return [
    `spec.webhook: ${first?.metadata.name} and ${different.metadata.name} must have the same, since one operator serves both`,
  ];
}

function coverProblems(configs: readonly ShardingConfig[]): string[] {
  if (coveringSelector(configs.flatMap(({ spec }) => spec.selector ?? [])) !== undefined) return [];
  const names = configs.map(({ metadata }) => metadata.name).join(", ");
  return [
    `spec.selector: ${names} must all restrict one key of the pods' labels to listed values, for example app or statefulset.kubernetes.io/pod-name: otherwise the webhook would be called for every pod of the namespace`,
  ];
}
