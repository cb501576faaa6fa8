// Decides about one pod, from the apps of its namespace: the pod with its sidecar, no change, or a refusal.
// Pure and idempotent, even after the API server's defaults and the changes of other webhooks. The pod's
// containers, and not its labels, show whether it is injected.
import { annotationKey, appAnnotations } from "../../api/annotations.ts";
import { PROXY_CONTAINER } from "../../api/injected-pod.ts";
import { podKeyWarnings } from "../../api/kusionstack-keys.ts";
import { countTerms } from "../../api/label-selector.ts";
import { annotationsInForce, podAnnotationMisspellings, SHARED_ANNOTATIONS } from "../../api/pod-annotations.ts";
import { formatPath } from "../../api/rule.ts";
import { accessWarnings } from "./api-access.ts";
import { containerWarnings } from "./app-containers.ts";
import { buildPod, ourVolumes } from "./build-pod.ts";
import { dnsWarnings } from "./host-aliases.ts";
import type { Injection, InjectionRequest } from "./injection.ts";
import { isOurs } from "./names.ts";
import { type Plan, planInjection } from "./plan.ts";
import { containersOf, type PodManifest, patchBetween, readPod, theirContainers } from "./pod-manifest.ts";
import { annotationRefusals, specRefusals } from "./refusals.ts";

type App = InjectionRequest["apps"][number];

export function injectPod(request: InjectionRequest): Injection {
  const read = readPod(request.pod);
  if (!read.ok) return refused("the pod", [read.problem]);
  const { pod } = read;
  const apps = request.apps.filter((app) => selects(app, pod));
  const [app] = apps;
  if (app === undefined) return { kind: "unchanged", app: undefined, warnings: [] };
  return apps.length > 1 ? refused(podText(request, pod), [severalApps(apps)]) : injectFor(app, pod, request);
}

/** Each container gets variables and mounts: 50,000 containers of 30 bytes would get a patch of 37 MB. */
const MAX_CONTAINERS = 1_000;

// An empty selector would select the pods of other apps. Only an invalid stored object has one.
function selects({ pods }: App, { metadata }: PodManifest): boolean {
  return countTerms(pods.selector) > 0 && pods.selects(metadata.labels);
}

function injectFor(app: App, pod: PodManifest, request: InjectionRequest): Injection {
  const { annotations } = pod.metadata;
  const { settings } = request;
  const count = containersOf(pod.spec).length;
  if (count > MAX_CONTAINERS) {
    const message = `spec.containers and spec.initContainers have ${count} entries together, but at most ${MAX_CONTAINERS} are allowed`;
    return refused(podText(request, pod), [message]);
  }
  const inForce = annotationsInForce(annotations, app.object.metadata.annotations, settings.defaults);
  const plan = planInjection(inForce, settings, pod.spec, app.spec?.webhook);
  const warnings = warningsOf(pod, plan);
  const ofSpec = specRefusals(pod.spec, plan, ourVolumes(plan.mode));
  const refusals = [...appRefusals(app), ...annotationRefusals(annotations), ...ofSpec];
  const { kind, name } = app.ref;
  if (refusals.length > 0) return refused(`${podText(request, pod)} of ${kind} ${name}`, refusals, warnings);
  const injected = buildPod(pod, name, app.pods.shardOfNewPod?.(pod.metadata.labels ?? {}), plan);
  const patch = patchBetween(pod, injected);
  if (patch.length === 0) return { kind: "unchanged", app: name, warnings };
  return { kind: "changed", app: name, pod: injected, patch, warnings };
}

// The validating webhook refuses such annotations too, but it may not have answered.
function appRefusals({ ref, object }: App): string[] {
  return [...appAnnotations(object.metadata)]
    .filter(({ path: [, annotation] }) => SHARED_ANNOTATIONS.includes(String(annotation)))
    .map(({ path, message }) => `${ref.kind} ${ref.name}: ${formatPath(["metadata", ...path])}: ${message}`);
}

function severalApps(apps: readonly App[]): string {
  const names = apps.map(({ ref }) => `${ref.kind} ${ref.name}`).sort();
  return `${names.join(" and ")} both select it, and a pod belongs to one: remove one of them, or the label that one selects`;
}

function warningsOf({ metadata, spec }: PodManifest, plan: Plan): string[] {
  return [
    ...podAnnotationMisspellings(metadata.annotations),
    ...podKeyWarnings(metadata, theirContainers(spec)),
    ...theirContainers(spec).flatMap((container) => containerWarnings(container, plan)),
    ...accessWarnings(spec),
    ...dnsWarnings(spec, plan),
    ...(plan.webhook?.kind === "direct" ? [`webhooks are not intercepted: ${plan.webhook.message}`] : []),
    ...imageWarnings(metadata.annotations, spec, plan),
    ...(plan.native ? [] : plainWarnings(spec, plan)),
  ];
}

// Another image may be intended (a registry's mirror) or left over from an older installation.
function imageWarnings(annotations: PodManifest["metadata"]["annotations"], spec: PodManifest["spec"], plan: Plan): string[] {
  if (annotations?.[annotationKey("proxy-image")] !== undefined) return [];
  return containersOf(spec)
    .filter(({ name, image = plan.image }) => name === PROXY_CONTAINER && image !== plan.image)
    .map(({ name, image }) => `container ${name} has the image ${image} already, which is kept; the mesh's is ${plan.image}`);
}

function plainWarnings({ restartPolicy = "Always", initContainers = [] }: PodManifest["spec"], { egress }: Plan): string[] {
  const first = initContainers.find((each) => !isOurs(each));
  const warnings: string[] = [];
  if (restartPolicy !== "Always") {
    warnings.push(`restartPolicy ${restartPolicy}: without native sidecars the pod does not end by itself`);
  }
  if (first !== undefined) {
    const servers = `the API server${egress ? " or other servers" : ""}`;
    warnings.push(`init container ${first.name} runs before the proxy: it cannot reach ${servers}`);
  }
  return warnings;
}

function podText({ namespace }: InjectionRequest, { metadata }: PodManifest): string {
  const name = metadata.name || (metadata.generateName === undefined ? "(no name)" : `${metadata.generateName}*`);
  return `pod ${namespace}/${name}`;
}

function refused(what: string, refusals: readonly string[], warnings: readonly string[] = []): Injection {
  return { kind: "refused", message: `ctrlmesh: ${what} cannot be injected: ${refusals.join("; ")}`, warnings };
}
