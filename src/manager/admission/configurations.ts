// The webhook configurations as they should be, from the VirtualApps. Pure. Invariants: the API server calls us for pods that an app
// selects and for no other one, so that nothing else in the cluster depends on the manager; never for the manager's own namespace, or
// it could not come up again; and equal facts give equal objects, in the same order, with every default written out.
import { ROUTES_FINALIZER } from "../../api/finalizers.ts";
import { type LabelSelector, labelSelectorSchema } from "../../api/label-selector.ts";
import { validate } from "../../api/problems.ts";
import { VIRTUAL_APPS } from "../../api/resources.ts";
import { type VirtualApp, validateVirtualApp } from "../../api/virtual-app.ts";
import type {
  MutatingWebhook,
  MutatingWebhookConfiguration,
  ValidatingWebhook,
  ValidatingWebhookConfiguration,
  WebhookClientConfig,
} from "../../kube/client/resources.ts";
import { admitPath, injectPath, VALIDATE_EARLY_PATH, VALIDATE_PATH } from "./webhook.ts";

export const MUTATING_NAME = "ctrlmesh-injection";
export const VALIDATING_NAME = "ctrlmesh-validation";

const SUFFIX = "ctrlmesh.kruise.io";
export const VALIDATION_WEBHOOK_NAME = `virtualapps.validate.${SUFFIX}`;

/** The API server gives up after this; our own waits are far shorter. Pods of a ReplicaSet are tried again. */
const INJECT_TIMEOUT_SECONDS = 10;
const VALIDATE_TIMEOUT_SECONDS = 5;

/** Where the API server finds us. */
export interface WebhookTarget {
  /** Namespace of the manager and its Service. */
  readonly namespace: string;
  readonly serviceName: string;
  /** Instead of the Service: https, for a manager outside of the cluster; "" for none. */
  readonly url: string;
}

/** True if pods are to be injected for this app. */
export function isInjected(app: VirtualApp, managerNamespace: string): boolean {
  const { namespace, deletionTimestamp, finalizers = [] } = app.metadata;
  if (namespace === managerNamespace) return false;
  const isBringingBack = finalizers.includes(ROUTES_FINALIZER);
  if (deletionTimestamp !== undefined && !isBringingBack) return false;
  if (validateVirtualApp(app).ok) return true;
  // An app that was served before goes on being asked for: its pods are refused until it is mended, or until its routes are brought
  // back. Let through, they would run without the proxy, beside those that have one, and own everything.
  const served = app.status?.routeVersion !== undefined || isBringingBack;
  return served && validate(labelSelectorSchema, app.spec.selector).ok;
}

export function injectionConfiguration(
  apps: readonly VirtualApp[],
  target: WebhookTarget,
  trustPem: string,
): MutatingWebhookConfiguration {
  const injections = apps
    .filter((app) => isInjected(app, target.namespace))
    .map((app) => injectionWebhook(app, target, trustPem))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
  const early: MutatingWebhook = { ...validationWebhook(target, VALIDATE_EARLY_PATH, trustPem), reinvocationPolicy: "Never" };
  return { metadata: metadata(MUTATING_NAME), webhooks: [early, ...injections] };
}

/** Name of an app's webhook, as the API server says it in refusals. Namespaces hold no dots, so no two apps share one. */
export function injectionWebhookName({ namespace, name }: ReturnType<typeof appName>): string {
  return `${name}.${namespace}.inject.${SUFFIX}`; // 63 + 63 + 27 characters at most, of 253
}

/** The entry of one app. */
export function injectionWebhook(app: VirtualApp, target: WebhookTarget, trustPem: string): MutatingWebhook {
  return {
    name: injectionWebhookName(appName(app)),
    admissionReviewVersions: ["v1"],
    clientConfig: clientConfig(target, injectPath(appName(app)), trustPem),
    rules: [{ apiGroups: [""], apiVersions: ["v1"], resources: ["pods"], operations: ["CREATE"], scope: "Namespaced" }],
    namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": app.metadata.namespace ?? "" } },
    objectSelector: storedSelector(app.spec.selector),
    failurePolicy: "Fail",
    matchPolicy: "Equivalent",
    reinvocationPolicy: "IfNeeded",
    sideEffects: "None",
    timeoutSeconds: INJECT_TIMEOUT_SECONDS,
  };
}

/** As the API server stores it: without empty maps and lists. */
function storedSelector({ matchLabels = {}, matchExpressions = [] }: LabelSelector): LabelSelector {
  return {
    ...(Object.keys(matchLabels).length === 0 ? {} : { matchLabels }),
    ...(matchExpressions.length === 0
      ? {}
      : {
          matchExpressions: matchExpressions.map(({ key, operator, values = [] }) => ({
            key,
            operator,
            ...(values.length === 0 ? {} : { values }),
          })),
        }),
  };
}

/** VirtualApps, and each app's pods once more, when nobody changes them any more. */
export function validationConfiguration(
  apps: readonly VirtualApp[],
  target: WebhookTarget,
  trustPem: string,
): ValidatingWebhookConfiguration {
  const admissions = apps
    .filter((app) => isInjected(app, target.namespace))
    .map((app) => admissionWebhook(app, target, trustPem))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
  return { metadata: metadata(VALIDATING_NAME), webhooks: [validationWebhook(target, VALIDATE_PATH, trustPem), ...admissions] };
}

function admissionWebhook(app: VirtualApp, target: WebhookTarget, trustPem: string): ValidatingWebhook {
  const { reinvocationPolicy: _, ...webhook } = injectionWebhook(app, target, trustPem);
  const { namespace, name } = appName(app);
  return {
    ...webhook,
    name: `${name}.${namespace}.admit.${SUFFIX}`,
    clientConfig: clientConfig(target, admitPath({ namespace, name }), trustPem),
  };
}

/**
 * Ignore, so that no VirtualApp is stuck (nor its finalizer) while the manager is away: what must hold by all means stands in the
 * CRD's CEL rules, and the condition Accepted tells the rest.
 *
 * It stands among the mutating webhooks too, though it changes nothing: those are asked before the API server checks the CRD's schema
 * and CEL rules, which would tell only some of the problems, and none with the nearest match. The validating one sees the object as it
 * is in the end.
 */
function validationWebhook(target: WebhookTarget, path: string, trustPem: string): ValidatingWebhook {
  const { group, version, resource } = VIRTUAL_APPS;
  const rule = { apiGroups: [group], apiVersions: [version], resources: [resource], operations: ["CREATE", "UPDATE"] };
  return {
    name: VALIDATION_WEBHOOK_NAME,
    admissionReviewVersions: ["v1"],
    clientConfig: clientConfig(target, path, trustPem),
    rules: [{ ...rule, scope: "Namespaced" }],
    namespaceSelector: {},
    objectSelector: {},
    failurePolicy: "Ignore",
    matchPolicy: "Equivalent",
    sideEffects: "None",
    timeoutSeconds: VALIDATE_TIMEOUT_SECONDS,
  };
}

function clientConfig({ namespace, serviceName, url }: WebhookTarget, path: string, trustPem: string): WebhookClientConfig {
  const caBundle = Buffer.from(trustPem).toString("base64");
  if (url !== "") return { caBundle, url: `${url.replace(/\/+$/, "")}${path}` };
  return { caBundle, service: { namespace, name: serviceName, path, port: 443 } };
}

// AKS edits the webhooks of others unless the label is there, and we would edit them back, for ever.
function metadata(name: string) {
  return { name, labels: { "admissions.enforcer/disabled": "true" } };
}

function appName({ metadata: { namespace = "", name = "" } }: VirtualApp) {
  return { namespace, name };
}
