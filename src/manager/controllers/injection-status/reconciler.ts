// Writes the condition InjectionReady, and nothing else of the status, which is the VirtualApp controller's. Invariant: True is said only of
// what the API server itself has shown us; so `kubectl wait` tells when pods may be made.

import type { AppStatus } from "../../../api/app-status.ts";
import type { Condition } from "../../../api/conditions.ts";
import { VIRTUAL_APPS } from "../../../api/resources.ts";
import type { VirtualApp } from "../../../api/virtual-app.ts";
import type { Clock } from "../../../base/clock.ts";
import type { MutatingWebhook, MutatingWebhookConfiguration } from "../../../kube/client/resources.ts";
import type { KubeClient } from "../../../kube/client/types.ts";
import { isDeepEqual } from "../../../runtime/deep-equal.ts";
import { formatRequest, type Reconciler } from "../../../runtime/reconciler.ts";
import { writeStatus } from "../../../runtime/status-writer.ts";
import type { Store } from "../../../runtime/store.ts";
import { injectionWebhookName, MUTATING_NAME, type WebhookTarget } from "../../admission/configurations.ts";
import { conditionOf, type Verdict, wholeSeconds } from "../../status/facts.ts";
import type { ConfigurationSize } from "../webhook-configuration/reconciler.ts";
import { injectionVerdict, SETTLE_MS, type SeenWebhook } from "./injection-verdict.ts";

export interface InjectionStatusReconcilerOptions {
  readonly client: Pick<KubeClient, "get" | "patch">;
  readonly apps: Pick<Store<VirtualApp>, "get">;
  readonly mutating: Pick<Store<MutatingWebhookConfiguration>, "get">;
  readonly target: WebhookTarget;
  readonly size: Readonly<ConfigurationSize>;
  readonly clock: Clock;
}

/** How often to ask why an entry is not there; that it is there queues the app anyway. */
const PENDING_MS = 5_000;

interface Seen {
  readonly webhook: MutatingWebhook;
  readonly sinceMs: number;
}

export function createInjectionStatusReconciler(options: InjectionStatusReconcilerOptions): Reconciler {
  const { client, apps, mutating, target, size, clock } = options;
  const known = new Map<string, Seen>();

  const look = (key: string, webhookName: string): SeenWebhook | undefined => {
    const webhook = mutating.get(MUTATING_NAME)?.webhooks?.find(({ name }) => name === webhookName);
    if (webhook === undefined) {
      known.delete(key);
      return undefined;
    }
    const before = known.get(key);
    const seen =
      before !== undefined && isSameEntry(before.webhook, webhook) ? before : { webhook, sinceMs: clock.monotonicMs() };
    known.set(key, seen);
    return { webhook, ageMs: clock.monotonicMs() - seen.sinceMs };
  };

  return {
    async reconcile(request, signal) {
      const key = formatRequest(request);
      const app = apps.get(request.name, request.namespace);
      if (app === undefined) {
        known.delete(key);
        return {};
      }
      const seen = look(key, injectionWebhookName(request));
      const verdict = injectionVerdict(app, seen, target, size.isTooLarge);
      const waitMs = seen === undefined || seen.ageMs >= SETTLE_MS ? undefined : SETTLE_MS - seen.ageMs;
      const isPending = verdict.reason === "WebhookPending" || verdict.reason === "WebhookTooLarge";
      const againMs = waitMs ?? (isPending ? PENDING_MS : undefined);
      const again = againMs === undefined ? {} : { requeueAfterMs: againMs };
      // A manager that has just begun looks for a moment before it takes back what the one before said.
      const said = conditionOf(app.status, "InjectionReady");
      if (waitMs !== undefined && said?.status === "True" && said.observedGeneration === app.metadata.generation) return again;
      const now = wholeSeconds(new Date(clock.now()).toISOString());
      await writeStatus(client, VIRTUAL_APPS, app, (current) => withCondition(current, app, verdict, now), {
        signal,
        fieldManager: "ctrlmesh-manager",
      });
      return again;
    },
  };
}

// A new bundle does not begin the wait anew.
function isSameEntry(a: MutatingWebhook, b: MutatingWebhook): boolean {
  return isDeepEqual({ ...a, clientConfig: null }, { ...b, clientConfig: null });
}

function withCondition(
  current: VirtualApp,
  judged: VirtualApp,
  { status, reason, message }: Verdict<"InjectionReady">,
  now: string,
): AppStatus {
  const before = conditionOf(current.status, "InjectionReady");
  // Of the generation that was looked at: a newer one is looked at next.
  const observedGeneration = judged.metadata.generation ?? 0;
  if (before?.observedGeneration !== undefined && before.observedGeneration > observedGeneration) return current.status ?? {};
  const lastTransitionTime = before?.status === status ? before.lastTransitionTime : now;
  const condition: Condition = { type: "InjectionReady", status, reason, message, observedGeneration, lastTransitionTime };
  const all = current.status?.conditions ?? [];
  const conditions = before === undefined ? [...all, condition] : all.map((each) => (each === before ? condition : each));
  return { ...current.status, conditions };
}
