// The mutating webhook that puts the proxy into an app's pods, at the path of that app. Invariant: a pod that
// an app selects is injected or refused with a message. Without a proxy it would own everything in addition
// to the other pods. A pod passes unchanged only if the app does not select it, or if the app's deletion is
// complete. The webhook only reads, so a dry run changes nothing.
import { StatusError } from "../../../kube/status.ts";
import type { KubeObject } from "../../../kube/types.ts";
import { type App, type Apps, endingText, isHeld, isLive } from "../../apps/app.ts";
import { injectPod } from "../../injection/inject-pod.ts";
import type { Injection, InjectionSettings } from "../../injection/injection.ts";
import { type PodManifest, patchBetween } from "../../injection/pod-manifest.ts";
import type { AdmissionAnswer, AdmissionRequest } from "../server/admission-review.ts";
import type { AppName, Caller, Review } from "../server/webhook.ts";
import type { KeepRevision } from "./keep-revision.ts";

export interface InjectOptions {
  readonly apps: Apps;
  /**
   * Reads the app from the API server for this address; undefined if it does not exist. The store may be
   * older than the API server's own state.
   */
  readonly read: (app: AppName, address: string) => Promise<App | undefined>;
  /** See keep-revision.ts. */
  readonly keepRevision?: KeepRevision;
  /** Undefined until the required facts about the cluster are known. */
  readonly settings: () => InjectionSettings | undefined;
}

/** Creates the review of each app's path. */
export function createInjectWebhook({ apps, read, keepRevision, settings }: InjectOptions): (app: AppName) => Review {
  return (name) => async (request, caller) => {
    const wrong = whyNotAPod(request, name);
    if (wrong !== undefined) return { allowed: false, reason: "BadRequest", message: wrong };
    if (!apps.hasSynced) throw notYet("has not listed the apps yet");
    const injection = settings();
    if (injection === undefined) throw notYet("does not know the address of the API server yet");
    // An app that this replica does not know yet was waited for (await-app.ts).
    const seen = apps.get(name.name, name.namespace);
    // The app may have been created again under its name, or this replica's watch may lag. So read the app
    // before a pod passes unchanged.
    const app = seen === undefined || asksFor(seen, request) ? seen : await readNow(read, name, caller.address);
    if (app === undefined) {
      const message = `there is no app ${name.namespace}/${name.name}; if it was just created or deleted, try again`;
      return { allowed: false, reason: "NotFound", message };
    }
    const others = apps.list(name.namespace).filter(({ ref }) => ref.name !== app.ref.name || ref.kind !== app.ref.kind);
    const kept = asksFor(app, request) ? await keepNow(keepRevision, app, request, caller) : undefined;
    if (kept === undefined) return judgePod(app, request, [app, ...others], injection);
    const answer = judgePod(app, { ...request, object: kept }, [app, ...others], injection);
    if (!answer.allowed) return answer;
    return { ...answer, patch: [...patchBetween(request.object as PodManifest, kept), ...(answer.patch ?? [])] };
  };
}

/** True if the pod must not pass unchanged. */
function asksFor(app: App, { object }: AdmissionRequest): boolean {
  return isLive(app) && app.pods.selects((object as KubeObject).metadata?.labels);
}

async function readNow(read: InjectOptions["read"], name: AppName, address: string): Promise<App | undefined> {
  try {
    return await read(name, address);
  } catch {
    throw notYet(`cannot read app ${name.namespace}/${name.name} now`);
  }
}

async function keepNow(keep: InjectOptions["keepRevision"], app: App, { object }: AdmissionRequest, caller: Caller) {
  try {
    return await keep?.(app, object as PodManifest, caller);
  } catch {
    throw notYet("cannot read the revision that the pod is to have now");
  }
}

/**
 * Checks an app's pods after all mutating webhooks. In its second round the API server calls only webhooks
 * that it called in the first round. So a later webhook that adds a selected label to a pod, or reverts the
 * injection, would let the pod run without a proxy.
 */
export function createAdmitWebhook(inject: (app: AppName) => Review): (app: AppName) => Review {
  return (name) => async (request, caller) => {
    const answer = await inject(name)(request, caller);
    if (!answer.allowed) return answer;
    const changed = (answer.patch ?? []).map(({ path }) => path);
    if (changed.length === 0) return { allowed: true };
    const message = `the pod is one of app ${name.name} and is not injected as it must be (${changed.join(", ")}): a webhook that was asked after ctrlmesh's has changed its labels, or taken changes back; let the workload's template have the labels, or let that webhook leave the pod alone`;
    return { allowed: false, reason: "Forbidden", message };
  };
}

function judgePod(app: App, { object }: AdmissionRequest, all: readonly App[], settings: InjectionSettings): AdmissionAnswer {
  const { kind, namespace, name } = app.ref;
  // The webhook configuration may be older than the app, and its entry may select more.
  if (!app.pods.selects((object as KubeObject).metadata?.labels)) return { allowed: true };
  if (!isLive(app)) return answerWhileEnding(app);
  if (app.spec === undefined) {
    const problems = app.problems.join("; ");
    return {
      allowed: false,
      reason: "Forbidden",
      message: `${kind} ${name} is not valid, so its pods get no route: ${problems}`,
    };
  }
  return answerOf(injectPod({ pod: object, namespace, apps: all.filter(isLive), settings }));
}

// Until the deletion is complete, other subsets still own namespaces, so no pod without routes may start.
function answerWhileEnding(app: App): AdmissionAnswer {
  const { kind, name } = app.ref;
  const ends = `${kind} ${name} ${endingText(app)}`;
  if (!isHeld(app)) return { allowed: true, warnings: [`${ends}: the pod is not injected`] };
  const message = `${ends}, and its namespaces are moved back to one owner first; the pod can be created, without a proxy, when that is done`;
  return { allowed: false, reason: "Forbidden", message };
}

function answerOf(injection: Injection): AdmissionAnswer {
  const { warnings } = injection;
  switch (injection.kind) {
    case "changed":
      return { allowed: true, patch: injection.patch, warnings };
    case "unchanged":
      return { allowed: true, warnings };
    case "refused":
      return { allowed: false, reason: "Forbidden", message: injection.message, warnings };
    default:
      return injection satisfies never;
  }
}

function whyNotAPod({ resource, operation, subResource = "", namespace, object }: AdmissionRequest, app: AppName) {
  if (resource.group !== "" || resource.resource !== "pods" || subResource !== "" || operation !== "CREATE") {
    return `this webhook is for the creation of pods, not for ${operation} of ${resource.resource}`;
  }
  if (namespace !== app.namespace) return `the pods of namespace ${namespace} are not those of app ${app.namespace}/${app.name}`;
  return object === undefined || object === null ? "the review carries no pod" : undefined;
}

// The failurePolicy decides about the pod, or another replica answers the API server's next attempt.
function notYet(what: string): StatusError {
  const message = `ctrlmesh: this replica of the manager ${what}`;
  return new StatusError("ServiceUnavailable", message, { retryAfterSeconds: 1 });
}
