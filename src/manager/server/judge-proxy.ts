// Decides which proxies are served: those of existing pods, with the same uid, that carry the proxy of an
// existing app. Invariants: any pod may register, so no part of a registration costs more than a real
// proxy's; a proxy speaks only for the pod that its token is bound to.

import { carriesProxy, INJECTED_LABEL } from "../../api/injected-pod.ts";
import { MAX_NAME_LENGTH } from "../../api/names.ts";
import type { PodRef, RegistrationMessage } from "../../mesh/contract/messages.ts";
import { MAX_CLAIM_BYTES } from "../../mesh/contract/route-type.ts";
import { type PodKey, podKey } from "../../mesh/handover/proxy-facts.ts";
import type { ProxyVerdict } from "../../mesh/link/manager-stream.ts";
import type { PodLists } from "../facts/pod-watch.ts";
import type { Rejections } from "../identity/rejections.ts";
import type { PodIdentity } from "../identity/token-reviewer.ts";
import { claimsIn } from "./registration-tables.ts";

export interface JudgeOptions {
  readonly pods: PodLists;
  readonly apps: {
    readonly hasSynced: boolean;
    get(name: string, namespace: string): unknown;
    list(namespace: string): readonly unknown[];
  };
  /** The leader's address, "" if no leader is known; undefined while this replica leads. */
  readonly leaderElsewhere: () => string | undefined;
  readonly rejections?: Rejections;
}

/**
 * @param registration undefined before anything is read: a pod outside of the mesh is refused then
 * @param caller the pod that the token is bound to; absent without mesh identity
 */
export type JudgeProxy = (registration: RegistrationMessage | undefined, caller?: PodIdentity) => ProxyVerdict;

export function createProxyJudge({ pods, apps, leaderElsewhere, rejections }: JudgeOptions): JudgeProxy {
  return (registration, caller) => {
    const endpoint = leaderElsewhere();
    if (endpoint !== undefined) return { kind: "redirect", endpoint };
    const namedPod = registration?.pod;
    if (registration !== undefined && !(namedPod && isName(namedPod)))
      return { kind: "refuse", message: "the registration names no pod" };
    if (caller && namedPod && !isSamePod(caller, namedPod)) {
      const message = `the token is that of pod ${podKey(caller)} (uid ${caller.uid}), the registration says ${podKey(namedPod)}`;
      rejections?.reject("other-pod", podKey(caller), message);
      return { kind: "refuse", message };
    }
    const claimedPod = caller ?? namedPod;
    if (!claimedPod) return { kind: "serve" }; // only the registration says who calls
    const { namespace } = claimedPod;
    const key = podKey(claimedPod);
    if (!apps.hasSynced) return { kind: "wait", message: "the apps have not been listed yet" };
    if (pods.list(namespace) === undefined) return whyUnlisted(apps, namespace);
    const pod = pods.get(claimedPod.name, namespace);
    if (pod === undefined) return { kind: "refuse", message: `there is no pod ${key}` };
    if (claimedPod.uid !== "" && claimedPod.uid !== pod.metadata.uid) {
      return { kind: "refuse", message: `pod ${key} has uid ${pod.metadata.uid}, not ${claimedPod.uid}` };
    }
    // Anybody who may create a pod can give it the label, and claim routes for it.
    if (caller !== undefined && !carriesProxy(pod)) {
      const message = `pod ${key} carries no proxy`;
      rejections?.reject("no-proxy", key, message);
      return { kind: "refuse", message };
    }
    // A label may change while the proxy enforces a route, and the proxy still needs the next one.
    const mayEnforce = registration === undefined || Boolean(registration.route?.acknowledged);
    if (mayEnforce && apps.list(namespace).length > 0) return { kind: "serve" };
    const app = pod.metadata.labels?.[INJECTED_LABEL];
    if (app === undefined) return { kind: "refuse", message: `pod ${key} lacks the label ${INJECTED_LABEL}` };
    if (apps.get(app, namespace) === undefined) return { kind: "refuse", message: `there is no app ${namespace}/${app}` };
    return { kind: "serve" };
  };
}

/** A proxy names five routes at most. The planner reads each, and a registration could name a million. */
const MAX_IN_DOUBT = 15;
const MAX_CAPABILITIES = 64;
const MAX_CAPABILITY_CHARS = 64;

/** Undefined if a name is missing or too long: the key goes into log lines, answers and a map. */
export function registeredPod({ pod }: RegistrationMessage): PodKey | undefined {
  if (pod === null || pod.name === "") return undefined;
  return [pod.name, pod.namespace].every((name) => name.length <= MAX_NAME_LENGTH) ? podKey(pod) : undefined;
}

/** The bound that the registration exceeds, if any. Checked before anything is decoded or kept. */
export function exceededBound({ capabilities, route }: RegistrationMessage): string | undefined {
  if (capabilities.length > MAX_CAPABILITIES) {
    return `a registration lists at most ${MAX_CAPABILITIES} capabilities, not ${capabilities.length}`;
  }
  if (capabilities.some((capability) => capability.length > MAX_CAPABILITY_CHARS)) {
    return `a capability has at most ${MAX_CAPABILITY_CHARS} characters`;
  }
  const inDoubt = route?.inDoubt ?? [];
  if (inDoubt.length > MAX_IN_DOUBT) return `a registration names at most ${MAX_IN_DOUBT} routes in doubt, not ${inDoubt.length}`;
  const isLong = claimsIn(route).some(({ body }) => body.length > MAX_CLAIM_BYTES);
  return isLong ? `a route in a registration has at most ${MAX_CLAIM_BYTES} bytes` : undefined;
}

function isName({ name, namespace, uid }: PodRef): boolean {
  return [name, namespace, uid].every((text) => text.length <= MAX_NAME_LENGTH && /^[\w.-]*$/.test(text));
}

function isSamePod(caller: PodIdentity, { uid, name, namespace }: PodRef): boolean {
  return (uid === "" || uid === caller.uid) && name === caller.name && namespace === caller.namespace;
}

// The pods of a namespace are listed only while it has an app.
function whyUnlisted(apps: JudgeOptions["apps"], namespace: string): ProxyVerdict {
  if (apps.list(namespace).length === 0) return { kind: "refuse", message: `there is no app in namespace ${namespace}` };
  return { kind: "wait", message: `the pods of namespace ${namespace} have not been listed yet` };
}
