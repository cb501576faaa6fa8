// The mutating webhook that puts the proxy into the pods of an app. Invariant: a pod that an app selects is
// injected or refused; without a proxy it would own everything besides the other pods. It passes unchanged
// only if the deletion of the app is complete. The webhook only reads, so a dry run changes nothing.
import { onAbort } from "../../../base/abort.ts";
import type { Clock } from "../../../base/clock.ts";
import { createFairBudget } from "../../../base/fair-budget.ts";
import { StatusError } from "../../../kube/status.ts";
import type { KubeObject } from "../../../kube/types.ts";
import { type App, type Apps, endingText, isHeld, isLive } from "../../apps/app.ts";
import type { ManagerContext } from "../../context/manager-context.ts";
import { injectPod } from "../../injection/inject-pod.ts";
import type { Injection, InjectionSettings } from "../../injection/injection.ts";
import { type PodManifest, patchBetween } from "../../injection/pod-manifest.ts";
import type { AdmissionAnswer, AdmissionRequest } from "../server/admission-review.ts";
import type { AppName, Ready, Review } from "../server/webhook.ts";
import type { KeepRevision } from "./keep-revision.ts";

interface InjectOptions {
  readonly apps: Apps;
  /** From the API server, for this address, since the store may lag; undefined if the app does not exist. */
  readonly read: (app: AppName, address: string) => Promise<App | undefined>;
  readonly keepRevision: KeepRevision;
  /** Undefined until the required facts about the cluster are known. */
  readonly settings: () => InjectionSettings | undefined;
}

export function createInjectWebhook({ apps, read, keepRevision, settings }: InjectOptions): (app: AppName) => Review {
  return (name) => async (request, caller) => {
    const wrong = whyNotAPod(request) ?? whyNotOf(request, name);
    if (wrong !== undefined) return { allowed: false, reason: "BadRequest", message: wrong };
    if (!apps.hasSynced) throw notYet("has not listed the apps yet");
    const injection = settings();
    if (injection === undefined) throw notYet("does not know the address of the API server yet");
    // If this replica does not know the app yet, createAppWait has already waited for it.
    const seen = apps.get(name.name, name.namespace);
    // The watch may lag, so an app that would let the pod pass unchanged is read again.
    const isSure = seen === undefined || mustInject(seen, request);
    const app = isSure ? seen : await orNotYet(read(name, caller.address), `cannot read app ${name.namespace}/${name.name} now`);
    if (app === undefined) {
      const message = `there is no app ${name.namespace}/${name.name}; if it was just created or deleted, try again`;
      return { allowed: false, reason: "NotFound", message };
    }
    const others = apps.list(name.namespace).filter(({ ref }) => ref.name !== app.ref.name || ref.kind !== app.ref.kind);
    if (!mustInject(app, request)) return judgePod(app, request.object, [app, ...others], injection);
    const pod = request.object as PodManifest;
    const kept = await orNotYet(keepRevision(app, pod, caller), "cannot read the revision that the pod is to have now");
    const answer = judgePod(app, kept ?? pod, [app, ...others], injection);
    if (kept === undefined || !answer.allowed) return answer;
    return { ...answer, patch: [...patchBetween(pod, kept), ...(answer.patch ?? [])] };
  };
}

function mustInject(app: App, { object }: AdmissionRequest): boolean {
  return isLive(app) && app.pods.selects((object as KubeObject).metadata?.labels);
}

/** Checks an app's pods after all mutating webhooks. */
export function createAdmitWebhook(inject: (app: AppName) => Review): (app: AppName) => Review {
  // In its second round the API server calls only webhooks that it called in the first. So a later webhook
  // that adds a selected label to a pod, or reverts the injection, would let the pod run without a proxy.
  return (name) => async (request, caller) => {
    const answer = await inject(name)(request, caller);
    if (!answer.allowed) return answer;
    const changed = (answer.patch ?? []).map(({ path }) => path);
    if (changed.length === 0) return { allowed: true };
    return forbidden(
      `the pod is one of app ${name.name} and is not injected as it must be (${changed.join(", ")}): a webhook that was asked after ctrlmesh's has changed its labels, or taken changes back; let the workload's template have the labels, or let that webhook leave the pod alone`,
    );
  };
}

