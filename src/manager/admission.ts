// Which proxies are served: only pods that exist, with the same uid, and that carry the proxy of an app that exists. Pure
// but for the stores it reads. (Authentication by token comes with the installation: docs/design.md, Limitations.)
import type { VirtualApp } from "../api/virtual-app.ts";
import type { Store } from "../runtime/store.ts";
import type { HelloMessage } from "../wire/messages.ts";
import type { PodLists } from "./pod-watch.ts";
import type { Admission } from "./snapshot-server/snapshot-server.ts";
import { INJECTED_LABEL, podKey } from "./translate/app-pods.ts";

export interface AdmissionOptions {
  readonly pods: PodLists;
  readonly apps: Pick<Store<VirtualApp>, "get" | "list" | "hasSynced">;
  /** Undefined while this replica leads; else where the leader is, "" if nobody is known to lead. */
  readonly leaderElsewhere: () => string | undefined;
}

export function createAdmission({ pods, apps, leaderElsewhere }: AdmissionOptions): (hello: HelloMessage) => Admission {
  return (hello) => {
    const said = hello.pod;
    const endpoint = leaderElsewhere();
    if (endpoint !== undefined) return { kind: "redirect", endpoint };
    if (said === null) return { kind: "refuse", message: "the hello names no pod" };
    const { namespace } = said;
    const key = podKey(said);
    if (!apps.hasSynced) return { kind: "wait", message: "VirtualApps have not been listed yet" };
    if (pods.list(namespace) === undefined) return whyUnlisted(apps, namespace);
    const pod = pods.get(said.name, namespace);
    if (pod === undefined) return { kind: "refuse", message: `there is no pod ${key}` };
    if (said.uid !== "" && said.uid !== pod.metadata.uid) {
      return { kind: "refuse", message: `pod ${key} has uid ${pod.metadata.uid}, not ${said.uid}` };
    }
    // Labels change while proxies serve: what it has to go on with counts, whoever it was told by.
    if (hello.enforced !== null && apps.list(namespace).length > 0) return { kind: "serve" };
    const app = pod.metadata.labels?.[INJECTED_LABEL];
    if (app === undefined) return { kind: "refuse", message: `pod ${key} lacks the label ${INJECTED_LABEL}` };
    if (apps.get(app, namespace) === undefined) return { kind: "refuse", message: `there is no VirtualApp ${namespace}/${app}` };
    return { kind: "serve" };
  };
}

// Nobody asks for the pods of a namespace without a VirtualApp.
function whyUnlisted(apps: AdmissionOptions["apps"], namespace: string): Admission {
  if (apps.list(namespace).length === 0) return { kind: "refuse", message: `there is no VirtualApp in namespace ${namespace}` };
  return { kind: "wait", message: `the pods of namespace ${namespace} have not been listed yet` };
}
