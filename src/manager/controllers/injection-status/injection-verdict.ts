// The condition InjectionReady: whether the API server asks about the pods of an app that are made from now on. Pure.
import { type VirtualApp, validateVirtualApp } from "../../../api/virtual-app.ts";
import type { MutatingWebhook } from "../../../kube/client/resources.ts";
import { isDeepEqual } from "../../../runtime/deep-equal.ts";
import { injectionWebhook, type WebhookTarget } from "../../admission/configurations.ts";
import type { Verdict } from "../../status/facts.ts";

export interface SeenWebhook {
  readonly webhook: MutatingWebhook;
  /** For how long the watch has shown it like this. */
  readonly ageMs: number;
}

/**
 * How long an entry is known before it counts as in force: the API servers hear of it by the same kind of watch as we, each for
 * itself, and there can be several.
 */
export const SETTLE_MS = 1_000;

const TOO_LARGE =
  "the API server does not store the app's webhook: with those of all other VirtualApps and the CAs in each, the object is too large";

type InjectionVerdict = Verdict<"InjectionReady">;

export function injectionVerdict(
  app: VirtualApp,
  seen: SeenWebhook | undefined,
  target: WebhookTarget,
  isTooLarge = false,
): InjectionVerdict {
  const { namespace, deletionTimestamp } = app.metadata;
  const no = (reason: InjectionVerdict["reason"], message: string): InjectionVerdict => ({ status: "False", reason, message });
  if (deletionTimestamp !== undefined)
    return no(
      "Dissolving",
      "the VirtualApp is being deleted: no new pod is injected, and none is let in until its routes are brought back",
    );
  if (namespace === target.namespace) return no("ManagerNamespace", "pods in the manager's own namespace are never injected");
  if (!validateVirtualApp(app).ok) return no("Invalid", "the spec is refused: no new pod is injected until it is mended");
  if (seen === undefined || seen.ageMs < SETTLE_MS || !isAsWished(app, seen.webhook, target)) {
    if (isTooLarge) return no("WebhookTooLarge", TOO_LARGE);
    return no("WebhookPending", "the API server does not ask about the app's pods yet: wait with making them");
  }
  return { status: "True", reason: "InForce", message: "each new pod that the selector matches is injected" };
}

// Whatever the bundle: it holds the CA of what is served before it changes, and after.
function isAsWished(app: VirtualApp, webhook: MutatingWebhook, target: WebhookTarget): boolean {
  return isDeepEqual(withoutBundle(webhook), withoutBundle(injectionWebhook(app, target, "")));
}

function withoutBundle({ clientConfig: { caBundle: _, ...clientConfig }, ...webhook }: MutatingWebhook): object {
  return { ...webhook, clientConfig };
}
