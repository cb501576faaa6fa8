// Keeps what a family shows: the children of a root, and the status of each config without the app's status.
// Level-based; a request names a family. Invariant: children are never read to decide who owns what, so an
// edited or deleted child changes nothing until it is repaired.
import { SHARDING_CONFIGS } from "../../../api/resources.ts";
import type { ShardingConfig } from "../../../api/sharding-config.ts";
import { isControlledBy } from "../../../kube/client/owner.ts";
import type { KubeClient } from "../../../kube/client/types.ts";
import { isStatus } from "../../../kube/status.ts";
import { type Controller, controllerOf } from "../../../runtime/controller.ts";
import { ensure } from "../../../runtime/ensure.ts";
import { isDeepEqual } from "../../../runtime/merge-patch.ts";
import { formatRequest, type Reconciler } from "../../../runtime/reconciler.ts";
import { writeStatus } from "../../../runtime/status-writer.ts";
import type { Store } from "../../../runtime/store.ts";
import { type App, type Apps, isLive } from "../../apps/app.ts";
import type { ControllerBase, ManagerContext } from "../../context/manager-context.ts";
import { childrenOf } from "../children.ts";
import { familyNameOf } from "../family.ts";
import { memberStatus } from "../family-status.ts";
import { storedPlacement } from "../stored-placement.ts";

/** Makes a burst of changes of a family's status one reconcile. */
const DEBOUNCE_MS = 100;
/** The statuses of a family's configs are written at most once in this time. */
const STATUS_EVERY_MS = 5_000;

type ShardsControllerOptions = ControllerBase & Pick<ManagerContext, "apps" | "clock">;

export function addShardsController(options: ShardsControllerOptions): Controller {
  const configs = options.informers.store(SHARDING_CONFIGS);
  return controllerOf({ name: "shards", debounceMs: DEBOUNCE_MS, ...options })
    .watches(SHARDING_CONFIGS, (config) => [{ namespace: config.metadata.namespace ?? "", name: familyNameOf(config) }])
    .withReconciler(createShardsReconciler({ ...options, configs }));
}

interface ShardsReconcilerOptions extends Pick<ManagerContext, "log" | "clock"> {
  readonly client: Pick<KubeClient, "get" | "create" | "patch" | "delete">;
  readonly configs: Pick<Store<ShardingConfig>, "list" | "wrote">;
  readonly apps: Pick<Apps, "get">;
}

export function createShardsReconciler({ client, configs, apps, log, clock }: ShardsReconcilerOptions): Reconciler {
  /** For each family when statuses were last written (monotonic). */
  const writtenMs = new Map<string, number>();
  // The next reconcile compares with the written object, even if the watch has not brought it yet.
  const remember = (written: ShardingConfig | undefined) => {
    if (written !== undefined) configs.wrote(written);
  };

  async function keepChild(
    root: ShardingConfig,
    child: ShardingConfig,
    existing: ShardingConfig | undefined,
    signal: AbortSignal,
  ) {
    if (existing !== undefined && !isControlledBy(existing, root)) {
      log.warn({ root: root.metadata.name, child: child.metadata.name }, "another config has the name of a child");
      return;
    }
    if (existing?.metadata.deletionTimestamp !== undefined) return; // its removal queues the family again
    const mustGo = existing !== undefined && !canBecome(existing.spec, child.spec);
    if (mustGo) await remove(existing, signal);
    remember(await ensure(client, SHARDING_CONFIGS, mustGo ? undefined : existing, child, { signal }));
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
      await keepChild(root, child, existing, signal);
    }
    const names = new Set(desired.map(({ metadata }) => metadata.name));
    const surplus = all.filter((each) => isControlledBy(each, root) && !names.has(each.metadata.name));
    for (const child of surplus) await remove(child, signal);
  }

  /** Writes the statuses that differ. If it is too early for that, returns the time to wait. */
  async function keepStatuses(app: App, members: readonly ShardingConfig[], signal: AbortSignal): Promise<number | undefined> {
    const key = formatRequest(app.ref);
    const now = wholeSeconds(clock.now());
    const changed = members
      .map((member) => ({ member, status: memberStatus(app, member, now) }))
      .filter(({ member, status }) => !isDeepEqual(member.status ?? {}, status));
    if (changed.length === 0) return undefined;
    const dueMs = (writtenMs.get(key) ?? Number.NEGATIVE_INFINITY) + STATUS_EVERY_MS - clock.monotonicMs();
    if (dueMs > 0) return dueMs;
    writtenMs.set(key, clock.monotonicMs());
    for (const { member, status } of changed) remember(await writeStatus(client, SHARDING_CONFIGS, member, status, { signal }));
    return undefined;
  }

  return {
    async reconcile(request, signal) {
      const app = apps.get(request.name, request.namespace);
      if (app === undefined) writtenMs.delete(formatRequest(request));
      if (app === undefined || app.ref.kind !== SHARDING_CONFIGS.kind) return {};
      const all = configs.list(request.namespace);
      const root = app.object as ShardingConfig;
      if (root.spec.root !== undefined && app.spec !== undefined) await keepChildren(app, all, signal);
      const members = all.filter((each) => each !== app.object && (app.objects.includes(each) || isControlledBy(each, root)));
      const dueMs = await keepStatuses(app, members, signal);
      log.debug({ family: formatRequest(request), members: members.length }, "family shown");
      return dueMs === undefined ? {} : { requeueAfterMs: dueMs };
    },
  };
}

/** A time as Kubernetes writes it (metav1.Time). */
function wholeSeconds(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`;
}

/** False if the API server would refuse the change: nobody can change the selector or the lock of a child. */
function canBecome(before: ShardingConfig["spec"], after: ShardingConfig["spec"]): boolean {
  return isDeepEqual([before.selector, before.controller ?? null], [after.selector, after.controller ?? null]);
}
