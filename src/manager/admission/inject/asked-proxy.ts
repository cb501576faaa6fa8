// The validating webhook of the pods that ask for the proxy by a label, as KusionStack's mesh defines it.
// Invariant: such a pod has the proxy or is refused. So a pod that no selector matches, or for which the API
// server does not use the app's entry yet, cannot become a second writer.

import { carriesProxy } from "../../../api/injected-pod.ts";
import { PROXY_REQUESTS } from "../../../api/sharding-keys.ts";
import { nameList } from "../../../base/name-list.ts";
import type { Pod } from "../../../kube/client/resources.ts";
import { type App, type Apps, endingText, isLive, type Source } from "../../apps/app.ts";
import type { AdmissionAnswer, AdmissionRequest } from "../server/admission-review.ts";
import type { Review } from "../server/webhook.ts";
import { forbidden, notYet, whyNotAPod } from "./inject-webhook.ts";

interface AskedProxyOptions {
  readonly apps: Pick<Apps, "list" | "hasSynced">;
  readonly sources: readonly Pick<Source, "words">[];
}

export function createAskedProxyWebhook({ apps, sources }: AskedProxyOptions): Review {
  const kinds = sources.map(({ words }) => words.kind).join(" or ");
  return (request) => {
    const wrong = whyNotAPod(request);
    if (wrong !== undefined) return { allowed: false, reason: "BadRequest", message: wrong };
    const pod = request.object as Pod;
    // The app's own entry checks whether the proxy is as it must be.
    if (carriesProxy(pod)) return { allowed: true };
    const asked = PROXY_REQUESTS.filter((key) => pod.metadata.labels?.[key] === "true");
    if (asked.length === 0) return { allowed: true };
    if (!apps.hasSynced) throw notYet("has not listed the apps yet");
    return refusal({ kinds, asked, pod, namespace: request.namespace, apps: apps.list(request.namespace) });
  };
}

const MAX_NAMES = 3;

interface AskingPod extends Pick<AdmissionRequest, "namespace"> {
  readonly pod: Pod;
  /** Its labels that ask for the proxy. */
  readonly asked: readonly string[];
  readonly kinds: string;
  readonly apps: readonly App[];
}

function refusal({ kinds, asked, pod, namespace, apps }: AskingPod): AdmissionAnswer {
  const asks = `the pod asks for the proxy (${asked.length === 1 ? "label" : "labels"} ${asked.join(" and ")})`;
  const app = apps.find(({ pods }) => pods.selects(pod.metadata.labels));
  if (app !== undefined) return forbidden(`${asks} and has none: ${missingText(app)}`);
  const names = apps.map(nameOf);
  const others = names.length === 0 ? "" : ` (there are ${nameList(names, MAX_NAMES)})`;
  return forbidden(
    `${asks}, but no ${kinds} of namespace ${namespace} selects it${others}. Without the proxy it would write beside the operator's other pods. Correct the selector, or remove the label`,
  );
}

function missingText(app: App): string {
  if (!isLive(app)) return `${nameOf(app)}, which selects it, ${endingText(app)}`;
  if (app.spec === undefined) return `${nameOf(app)}, which selects it, is not valid: ${app.problems.join("; ")}`;
  return `the API server does not call the mesh yet for the pods of ${nameOf(app)}, which selects it. Try again when its condition InjectionReady is True`;
}

function nameOf({ ref: { kind, name } }: App): string {
  return `${kind} ${name}`;
}
