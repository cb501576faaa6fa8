// Computes the desired webhook configurations from the apps. Pure. Invariants: the API server calls the
// manager only for pods that an app selects, so nothing else in the cluster depends on the manager. It never
// calls the manager for the manager's own namespace: a stopped manager could not start again. Equal facts
// give equal objects, in the same order, with every default written out.
import { countTerms, type LabelSelector, labelSelectorSchema } from "../../../api/label-selector.ts";
import { validate } from "../../../api/problems.ts";
import type {
  MutatingWebhook,
  MutatingWebhookConfiguration,
  ValidatingWebhook,
  ValidatingWebhookConfiguration,
  WebhookClientConfig,
} from "../../../kube/client/resources.ts";
import { type App, isHeld } from "../../apps/app.ts";
import { type AppName, admitPath, injectPath, VALIDATE_EARLY_PATH, VALIDATE_PATH } from "../server/webhook.ts";
import type { CheckedKind } from "../validate/validate-webhook.ts";
import { withinEntry, withinShare } from "./webhook-share.ts";

export const MUTATING_NAME = "ctrlmesh-injection";
export const VALIDATING_NAME = "ctrlmesh-validation";
/**
 * The selectors to watch only these two objects, so the manager needs no right to read other configurations.
 */
export const MUTATING_SELECTOR = { fieldSelector: `metadata.name=${MUTATING_NAME}` };
export const VALIDATING_SELECTOR = { fieldSelector: `metadata.name=${VALIDATING_NAME}` };

const SUFFIX = "ctrlmesh.kruise.io";
const VALIDATION_WEBHOOK_NAME = `validate.${SUFFIX}`;

/** The API server's timeout. The manager's own waits are much shorter. */
const VALIDATE_TIMEOUT_SECONDS = 5;
/** An edit of a namespace must not wait long for a warning. */
const WARN_TIMEOUT_SECONDS = 2;

/** How the API server reaches the manager. */
export interface WebhookTarget {
  /** Namespace of the manager and its Service. */
  readonly namespace: string;
  readonly serviceName: string;
  /** An https URL that replaces the Service, for a manager outside of the cluster; "" for none. */
  readonly url: string;
  /** The API server's timeout of the injection. A ReplicaSet retries the creation of its pods. */
  readonly timeoutSeconds: number;
  /** The API server also asks about edits of the labels of namespaces; default false. */
  readonly warnsOfMoves?: boolean;
}

/** True if the app's pods must be injected. */
export function isInjected(app: App, managerNamespace: string): boolean {
  const { status } = app.object;
  if (app.ref.namespace === managerNamespace) return false;
  const isBringingBack = isHeld(app);
  if (app.isEnding && !isBringingBack) return false;
  if (app.spec !== undefined) return true;
  // An app that was served before keeps its entry. Its pods are refused until the app is corrected, or until
  // its deletion is complete. Otherwise they would run without a proxy and own everything, while other pods
  // have a proxy.
  const served = status?.routeVersion !== undefined || isBringingBack;
  const { selector } = app.pods;
  // With an empty or missing selector, the API server would call the webhook for every pod of the namespace.
  return served && countTerms(selector) > 0 && validate(labelSelectorSchema, selector).ok;
}

/** The inputs of the configurations. */
export interface Entries {
  /** The kinds whose objects are checked. */
  readonly kinds: readonly Pick<CheckedKind, "resource">[];
  readonly apps: readonly App[];
  readonly target: WebhookTarget;
  /** PEM: the CAs that the API server must trust. */
  readonly trustPem: string;
}

export function injectionConfiguration(entries: Entries): MutatingWebhookConfiguration {
  const { target, trustPem } = entries;
  const injections = injectedApps(entries).map((app) => injectionWebhook(app, target, trustPem));
  const early: MutatingWebhook = { ...validationWebhook(entries, VALIDATE_EARLY_PATH), reinvocationPolicy: "Never" };
  return { metadata: metadata(MUTATING_NAME), webhooks: [early, ...inOrder(injections)] };
}

/**
 * Name of an app's webhook, which the API server shows in refusals. Namespaces contain no dots, so no two
 * apps share a name.
 */
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
    objectSelector: storedSelector(withinEntry(app.pods.selector)),
    failurePolicy: "Fail",
    matchPolicy: "Equivalent",
    reinvocationPolicy: "IfNeeded",
    sideEffects: "None",
    timeoutSeconds: target.timeoutSeconds,
  };
}

/** The selector as the API server stores it: without empty maps and lists. */
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

/**
 * The validating entries: for the objects of the mesh's own kinds, and for each app's pods after all mutating
 * webhooks.
 */
export function validationConfiguration(entries: Entries): ValidatingWebhookConfiguration {
  const { target, trustPem } = entries;
  const admissions = injectedApps(entries).map((app) => admissionWebhook(app, target, trustPem));
  const own = validationWebhook(entries, VALIDATE_PATH);
  const webhooks = [own, ...(target.warnsOfMoves ? [namespacesWebhook(own)] : []), ...inOrder(admissions)];
  return { metadata: metadata(VALIDATING_NAME), webhooks };
}

function injectedApps({ apps, target }: Entries): App[] {
  // Two entries of one name would make the API server refuse all entries. Validation refuses an app with
  // another kind's name.
  const injected = withinShare(apps).filter((app) => isInjected(app, target.namespace));
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
 * `failurePolicy` is Ignore, so users can edit objects and finalizers while no manager answers. The CRD's CEL
 * rules always apply, and the condition Accepted reports all other problems.
 *
 * The entry is also a mutating webhook, although it changes nothing. The API server calls mutating webhooks
 * before it checks the CRD's schema and CEL rules, which report only some of the problems and suggest no
 * names. The validating webhook sees the final object.
 */
function validationWebhook({ kinds, target, trustPem }: Entries, path: string): ValidatingWebhook {
  const rules = kinds.map(({ resource: { group, version, resource } }) => ({
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

/** The entry for edits of the labels of namespaces, which get warnings only. */
function namespacesWebhook(own: ValidatingWebhook): ValidatingWebhook {
  return {
    ...own,
    name: `namespaces.${SUFFIX}`,
    rules: [{ apiGroups: [""], apiVersions: ["v1"], resources: ["namespaces"], operations: ["UPDATE"], scope: "Cluster" }],
    matchConditions: [
      {
        name: "labels-change",
        expression: "object.metadata.?labels.orValue({}) != oldObject.metadata.?labels.orValue({})",
      },
    ],
    timeoutSeconds: WARN_TIMEOUT_SECONDS,
  };
}

function clientConfig({ namespace, serviceName, url }: WebhookTarget, path: string, trustPem: string): WebhookClientConfig {
  const caBundle = Buffer.from(trustPem).toString("base64");
  if (url !== "") return { caBundle, url: `${url.replace(/\/+$/, "")}${path}` };
  return { caBundle, service: { namespace, name: serviceName, path, port: 443 } };
}

// Without this label AKS edits the webhooks, and the manager would edit them back, without end.
function metadata(name: string) {
  return { name, labels: { "admissions.enforcer/disabled": "true" } };
}
