// The condition InjectionReady: whether the API server asks the manager about the pods of an app that are made from now on. Invariant: True is
// said only of what the API server itself has shown, so `kubectl wait` tells when pods may be made. Read by the reconciler of apps.
import type { Condition } from "../../api/conditions.ts";
import type { Clock } from "../../base/clock.ts";
import type { MutatingWebhook, MutatingWebhookConfiguration } from "../../kube/client/resources.ts";
import { isDeepEqual } from "../../runtime/deep-equal.ts";
import { formatRequest } from "../../runtime/reconciler.ts";
import type { Store } from "../../runtime/store.ts";
import { type App, type AppRef, isLive } from "../sources/app.ts";
import type { Verdict } from "../status/facts.ts";
import { injectionWebhook, injectionWebhookName, MUTATING_NAME, type WebhookTarget } from "./configurations.ts";

/**
 * How long an entry is known before it counts as in force: the API servers hear of it by the same kind of watch as the manager, each for
 * itself, and there can be several.
 */
const IN_FORCE_AFTER_MS = 1_000;
/** How often to ask why an entry is not there. A change of the entries comes by the watch. */
const PENDING_MS = 5_000;

const TOO_LARGE =
  "the API server does not store the app's webhook: with those of all other apps and the CAs in each, the object is too large";

/** What the controller of the webhook configurations says of its last write. */
export interface ConfigurationSize {
  /** The API server has refused the last write of the mutating configuration since it is too large. */
  isTooLarge: boolean;
}

export interface InjectionReadyOptions {
  readonly mutating: Pick<Store<MutatingWebhookConfiguration>, "get" | "hasSynced">;
  readonly target: WebhookTarget;
  readonly size: Readonly<ConfigurationSize>;
  readonly clock: Clock;
}

export interface InjectionLook {
  /** Undefined: the condition stays as it is. So it is before the first list of the entries. */
  readonly verdict: Verdict<"InjectionReady"> | undefined;
  /** Look again after this time; undefined: the watch of the entries queues the app. */
  readonly againMs: number | undefined;
}

export interface InjectionReady {
  /** @param said the condition as it was written last */
  look(app: App, said: Condition | undefined): InjectionLook;
  /** The app's entry is another one than at the last look. */
  hasChanged(app: AppRef): boolean;
  forget(app: Omit<AppRef, "kind">): void;
}

interface Seen {
  readonly webhook: MutatingWebhook;
  readonly sinceMs: number;
}

export function createInjectionReady({ mutating, target, size, clock }: InjectionReadyOptions): InjectionReady {
  const known = new Map<string, Seen>();
  const entryOf = (app: AppRef) => mutating.get(MUTATING_NAME)?.webhooks?.find(({ name }) => name === injectionWebhookName(app));
  const see = (app: AppRef): Seen | undefined => {
    const key = formatRequest(app);
    const webhook = entryOf(app);
    const before = known.get(key);
    if (isSameEntry(before?.webhook, webhook)) return before;
    if (webhook === undefined) {
      known.delete(key);
      return undefined;
    }
    const seen = { webhook, sinceMs: clock.monotonicMs() };
    known.set(key, seen);
    return seen;
  };

  return {
    look(app, said) {
      if (!mutating.hasSynced) return { verdict: undefined, againMs: undefined };
      const seen = see(app.ref);
      const ageMs = seen === undefined ? 0 : clock.monotonicMs() - seen.sinceMs;
      const waitMs = seen !== undefined && ageMs < IN_FORCE_AFTER_MS ? IN_FORCE_AFTER_MS - ageMs : undefined;
      // A manager that has just begun looks for a moment before it takes back what the one before said.
      const isOfNow = said?.observedGeneration === app.object.metadata.generation;
      if (waitMs !== undefined && said?.status === "True" && isOfNow) return { verdict: undefined, againMs: waitMs };
      const isInForce = seen !== undefined && waitMs === undefined && isAsDesired(app, seen.webhook, target);
      const verdict = verdictOf(app, isInForce, size.isTooLarge, target);
      const isPending = verdict.reason === "WebhookPending" || verdict.reason === "WebhookTooLarge";
      return { verdict, againMs: waitMs ?? (isPending ? PENDING_MS : undefined) };
    },
    hasChanged: (app) => !isSameEntry(known.get(formatRequest(app))?.webhook, entryOf(app)),
    forget: (app) => known.delete(formatRequest(app)),
  };
}

function verdictOf(app: App, isInForce: boolean, isTooLarge: boolean, target: WebhookTarget): Verdict<"InjectionReady"> {
  const no = (reason: Verdict<"InjectionReady">["reason"], message: string) => ({ status: "False", reason, message }) as const;
  if (!isLive(app)) {
    const what = `the ${app.ref.kind} is being deleted: no new pod is injected, and none is let in until its routes are brought back`;
    return no("Dissolving", what);
  }
  if (app.ref.namespace === target.namespace)
    return no("ManagerNamespace", "pods in the manager's own namespace are never injected");
  if (app.spec === undefined) return no("Invalid", "the spec is refused: no new pod is injected until it is mended");
  if (isInForce) return { status: "True", reason: "InForce", message: "each new pod that the selector matches is injected" };
  if (isTooLarge) return no("WebhookTooLarge", TOO_LARGE);
  return no("WebhookPending", "the API server does not ask about the app's pods yet: wait with making them");
}

// A new bundle does not begin the wait again, and counts as in force: it holds the CA of what is served before it changes, and after.
function isSameEntry(a: MutatingWebhook | undefined, b: MutatingWebhook | undefined): boolean {
  return isDeepEqual(a && withoutBundle(a), b && withoutBundle(b));
}

function isAsDesired(app: App, webhook: MutatingWebhook, target: WebhookTarget): boolean {
  return isDeepEqual(withoutBundle(webhook), withoutBundle(injectionWebhook(app, target, "")));
}

function withoutBundle({ clientConfig: { caBundle: _, ...clientConfig }, ...webhook }: MutatingWebhook): object {
  return { ...webhook, clientConfig };
}
