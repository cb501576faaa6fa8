// Keeps what a family shows: the children of a root, and the status of every config but the one that has the app's status. Level-based.
// Invariant: children are never read to decide who owns what, so a child that is edited or deleted changes nothing until it is repaired.
import { SHARDING_CONFIGS } from "../../../api/resources.ts";
import type { ShardingConfig } from "../../../api/sharding-config.ts";
import type { Logger } from "../../../base/log.ts";
import type { KubeClient } from "../../../kube/client/types.ts";
import { isStatus } from "../../../kube/status.ts";
import { isDeepEqual } from "../../../runtime/deep-equal.ts";
import { createMergePatch } from "../../../runtime/merge-patch.ts";
import { formatRequest, type Reconciler } from "../../../runtime/reconciler.ts";
import { writeStatus } from "../../../runtime/status-writer.ts";
import type { Store } from "../../../runtime/store.ts";
import { type App, type Apps, isLive } from "../../sources/app.ts";
import { childrenOf } from "../../sources/sharding/children.ts";
import { isChildOf } from "../../sources/sharding/family.ts";
import { storedPlacement } from "../../sources/sharding/stored-placement.ts";
import { memberStatus } from "./member-status.ts";

export interface ShardsReconcilerOptions {
  readonly client: Pick<KubeClient, "get" | "create" | "patch" | "delete">;
  readonly configs: Pick<Store<ShardingConfig>, "list">;
  readonly apps: Pick<Apps, "get">;
  readonly log: Logger;
}

const FIELD_MANAGER = "ctrlmesh-manager";

export function createShardsReconciler({ client, configs, apps, log }: ShardsReconcilerOptions): Reconciler {
  async function keep(root: ShardingConfig, child: ShardingConfig, existing: ShardingConfig | undefined, signal: AbortSignal) {
    const { namespace, name = "" } = child.metadata;
    const call = { signal, fieldManager: FIELD_MANAGER };
    if (existing === undefined) {
      await client.create(SHARDING_CONFIGS, child, call);
      return;
    }
    if (!isChildOf(existing, root)) {
      log.warn({ root: root.metadata.name, child: name }, "another config has the name of a child");
      return;
    }
    // A selector cannot be changed.
    if (!isDeepEqual(existing.spec.selector, child.spec.selector)) {
      await remove(existing, signal);
      await client.create(SHARDING_CONFIGS, child, call);
      return;
    }
    const labels = { ...existing.metadata.labels, ...child.metadata.labels };
    const patch = createMergePatch(
      { spec: existing.spec, metadata: { labels: existing.metadata.labels ?? {} } },
      { spec: child.spec, metadata: { labels } },
    );
    if (patch !== undefined) await client.patch(SHARDING_CONFIGS, { namespace, name }, { type: "merge", body: patch }, call);
  }

  async function remove({ metadata: { namespace, name = "", uid = "" } }: ShardingConfig, signal: AbortSignal) {
    try {
      await client.delete(SHARDING_CONFIGS, { namespace, name }, { signal, preconditions: { uid } });
    } catch (error) {
      if (!isStatus(error, "NotFound", "Conflict")) throw error;
    }
  }

  async function keepChildren(app: App, all: readonly ShardingConfig[], signal: AbortSignal) {
    const root = app.object as ShardingConfig;
    const placement = storedPlacement(root);
    // Without a placement nothing is known about the children, so those that exist stay.
    if (isLive(app) && placement === undefined) return;
    const desired = placement === undefined || !isLive(app) ? [] : childrenOf(root, placement);
    for (const child of desired) {
      const existing = all.find(({ metadata }) => metadata.name === child.metadata.name);
      await keep(root, child, existing, signal);
    }
    const names = new Set(desired.map(({ metadata }) => metadata.name));
    const surplus = all.filter((each) => isChildOf(each, root) && !names.has(each.metadata.name));
    for (const child of surplus) await remove(child, signal);
  }

  async function keepStatus(app: App, member: ShardingConfig, signal: AbortSignal) {
    const status = memberStatus(app, member);
    if (isDeepEqual(member.status ?? {}, status)) return;
    await writeStatus(client, SHARDING_CONFIGS, member, status, { signal, fieldManager: FIELD_MANAGER });
  }

  return {
    async reconcile(request, signal) {
      const app = apps.get(request.name, request.namespace);
      if (app === undefined || app.ref.kind !== SHARDING_CONFIGS.kind) return {};
      const all = configs.list(request.namespace);
      const root = app.object as ShardingConfig;
      if (root.spec.root !== undefined && app.spec !== undefined) await keepChildren(app, all, signal);
      const members = all.filter((each) => each !== app.object && (app.objects.includes(each) || isChildOf(each, root)));
      for (const member of members) await keepStatus(app, member, signal);
      log.debug({ family: formatRequest(request), members: members.length }, "family shown");
      return {};
    },
  };
}
