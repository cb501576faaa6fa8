// The interface between the server and a webhook. Invariant: only this file defines the paths, so the webhook
// configurations and the server agree.
import type { AdmissionAnswer, AdmissionRequest } from "./admission-review.ts";

export type WebhookName = "inject" | "validate";

/** The client that waits for an answer. */
export interface Caller {
  /** The address whose share of the budgets and of the time a request takes. */
  readonly address: string;
  /** Fires when the caller no longer waits. */
  readonly signal: AbortSignal;
}

/** @throws StatusError if no answer is possible now: the failurePolicy of the webhook then decides */
export type Review = (request: AdmissionRequest, caller: Caller) => AdmissionAnswer | Promise<AdmissionAnswer>;

export type Ready = (caller: Caller) => Promise<void>;

export interface Webhook {
  readonly name: WebhookName;
  /**
   * Resolves when a review can be judged. The server waits for it before it reads the body.
   * @throws StatusError if no answer is possible now
   */
  readonly ready?: Ready;
  readonly review: Review;
}

/** The path has no query. */
export type WebhookRoutes = (path: string) => Webhook | undefined;

export interface AppName {
  readonly namespace: string;
  readonly name: string;
}

export const VALIDATE_PATH = "/validate";
/** The check before the API server's own. It returns no warnings, because the later check does. */
export const VALIDATE_EARLY_PATH = "/validate/early";

/** The check of pods that ask for the proxy by a label, whether an app selects them or not. */
export const ASKED_PATH = "/asked";

/** Names of apps and namespaces need no escaping. */
export function injectPath({ namespace, name }: AppName): string {
  return `/inject/${namespace}/${name}`;
}

/** The path of the check after all mutating webhooks. */
export function admitPath({ namespace, name }: AppName): string {
  return `/admit/${namespace}/${name}`;
}

const APP_PATH = /^\/(inject|admit)\/([a-z0-9-]{1,63})\/([a-z0-9.-]{1,253})$/;

export function createRoutes(webhooks: {
  readonly inject: (app: AppName) => Review;
  readonly admit: (app: AppName) => Review;
  readonly validate: Review;
  readonly validateEarly: Review;
  readonly asked: Review;
  /** Resolves when this replica knows the app, or has waited for it. */
  readonly awaitApp: (app: AppName) => Ready;
}): WebhookRoutes {
  const validate: Webhook = { name: "validate", review: webhooks.validate };
  const validateEarly: Webhook = { name: "validate", review: webhooks.validateEarly };
  const asked: Webhook = { name: "inject", review: webhooks.asked };
  return (path) => {
    if (path === VALIDATE_PATH) return validate;
    if (path === ASKED_PATH) return asked;
    if (path === VALIDATE_EARLY_PATH) return validateEarly;
    const [, what, namespace, name] = APP_PATH.exec(path) ?? [];
    if (namespace === undefined || name === undefined) return undefined;
    const app = { namespace, name };
    return { name: "inject", review: webhooks[what === "admit" ? "admit" : "inject"](app), ready: webhooks.awaitApp(app) };
  };
}
