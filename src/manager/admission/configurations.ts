// The webhook configurations as they should be, from the apps. Pure. Invariants: the API server calls us for pods that an app
// selects and for no other one, so that nothing else in the cluster depends on the manager; never for the manager's own namespace, or
// it could not come up again; and equal facts give equal objects, in the same order, with every default written out.
import { countTerms, type LabelSelector, labelSelectorSchema } from "../../api/label-selector.ts";
import { validate } from "../../api/problems.ts";
import type {
  MutatingWebhook,
  MutatingWebhookConfiguration,
  ValidatingWebhook,
  ValidatingWebhookConfiguration,
  WebhookClientConfig,
} from "../../kube/client/resources.ts";
import type { App, Source } from "../sources/app.ts";
import { hasFinalizer } from "../sources/finalizer.ts";
import { type AppName, admitPath, injectPath, VALIDATE_EARLY_PATH, VALIDATE_PATH } from "./webhook.ts";

export const MUTATING_NAME = "ctrlmesh-injection";
export const VALIDATING_NAME = "ctrlmesh-validation";
/** The selectors by which the two objects alone are watched, so that rights to read others are not needed. */
export const MUTATING_SELECTOR = { fieldSelector: `metadata.name=${MUTATING_NAME}` };
export const VALIDATING_SELECTOR = { fieldSelector: `metadata.name=${VALIDATING_NAME}` };

const SUFFIX = "ctrlmesh.kruise.io";
const VALIDATION_WEBHOOK_NAME = `validate.${SUFFIX}`;

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
export function isInjected(app: App, managerNamespace: string): boolean {
  const { metadata, status } = app.object;
  if (app.ref.namespace === managerNamespace) return false;
  const isBringingBack = hasFinalizer(app.object);
  if (metadata.deletionTimestamp !== undefined && !isBringingBack) return false;
  if (app.spec !== undefined) return true;
  // An app that was served before goes on being asked for: its pods are refused until it is mended, or until its routes are brought
  // back. Let through, they would run without the proxy, beside those that have one, and own everything.
  const served = status?.routeVersion !== undefined || isBringingBack;
  const { selector } = app.pods;
  // Without a term, also if the object has no selector at all, the webhook would be asked about every pod of the namespace.
  return served && countTerms(selector) > 0 && validate(labelSelectorSchema, selector).ok;
}

/** What the configurations are made from. */
export interface Entries {
  readonly sources: readonly Pick<Source, "resource">[];
  readonly apps: readonly App[];
  readonly target: WebhookTarget;
  /** PEM: the CAs that the API server is to trust. */
  readonly trustPem: string;
}

export function injectionConfiguration(entries: Entries): MutatingWebhookConfiguration {
  const { target, trustPem } = entries;
  const injections = injectedApps(entries).map((app) => injectionWebhook(app, target, trustPem));
  const early: MutatingWebhook = { ...validationWebhook(entries, VALIDATE_EARLY_PATH), reinvocationPolicy: "Never" };
  return { metadata: metadata(MUTATING_NAME), webhooks: [early, ...inOrder(injections)] };
}

/** Name of an app's webhook, as the API server says it in refusals. Namespaces hold no dots, so no two apps share one. */
export function injectionWebhookName({ namespace, name }: AppName): string {
  return `${name}.${namespace}.inject.${SUFFIX}`; // 63 + 63 + 27 characters at most, of 253
}

/** The entry of one app. */
export function injectionWebhook(app: App, target: WebhookTarget, trustPem: string): MutatingWebhook {
  return {
    name: injectionWebhookName(app.ref),
    admissionReviewVersions: ["v1"],
    clientConfig: clientConfig(target, injectPath(app.ref), trustPem),
    rules: [{ apiGroups: [""], apiVersions: ["v1"], resources: ["pods"], operations: ["CREATE"], scope: "Namespaced" }],
    namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": app.ref.namespace } },
    objectSelector: storedSelector(app.pods.selector),
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

/** The source objects, and each app's pods once more, when no other webhook changes them any more. */
export function validationConfiguration(entries: Entries): ValidatingWebhookConfiguration {
  const { target, trustPem } = entries;
  const admissions = injectedApps(entries).map((app) => admissionWebhook(app, target, trustPem));
  const webhooks = [validationWebhook(entries, VALIDATE_PATH), ...inOrder(admissions)];
  return { metadata: metadata(VALIDATING_NAME), webhooks };
}

function injectedApps({ apps, target }: Entries): App[] {
  // Two entries of one name would make the API server refuse all entries. Validation refuses an app with another kind's name.
  const injected = apps.filter((app) => isInjected(app, target.namespace));
  return [...new Map(injected.toReversed().map((app) => [injectionWebhookName(app.ref), app])).values()];
}

function inOrder<W extends ValidatingWebhook>(webhooks: readonly W[]): W[] {
  return webhooks.toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

function admissionWebhook(app: App, target: WebhookTarget, trustPem: string): ValidatingWebhook {
  const { reinvocationPolicy: _, ...webhook } = injectionWebhook(app, target, trustPem);
  const { namespace, name } = app.ref;
  return {
    ...webhook,
    name: `${name}.${namespace}.admit.${SUFFIX}`,
    clientConfig: clientConfig(target, admitPath({ namespace, name }), trustPem),
  };
}

/**
 * Ignore, so that no object is stuck (nor its finalizer) while the manager is away: what must hold by all means stands in the
 * CRD's CEL rules, and the condition Accepted tells the rest.
 *
 * It stands among the mutating webhooks too, though it changes nothing: those are asked before the API server checks the CRD's schema
 * and CEL rules, which would tell only some of the problems, and none with the nearest match. The validating one sees the object as it
 * is in the end.
 */
function validationWebhook({ sources, target, trustPem }: Entries, path: string): ValidatingWebhook {
  const rules = sources.map(({ resource: { group, version, resource } }) => ({
    apiGroups: [group],
    apiVersions: [version],
    resources: [resource],
    operations: ["CREATE", "UPDATE"],
    scope: "Namespaced" as const,
  }));
  return {
    name: VALIDATION_WEBHOOK_NAME,
    admissionReviewVersions: ["v1"],
    clientConfig: clientConfig(target, path, trustPem),
    rules,
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
