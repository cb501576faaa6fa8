// Keeps the two webhook configurations as configurations.ts computes them. Level-based. Invariants: an object
// without a difference is not written; labels and annotations of other writers stay.
import { errorMessage } from "../../../base/errors.ts";
import type { Resource } from "../../../kube/client/resource.ts";
import {
  MUTATING_WEBHOOK_CONFIGURATIONS,
  type MutatingWebhookConfiguration,
  VALIDATING_WEBHOOK_CONFIGURATIONS,
  type ValidatingWebhookConfiguration,
} from "../../../kube/client/resources.ts";
import { isStatus } from "../../../kube/status.ts";
import { ensure } from "../../../runtime/ensure.ts";
import type { Reconciler } from "../../../runtime/reconciler.ts";
import type { Store } from "../../../runtime/store.ts";
import type { ControllerBase, ManagerContext } from "../../context/manager-context.ts";
import { POLICY_KINDS } from "../../policies/add.ts";
import { checkedMeshClusters } from "../validate/mesh-clusters.ts";
import {
  injectionConfiguration,
  MUTATING_NAME,
  MUTATING_SELECTOR,
  VALIDATING_SELECTOR,
  validationConfiguration,
  type WebhookTarget,
} from "./configurations.ts";
import type { ConfigurationSize } from "./injection-ready.ts";

export interface WebhookConfigurationOptions extends ControllerBase, Pick<ManagerContext, "sources" | "apps" | "clock"> {
  /** The CAs of the mesh, as they change; `trustPem` is "" before the first one. */
  readonly identity: { readonly trustPem: string; onChange(listener: () => void): () => void };
  readonly target: WebhookTarget;
  readonly size: ConfigurationSize;
}

type WebhookConfiguration = MutatingWebhookConfiguration | ValidatingWebhookConfiguration;

// Another writer may always restore its own version.
const MAX_WRITES = 20; // of two objects
const WRITES_WITHIN_MS = 10_000;
const TOO_LARGE =
  "webhook configuration is larger than the API server stores: new apps get no entry; have fewer, or a smaller bundle of CAs";

export function createWebhookConfigurationReconciler(options: WebhookConfigurationOptions): Reconciler {
  const { client, informers, sources, apps, target, identity, size, clock, log } = options;
  const kinds = [...sources, checkedMeshClusters, ...POLICY_KINDS];
  const mutating = informers.store(MUTATING_WEBHOOK_CONFIGURATIONS, MUTATING_SELECTOR);
  const validating = informers.store(VALIDATING_WEBHOOK_CONFIGURATIONS, VALIDATING_SELECTOR);
  let writes: readonly number[] = [];

  async function keep<T extends WebhookConfiguration>(resource: Resource<T>, store: Store<T>, desired: T, signal: AbortSignal) {
    const { name = "" } = desired.metadata;
    const written = await ensure(client, resource, store.get(name), desired, { signal });
    if (written === undefined) return;
    writes = [...writes, clock.monotonicMs()];
    log.info({ configuration: name, webhooks: desired.webhooks?.length }, "webhook configuration written");
  }

  // One object contains all entries, each with the CA bundle, so etcd's size limit bounds the number of apps.
  async function keepInjection(desired: MutatingWebhookConfiguration, signal: AbortSignal) {
    try {
      await keep(MUTATING_WEBHOOK_CONFIGURATIONS, mutating, desired, signal);
      size.isTooLarge = false;
    } catch (error) {
      size.isTooLarge = isTooLarge(error);
      if (size.isTooLarge) {
        const [entries, bytes] = [desired.webhooks?.length, JSON.stringify(desired).length];
        log.error({ configuration: MUTATING_NAME, entries, bytes, bundleBytes: identity.trustPem.length }, TOO_LARGE);
      }
      throw error;
    }
  }

  return {
    async reconcile(_request, signal) {
      const { trustPem } = identity;
      if (trustPem === "") return {}; // a change of the CAs queues this again
      const now = clock.monotonicMs();
      writes = writes.filter((time) => now - time < WRITES_WITHIN_MS);
      if (writes.length >= MAX_WRITES) {
        const counts = { writes: writes.length, withinMs: WRITES_WITHIN_MS };
        log.warn(counts, "webhook configurations change too often: who else edits them?");
        return { requeueAfterMs: WRITES_WITHIN_MS / MAX_WRITES };
      }
      // Each object by itself: a failed write of one must not prevent the write of the other.
      const entries = { kinds, apps: apps.list(), target, trustPem };
      const results = await Promise.allSettled([
        keepInjection(injectionConfiguration(entries), signal),
        keep(VALIDATING_WEBHOOK_CONFIGURATIONS, validating, validationConfiguration(entries), signal),
      ]);
      const failed = results.find((result) => result.status === "rejected");
      if (failed !== undefined) throw failed.reason;
      return {};
    },
  };
}

/** The API server's own limit has its own reason. etcd's limits are only in the text. */
export function isTooLarge(error: unknown): boolean {
  return isStatus(error, "RequestEntityTooLarge") || /request is too large|message larger than max/.test(errorMessage(error));
}
