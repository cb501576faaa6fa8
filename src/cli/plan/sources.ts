// The manager's source kinds, in the order of APP_KINDS.
import type { Source } from "../../manager/apps/app.ts";
import { createShardingSource } from "../../manager/sharding/sharding-source.ts";
import { createVirtualAppSource } from "../../manager/virtual-app/virtual-app-source.ts";

export function managerSources(): readonly [virtualApps: Source, families: Source] {
  return [createVirtualAppSource(), createShardingSource()];
}
