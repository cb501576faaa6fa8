// The conditions TrafficIntercepted and WebhookIntercepted: what the operator sends, and the calls of its
// webhooks, go through the proxies. Pure. Both are about pods as they run and Services as they are, so a pod
// that was injected before a change of the spec counts as not intercepted.

import { IPTABLES_CONTAINER } from "../../api/injected-pod.ts";
import type { WebhookServer } from "../../api/operator-fields.ts";
import type { Pod, Service } from "../../kube/client/resources.ts";
import { isOurs, WEBHOOK_PORT } from "../injection/names.ts";
import type { PodSpec } from "../injection/pod-manifest.ts";
import { proxiedServer, webhookPort } from "../injection/webhook-port.ts";
import { barePods, conditionOf, countText, meshedPods, type StatusFacts, type Verdict, type WebhookReason } from "./facts.ts";
import type { Handover } from "./handover.ts";

export function interceptedVerdict({ pods }: Pick<StatusFacts, "pods">): Verdict {
  const bare = barePods({ pods });
  const [first] = bare;
  if (first !== undefined) {
    const who = bare.length === 1 ? `pod ${first.name} carries` : `${bare.length} running pods, pod ${first.name} first, carry`;
    const message = `${who} no proxy and may write everything: restart to have the proxy injected`;
    return { status: "False", reason: "PodsWithoutProxy", message };
  }
  const meshed = meshedPods({ pods }).length;
  if (meshed === 0) {
    const message = "no pod has the proxy yet, so nothing is isolated: a pod gets it when it is created";
    return { status: "Unknown", reason: "NoPods", message };
  }
  const message = `${countText(meshed, "pod")} with the proxy, none without${mismatchText({ pods })}`;
  return { status: "True", reason: "AllInjected", message };
}

function mismatchText({ pods }: Pick<StatusFacts, "pods">): string {
  const [first, ...others] = pods.filter(({ mismatched, ended }) => mismatched && !ended);
  if (first === undefined) return "";
  const who = `pod ${first.name}${others.length === 0 ? "" : ` and ${others.length} more`}`;
  return `; spec.selector does not match ${who}: the selector of a root leaves out no pod of the StatefulSet`;
}

/** The mesh is not in force for every pod. Of an app that is being deleted, this is the aim. */
export function notIntercepted(
  own: Verdict,
  facts: StatusFacts,
  { handover }: { readonly handover: Handover },
): Verdict | undefined {
  if (own.status === "True" || handover.handover?.phase === "Dissolving") return undefined;
  return { status: "False", reason: "NotIntercepted", message: own.message + neverInjectedText(facts) };
}

/** Explains an app whose pods never get a proxy because it is in the manager's namespace. */
function neverInjectedText({ injection: next, previous }: StatusFacts): string {
  const injection = next ?? conditionOf(previous, "InjectionReady");
  return injection?.reason === "ManagerNamespace" ? `; ${injection.message}` : "";
}

interface WebhookFacts {
  readonly server: WebhookServer;
  readonly pods: readonly Pod[];
  /** Why the pod's proxy has no certificate; "" if it has, or has not reported. */
  readonly problemOf: (pod: Pod) => string;
  /** The Services of the app's namespace; undefined until they have been listed. */
  readonly services: readonly Service[] | undefined;
}

type Webhook = Verdict<WebhookReason>;

export function webhookVerdict({ server, pods, services, problemOf }: WebhookFacts): Webhook {
  if (pods.length === 0) return { status: "Unknown", reason: "NoPods", message: "no pod has the app's proxy" };
  const looks = pods.map((pod) => ({ pod, ...lookAt(pod, server, problemOf(pod)) }));
  for (const reason of FAULTS) {
    const [first, ...others] = looks.filter((look) => look.reason === reason);
    if (first === undefined) continue;
    const who = `pod ${first.pod.metadata.name}${others.length === 0 ? "" : ` and ${others.length} more`}`;
    return { status: "False", reason, message: `${who}: ${first.message}` };
  }
  if (services === undefined) {
    return { status: "Unknown", reason: "NotKnown", message: "the Services of the namespace have not been listed yet" };
  }
  const used = services.flatMap((service) => usesOf(service, looks, server.port));
  const direct = used.find(({ isProxied }) => !isProxied);
  if (direct !== undefined) {
    const message = `Service ${direct.name} has the number ${server.port} as its targetPort, which leads past the proxy of pod ${direct.pod}: use the name of the port, or iptables mode`;
    return { status: "False", reason: "NumericTargetPort", message };
  }
  const names = [...new Set(used.map(({ name }) => name))];
  if (names.length === 0) {
    const message = `no Service of the namespace leads to port ${server.port} of the pods: the mesh cannot see how the API server calls the webhooks`;
    return { status: "Unknown", reason: "NoService", message };
  }
  const message = `${countText(pods.length, "pod")}: calls through ${names.length === 1 ? `Service ${names[0]}` : `${names.length} Services`} go to the proxies`;
  return { status: "True", reason: "Intercepted", message };
}

/** The first fault has priority. A restart of the pods corrects only the last one. */
const FAULTS = ["PortNotNamed", "NoCertificateVolume", "CertificateUnreadable", "InjectedBefore"] as const;

interface Look {
  /** The pod's network redirects the port. Otherwise its names lead to the proxy. */
  readonly redirects: boolean;
  readonly reason?: (typeof FAULTS)[number];
  readonly message?: string;
}

function lookAt(pod: Pod, server: WebhookServer, problem: string): Look {
  const spec = specOf(pod);
  const redirects = spec.initContainers?.some(({ name }) => name === IPTABLES_CONTAINER) === true;
  const wanted = webhookPort(spec, server, redirects);
  if (wanted.kind === "direct") return { redirects, reason: wanted.reason, message: wanted.message };
  const actual = proxiedServer(spec);
  if (actual?.port === wanted.port && actual.certDir === wanted.certDir) {
    return problem === "" ? { redirects } : { redirects, reason: "CertificateUnreadable", message: problem };
  }
  const message = "it was created before the spec had this webhook server: restart the pods, one workload after the other";
  return { redirects, reason: "InjectedBefore", message };
}

function usesOf({ metadata, spec }: Service, looks: readonly (Look & { readonly pod: Pod })[], port: number) {
  const selector = Object.entries(spec?.selector ?? {});
  if (selector.length === 0) return [];
  const targets = (spec?.ports ?? [])
    .filter(({ protocol = "TCP" }) => protocol === "TCP")
    .map(({ targetPort, port: own }) => targetPort ?? own);
  return looks
    .filter(({ pod }) => selector.every(([key, value]) => pod.metadata.labels?.[key] === value))
    .flatMap(({ pod, redirects }) => {
      const numbers = targets.map((target) => (typeof target === "string" ? numberOf(pod, target) : target));
      const ports = numbers.filter((number) => number === port || number === WEBHOOK_PORT);
      const [name, podName] = [metadata.name ?? "", pod.metadata.name ?? ""];
      return ports.map((number) => ({ name, pod: podName, isProxied: redirects || number === WEBHOOK_PORT }));
    });
}

// EndpointSlices use the first port of the name.
function numberOf(pod: Pod, name: string): number | undefined {
  const ports = specOf(pod)
    .containers.filter((each) => !isOurs(each))
    .flatMap(({ ports = [] }) => ports);
  return ports.find((each) => each.name === name && (each.protocol ?? "TCP") === "TCP")?.containerPort;
}

// The API server has checked the spec.
function specOf({ spec }: Pod): PodSpec {
  return { containers: [], ...spec } as PodSpec;
}
