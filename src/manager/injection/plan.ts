// Decides how a pod is injected, from the annotations in force and the manager's settings. Pure.
import {
  ANNOTATIONS,
  type Annotations,
  annotationKey,
  annotationValue,
  INTERCEPT_MODES,
  type InterceptMode,
} from "../../api/annotations.ts";
import type { WebhookServer } from "../../api/operator-fields.ts";
import { type ProxyAnnotations, proxyAnnotations, RESOURCE_PAIRS } from "../../api/pod-annotations.ts";
import { parseQuantity } from "../../api/quantity.ts";
import type { InjectionSettings } from "./injection.ts";
import type { PodSpec, Resources } from "./pod-manifest.ts";
import { type Direct, type Intercepted, webhookPort } from "./webhook-port.ts";

export interface Plan {
  readonly mode: InterceptMode;
  /** The names of the Service `kubernetes` resolve to the proxy, which then also listens on 443. */
  readonly hostAliases: boolean;
  readonly native: boolean;
  readonly egress: boolean;
  readonly image: string;
  readonly resources: Resources;
  /** Annotations that are passed on to the sidecar unchanged. */
  readonly annotated: ProxyAnnotations;
  /** Undefined: the operator has no webhook server. */
  readonly webhook: Intercepted | Direct | undefined;
  readonly graceSeconds: number;
  readonly settings: InjectionSettings;
}

/** Kubernetes' own default of terminationGracePeriodSeconds. */
const DEFAULT_GRACE_SECONDS = 30;

export function planInjection(
  annotations: Annotations,
  settings: InjectionSettings,
  spec: PodSpec,
  server: WebhookServer | undefined,
): Plan {
  const mode = INTERCEPT_MODES.find((each) => each === annotationValue(annotations, "intercept")) ?? "env";
  const native = annotationValue(annotations, "native-sidecar");
  const { terminationGracePeriodSeconds: graceSeconds } = spec;
  const annotated = proxyAnnotations(annotations);
  return {
    mode,
    hostAliases: annotationValue(annotations, "host-aliases") === "true" && mode !== "iptables",
    native: native === "" ? settings.nativeSidecars : native === "true",
    egress: annotationValue(annotations, "egress") === "true",
    image: annotated.fields.image ?? settings.proxyImage,
    resources: resourcesOf(annotations),
    annotated,
    webhook: server && webhookPort(spec, server, mode === "iptables"),
    graceSeconds: typeof graceSeconds === "number" ? graceSeconds : DEFAULT_GRACE_SECONDS,
    settings,
  };
}

// If only the limit or only the request is set, the default of the other is adjusted to it.
function resourcesOf(annotations: Annotations): Resources {
  const resources = { requests: {} as Record<string, string>, limits: {} as Record<string, string> };
  for (const { resource, request, limit } of RESOURCE_PAIRS) {
    const [asked, allowed] = [annotations[annotationKey(request)], annotations[annotationKey(limit)]];
    const requested = asked ?? lesser(ANNOTATIONS[request].fallback, allowed);
    const limited = allowed ?? greater(ANNOTATIONS[limit].fallback, asked);
    if (requested !== undefined) resources.requests[resource] = requested;
    if (limited !== undefined) resources.limits[resource] = limited;
  }
  return resources;
}

function lesser(fallback: string | undefined, limit: string | undefined): string | undefined {
  return fallback !== undefined && limit !== undefined && amount(limit) < amount(fallback) ? limit : fallback;
}

function greater(fallback: string | undefined, request: string | undefined): string | undefined {
  return fallback !== undefined && request !== undefined && amount(request) > amount(fallback) ? request : fallback;
}

const amount = (quantity: string) => parseQuantity(quantity) ?? 0;
