// The condition InjectionReady: the API server calls the manager for new pods of the app. Invariant: it is
// True only after the API server has returned the entry, so users can wait for it before they create pods.
import type { Condition } from "../../../api/conditions.ts";
import type { Clock } from "../../../base/clock.ts";
import type { MutatingWebhook, MutatingWebhookConfiguration } from "../../../kube/client/resources.ts";
import { isDeepEqual } from "../../../runtime/merge-patch.ts";
import { formatRequest } from "../../../runtime/reconciler.ts";
import type { Store } from "../../../runtime/store.ts";
import { type App, type AppRef, type Apps, endingText, isHeld, isLive } from "../../apps/app.ts";
import type { InjectionReason, Verdict } from "../../status/facts.ts";
import { injectionWebhook, injectionWebhookName, MUTATING_NAME, type WebhookTarget } from "./configurations.ts";
import { fitsEntry, MAX_ENTRIES_PER_NAMESPACE, withinShare } from "./entry-bounds.ts";

/** There can be several API servers, and each receives the entry by its own watch. */
const IN_FORCE_AFTER_MS = 1_000;
/** The watch reports changes of the entries, but not of the reason for a missing one. */
const PENDING_MS = 5_000;

const TOO_LARGE =
  "the API server does not store the app's webhook: with those of all other apps and the CAs in each, the object is too large";

/** What the last write of the webhook configurations has shown. */
export interface ConfigurationSize {
  /** The API server refused the mutating one for its size. */
  isTooLarge: boolean;
}

export interface InjectionReadyOptions {
  readonly mutating: Pick<Store<MutatingWebhookConfiguration>, "get" | "hasSynced">;
  readonly apps: Pick<Apps, "list">;
  readonly target: WebhookTarget;
  readonly size: Readonly<ConfigurationSize>;
  readonly clock: Clock;
}

interface InjectionLook {
  /** Undefined: the condition stays as it is, for example before the first list of the entries. */
  readonly verdict: Verdict<InjectionReason> | undefined;
  /** Look again after this time; undefined: the watch of the entries queues the app. */
  readonly againMs: number | undefined;
}

interface SeenEntry {
  readonly webhook: MutatingWebhook;
  readonly sinceMs: number;
}

export type InjectionReady = ReturnType<typeof createInjectionReady>;

export function createInjectionReady(options: InjectionReadyOptions) {
  const { mutating, target, clock } = options;
  const entries = new Map<string, SeenEntry>();
  const entryOf = (app: AppRef) => mutating.get(MUTATING_NAME)?.webhooks?.find(({ name }) => name === injectionWebhookName(app));
  const see = (app: AppRef): SeenEntry | undefined => {
    const key = formatRequest(app);
    const webhook = entryOf(app);
    const before = entries.get(key);
    if (isSameEntry(before?.webhook, webhook)) return before;
    if (webhook === undefined) {
      entries.delete(key);
      return undefined;
    }
    const entry = { webhook, sinceMs: clock.monotonicMs() };
    entries.set(key, entry);
    return entry;
  };

  return {
    /** @param written the last written condition */
    look(app: App, written: Condition | undefined): InjectionLook {
      if (!mutating.hasSynced) return { verdict: undefined, againMs: undefined };
      const seen = see(app.ref);
      const ageMs = seen === undefined ? 0 : clock.monotonicMs() - seen.sinceMs;
      const waitMs = seen !== undefined && ageMs < IN_FORCE_AFTER_MS ? IN_FORCE_AFTER_MS - ageMs : undefined;
      // A new manager waits for a moment before it revokes the previous manager's condition.
      const isOfNow = written?.observedGeneration === app.object.metadata.generation;
      if (waitMs !== undefined && written?.status === "True" && isOfNow) return { verdict: undefined, againMs: waitMs };
      const isInForce = seen !== undefined && waitMs === undefined && isAsDesired(app, seen.webhook, target);
      const verdict = verdictOf(app, isInForce, options);
      const isPending = verdict.reason === "WebhookPending" || verdict.reason === "WebhookTooLarge";
      return { verdict, againMs: waitMs ?? (isPending ? PENDING_MS : undefined) };
    },
    /** True if the app's entry has changed since the last call of `look`. */
    hasChanged: (app: AppRef) => !isSameEntry(entries.get(formatRequest(app))?.webhook, entryOf(app)),
    forget: (app: Omit<AppRef, "kind">) => entries.delete(formatRequest(app)),
  };
}

function verdictOf(app: App, isInForce: boolean, { apps, size, target }: InjectionReadyOptions): Verdict<InjectionReason> {
  const no = (reason: InjectionReason, message: string) => ({ status: "False", reason, message }) as const;
  if (!isLive(app)) {
    const until = isHeld(app) ? ", and pods are refused until all namespaces have one owner again" : "";
    return no("Dissolving", `the ${app.ref.kind} ${endingText(app)}: no new pod is injected${until}`);
  }
  if (app.ref.namespace === target.namespace)
    return no("ManagerNamespace", "pods in the manager's own namespace are never injected");
  if (app.spec === undefined) return no("Invalid", "the spec is refused: no new pod is injected until the spec is corrected");
  if (isInForce) return { status: "True", reason: "InForce", message: inForceText(app) };
  const hasRoom = withinShare(apps.list(app.ref.namespace)).some(({ ref }) => ref.name === app.ref.name);
  if (!hasRoom) return no("WebhookTooLarge", tooManyText(app));
  if (size.isTooLarge) return no("WebhookTooLarge", TOO_LARGE);
  return no("WebhookPending", "the API server does not call the manager for the app's pods yet: do not create pods yet");
}

function inForceText({ pods }: App): string {
  const who = pods.statefulSet === undefined ? "that the selector matches" : `of StatefulSet ${pods.statefulSet}`;
  const text = `each new pod ${who} is injected`;
  return fitsEntry(pods.selector)
    ? text
    : `${text}; the selector is longer than the webhook's entry has room for, so each other new pod of the namespace may wait for the manager too`;
}

function tooManyText({ ref: { kind, namespace } }: App): string {
  return `the webhook has entries of the ${MAX_ENTRIES_PER_NAMESPACE} oldest of namespace ${namespace} only: no new pod is injected; delete another ${kind} there, or use another namespace`;
}

// A new CA bundle contains the CA of the served certificate, so it does not restart the wait.
function isSameEntry(a: MutatingWebhook | undefined, b: MutatingWebhook | undefined): boolean {
  return isDeepEqual(a && withoutBundle(a), b && withoutBundle(b));
}

function isAsDesired(app: App, webhook: MutatingWebhook, target: WebhookTarget): boolean {
  return isDeepEqual(withoutBundle(webhook), withoutBundle(injectionWebhook(app, target, "")));
}

function withoutBundle({ clientConfig: { caBundle: _, ...clientConfig }, ...webhook }: MutatingWebhook): object {
  return { ...webhook, clientConfig };
}
