// Which proxies are served: only pods that exist, with the same uid, and that carry the proxy of an app that exists. Pure
// but for the stores it reads. (Authentication by token comes with the installation: docs/design.md, Limitations.)
import type { VirtualApp } from "../api/virtual-app.ts";
import type { Pod } from "../kube/client/resources.ts";
import type { Store } from "../runtime/store.ts";
import type { HelloMessage } from "../wire/messages.ts";
import type { Admission } from "./snapshot-server/snapshot-server.ts";
import { INJECTED_LABEL } from "./translate/app-pods.ts";

export interface AdmissionOptions {
  readonly pods: Store<Pod>;
  readonly apps: Store<VirtualApp>;
  /** Undefined while this replica leads; else where the leader is, "" if nobody is known to lead. */
  readonly leaderElsewhere: () => string | undefined;
}

export function createAdmission({ pods, apps, leaderElsewhere }: AdmissionOptions): (hello: HelloMessage) => Admission {
  return ({ pod: said }) => {
    const endpoint = leaderElsewhere();
    if (endpoint !== undefined) return { kind: "redirect", endpoint };
    if (!pods.hasSynced || !apps.hasSynced) return { kind: "redirect", endpoint: "" };
    if (said === null) return { kind: "refuse", message: "the hello names no pod" };
    const key = `${said.namespace}/${said.name}`;
    const pod = pods.get(said.name, said.namespace);
    if (pod === undefined) return { kind: "refuse", message: `there is no pod ${key}` };
    if (said.uid !== "" && said.uid !== pod.metadata.uid) {
      return { kind: "refuse", message: `pod ${key} has uid ${pod.metadata.uid}, not ${said.uid}` };
    }
    const app = pod.metadata.labels?.[INJECTED_LABEL];
    if (app === undefined) return { kind: "refuse", message: `pod ${key} lacks the label ${INJECTED_LABEL}` };
    if (apps.get(app, said.namespace) === undefined)
      return { kind: "refuse", message: `there is no VirtualApp ${said.namespace}/${app}` };
    return { kind: "serve" };
  };
}
