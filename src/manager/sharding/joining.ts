// Which ready shards of a root wait for namespaces, and why, as a text for its status. Pure.
import { DEFAULT_MOVED_PERCENT, type ShardingConfig } from "../../api/sharding-config.ts";
import { normalShardName } from "../../api/sharding-keys.ts";
import { holdMs } from "./membership.ts";
import type { Placement } from "./placement.ts";
import { storedPlacement } from "./stored-placement.ts";

/** More do not help a user. */
const MAX_NAMES = 3;

/** Undefined if no shard waits. */
export function joiningText(root: ShardingConfig): string | undefined {
  const placement = storedPlacement(root);
  const [first] = placement?.waiting.keys() ?? [];
  if (placement === undefined || first === undefined) return undefined;
  const { prefix = "", auto } = root.spec.root ?? {};
  const names = [...placement.waiting.keys()].map((shard) => normalShardName(prefix, shard));
  const more = names.length > MAX_NAMES ? ` and ${names.length - MAX_NAMES} more` : "";
  const shown = `${names.slice(0, MAX_NAMES).join(", ")}${more}`;
  return `${shown} ${names.length === 1 ? "is" : "are"} ready and will get namespaces ${waitText(placement, first, auto)}`;
}

function waitText(placement: Placement, first: number, auto: Partial<NonNullable<ShardingConfig["spec"]["root"]>["auto"]> = {}) {
  const { joinsFromMs, losses, waiting } = placement;
  if (joinsFromMs !== undefined) {
    const percent = auto.maxMovedPercentPerHour ?? DEFAULT_MOVED_PERCENT;
    const budget = `spec.root.auto.maxMovedPercentPerHour, ${percent} % of all`;
    return `from ${new Date(joinsFromMs).toISOString()}, because as many moved within an hour as the budget allows (${budget})`;
  }
  const loss = losses.get(first);
  if (loss === undefined) return "together with shards that start, after 10 minutes at the latest";
  const minutes = holdMs(loss) / 60_000;
  const sinceText = new Date(waiting.get(first) ?? 0).toISOString();
  return `after ${minutes} minutes without an interruption (since ${sinceText}), because of ${loss.times} losses`;
}