function judgePod(app: App, pod: AdmissionRequest["object"], all: readonly App[], settings: InjectionSettings): AdmissionAnswer {
  const { kind, namespace, name } = app.ref;
  // The webhook configuration may be older than the app, and its entry may select more.
  if (!app.pods.selects((pod as KubeObject).metadata?.labels)) return { allowed: true };
  if (!isLive(app)) return answerWhileEnding(app);
  if (app.spec === undefined)
    return forbidden(`${kind} ${name} is not valid, so its pods get no route: ${app.problems.join("; ")}`);
  return answerOf(injectPod({ pod, namespace, apps: all.filter(isLive), settings }));
}

// Until all namespaces are moved back, other subsets own some of them, so no pod without a proxy may start.
function answerWhileEnding(app: App): AdmissionAnswer {
  const { kind, name } = app.ref;
  const ends = `${kind} ${name} ${endingText(app)}`;
  if (!isHeld(app)) return { allowed: true, warnings: [`${ends}: the pod is not injected`] };
  return forbidden(
    `${ends}, and its namespaces are moved back to one owner first; the pod can be created, without a proxy, when that is done`,
  );
}

function answerOf(injection: Injection): AdmissionAnswer {
  const { warnings } = injection;
  switch (injection.kind) {
    case "changed":
      return { allowed: true, patch: injection.patch, warnings };
    case "unchanged":
      return { allowed: true, warnings };
    case "refused":
      return { ...forbidden(injection.message), warnings };
    default:
      return injection satisfies never;
  }
}

export function whyNotAPod({ resource, operation, subResource = "", object }: AdmissionRequest): string | undefined {
  if (resource.group !== "" || resource.resource !== "pods" || subResource !== "" || operation !== "CREATE") {
    return `this webhook is for the creation of pods, not for ${operation} of ${resource.resource}`;
  }
  return object === undefined || object === null ? "the review carries no pod" : undefined;
}

function whyNotOf({ namespace }: AdmissionRequest, app: AppName): string | undefined {
  if (namespace === app.namespace) return undefined;
  return `the pods of namespace ${namespace} are not those of app ${app.namespace}/${app.name}`;
}

export function forbidden(message: string): AdmissionAnswer {
  return { allowed: false, reason: "Forbidden", message };
}

function orNotYet<T>(read: Promise<T>, what: string): Promise<T> {
  return read.catch(() => Promise.reject(notYet(what)));
}

// The failurePolicy decides about the pod, or another replica answers the API server's next attempt.
export function notYet(what: string): StatusError {
  const message = `ctrlmesh: this replica of the manager ${what}`;
  return new StatusError("ServiceUnavailable", message, { retryAfterSeconds: 1 });
}

/** A watch that is further behind than this is broken. */
const UNKNOWN_APP_MS = 2_000;
/** The number of places for connections (webhook-server.ts). Each waiting request has one, and no body. */
const MAX_WAITING = 256;

/** Waits for an app that this replica does not know yet: the leader knew it before it wrote the webhook. */
export function createAppWait({ apps, clock }: Pick<ManagerContext, "apps" | "clock">): (app: AppName) => Ready {
  const places = createFairBudget(MAX_WAITING);
  return (app) =>
    async ({ address, signal }) => {
      // Before the first list of the apps, the review answers that it has not listed them.
      if (!apps.hasSynced || apps.get(app.name, app.namespace) !== undefined) return;
      // Any client can name an app that does not exist.
      if (!places.take(address, 1)) {
        const message = "ctrlmesh: too many requests wait for an app that this replica of the manager does not know";
        throw new StatusError("TooManyRequests", message, { retryAfterSeconds: 1 });
      }
      await untilKnown(apps, app, clock, signal).finally(() => places.give(address, 1));
    };
}

/** Resolves when the app is known, after UNKNOWN_APP_MS, or when the client is gone. */
async function untilKnown(apps: Apps, { namespace, name }: AppName, clock: Clock, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = clock.after(UNKNOWN_APP_MS, resolve);
  const unlink = onAbort(signal, resolve);
  const unsubscribe = apps.onChange(({ type, object }) => {
    if (type === "deleted" || object.metadata.namespace !== namespace) return;
    if (apps.get(name, namespace) !== undefined) resolve();
  });
  await promise;
  timer.cancel();
  unlink();
  unsubscribe();
}
