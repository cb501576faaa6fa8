// Which proxies are served: only pods that exist, with the same uid, and that carry the proxy of an app that
// exists. Pure but for the stores it reads. With mesh identity a proxy speaks for the pod that its token is
// bound to, and for no other.
import { MAX_NAME_LENGTH } from "../../api/names.ts";
import type { RegistrationMessage } from "../../wire/messages.ts";
import { carriesProxy, INJECTED_LABEL } from "../facts/injected-pod.ts";
import { podKey } from "../facts/pod-key.ts";
import type { PodLists } from "../facts/pod-watch.ts";
import type { Rejections } from "../identity/rejections.ts";
import type { PodIdentity } from "../identity/token-reviewer.ts";
import type { WelcomeVerdict } from "./stream-machine.ts";

export interface AdmissionOptions {
  readonly pods: PodLists;
  readonly apps: {
    readonly hasSynced: boolean;
    get(name: string, namespace: string): unknown;
    list(namespace: string): readonly unknown[];
  };
  /** Undefined while this replica leads; else where the leader is, "" if nobody is known to lead. */
  readonly leaderElsewhere: () => string | undefined;
  /** Told of those whose token is not that of the pod that they name. */
  readonly rejections?: Rejections;
}

/**
 * @param registration undefined before anything of it is read: a pod that is none of the mesh's is refused
 * then, whatever it sends
 * @param caller the pod that the token is bound to; absent where nobody proves who it is
 */
export type Admit = (registration: RegistrationMessage | undefined, caller?: PodIdentity) => WelcomeVerdict;

export function createAdmission({ pods, apps, leaderElsewhere, rejections }: AdmissionOptions): Admit {
  return (registration, caller) => {
    const endpoint = leaderElsewhere();
    if (endpoint !== undefined) return { kind: "redirect", endpoint };
    const named = registration?.pod;
    if (registration !== undefined && !(named && isName(named)))
      return { kind: "refuse", message: "the registration names no pod" };
    if (caller && named && !isSamePod(caller, named)) {
      const message = `the token is that of pod ${podKey(caller)} (uid ${caller.uid}), the registration says ${podKey(named)}`;
      rejections?.reject("other-pod", podKey(caller), message);
      return { kind: "refuse", message };
    }
    const said = caller ?? named;
    if (!said) return { kind: "serve" }; // only the registration says who calls
    const { namespace } = said;
    const key = podKey(said);
    if (!apps.hasSynced) return { kind: "wait", message: "the apps have not been listed yet" };
    if (pods.list(namespace) === undefined) return whyUnlisted(apps, namespace);
    const pod = pods.get(said.name, namespace);
    if (pod === undefined) return { kind: "refuse", message: `there is no pod ${key}` };
    if (said.uid !== "" && said.uid !== pod.metadata.uid) {
      return { kind: "refuse", message: `pod ${key} has uid ${pod.metadata.uid}, not ${said.uid}` };
    }
    // Whoever makes a pod can label it, and say what it enforces.
    if (caller !== undefined && !carriesProxy(pod)) {
      const message = `pod ${key} carries no proxy`;
      rejections?.reject("no-proxy", key, message);
      return { kind: "refuse", message };
    }
    // A label may change while the proxy serves. A proxy that enforces a route is served, so that it can get
    // the next route.
    const mayEnforce = registration === undefined || Boolean(registration.route?.acknowledged);
    if (mayEnforce && apps.list(namespace).length > 0) return { kind: "serve" };
    const app = pod.metadata.labels?.[INJECTED_LABEL];
    if (app === undefined) return { kind: "refuse", message: `pod ${key} lacks the label ${INJECTED_LABEL}` };
    if (apps.get(app, namespace) === undefined) return { kind: "refuse", message: `there is no app ${namespace}/${app}` };
    return { kind: "serve" };
  };
}

/** What else a registration may say ends up in lines of the log and in answers. */
function isName({ name, namespace, uid }: NonNullable<RegistrationMessage["pod"]>): boolean {
  return [name, namespace, uid].every((text) => text.length <= MAX_NAME_LENGTH && /^[\w.-]*$/.test(text));
}

function isSamePod(caller: PodIdentity, said: NonNullable<RegistrationMessage["pod"]>): boolean {
  const isUid = said.uid === "" || said.uid === caller.uid;
  return isUid && said.name === caller.name && said.namespace === caller.namespace;
}

// Nobody asks for the pods of a namespace without an app.
function whyUnlisted(apps: AdmissionOptions["apps"], namespace: string): WelcomeVerdict {
  if (apps.list(namespace).length === 0) return { kind: "refuse", message: `there is no app in namespace ${namespace}` };
  return { kind: "wait", message: `the pods of namespace ${namespace} have not been listed yet` };
}
