// Computes the desired webhook configurations. Pure. Invariants: the API server calls the manager only for
// pods that an app selects, and never for the manager's own namespace, since a stopped manager could not
// start again. Equal facts give equal objects, with every default written out.
import { countTerms, type LabelSelector, labelSelectorSchema } from "../../../api/label-selector.ts";
import { dnsSubdomainSchema } from "../../../api/names.ts";
import { validate } from "../../../api/problems.ts";
import { POD_NAME, PROXY_REQUESTS, SHARDING_PREFIX } from "../../../api/sharding-keys.ts";
import type {
  MutatingWebhook,
  MutatingWebhookConfiguration,
  ValidatingWebhook,
  ValidatingWebhookConfiguration,
  WebhookClientConfig,
} from "../../../kube/client/resources.ts";
import { type App, isHeld } from "../../apps/app.ts";
import { type AppName, ASKED_PATH, admitPath, injectPath, VALIDATE_EARLY_PATH, VALIDATE_PATH } from "../server/webhook.ts";
import type { CheckedKind } from "../validate/validate-webhook.ts";
import { withinEntry, withinShare } from "./entry-bounds.ts";

export const MUTATING_NAME = "ctrlmesh-injection";
export const VALIDATING_NAME = "ctrlmesh-validation";
/** The manager watches only these two objects, so it needs no right to read others. */
export const MUTATING_SELECTOR = { fieldSelector: `metadata.name=${MUTATING_NAME}` };
export const VALIDATING_SELECTOR = { fieldSelector: `metadata.name=${VALIDATING_NAME}` };

const SUFFIX = "ctrlmesh.kruise.io";
const VALIDATION_WEBHOOK_NAME = `validate.${SUFFIX}`;

const NAMESPACE_NAME = "kubernetes.io/metadata.name";
const POD_CREATION = [
  { apiGroups: [""], apiVersions: ["v1"], resources: ["pods"], operations: ["CREATE"], scope: "Namespaced" as const },
] as const;

/** The API server's timeout. The manager's own waits are much shorter. */
const VALIDATE_TIMEOUT_SECONDS = 5;
/** An edit of a namespace must not wait long for a warning. */
const WARN_TIMEOUT_SECONDS = 2;

export interface WebhookTarget {
  /** The namespace of the manager and its Service. */
  readonly namespace: string;
  readonly serviceName: string;
  /** Replaces the Service for a manager outside of the cluster; "" for none. */
  readonly url: string;
  /** The timeout of the injection. A ReplicaSet retries the creation of its pods. */
  readonly timeoutSeconds: number;
  /** The API server also asks about edits of the labels of namespaces; default false. */
  readonly warnsOfMoves?: boolean;
}

export function isInjected(app: App, managerNamespace: string): boolean {
  const { status } = app.object;
  if (app.ref.namespace === managerNamespace) return false;
  const isBringingBack = isHeld(app);
  if (app.isEnding && !isBringingBack) return false;
  if (app.spec !== undefined) return true;
  // An app that was served keeps its entry, and its pods are refused until it is corrected or its deletion is
  // complete. Otherwise they would run without a proxy and own everything, while other pods have a proxy.
  const served = status?.routeVersion !== undefined || isBringingBack;
  const { selector } = app.pods;
  // With an empty or missing selector, the API server would call the webhook for every pod of the namespace.
  return served && countTerms(selector) > 0 && validate(labelSelectorSchema, selector).ok;
}

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

/** The API server shows the name in refusals. Namespaces contain no dots, so no two apps share a name. */
export function injectionWebhookName({ namespace, name }: AppName): string {
  return `${name}.${namespace}.inject.${SUFFIX}`; // 63 + 63 + 27 characters at most, of 253
}

export function injectionWebhook(app: App, target: WebhookTarget, trustPem: string): MutatingWebhook {
  return {
    name: injectionWebhookName(app.ref),
    admissionReviewVersions: ["v1"],
    clientConfig: clientConfig(target, injectPath(app.ref), trustPem),
    rules: POD_CREATION,
    namespaceSelector: { matchLabels: { [NAMESPACE_NAME]: app.ref.namespace } },
    objectSelector: storedSelector(withinEntry(app.pods.selector)),
    ...podsOfStatefulSet(app.pods.statefulSet),
    failurePolicy: "Fail",
    matchPolicy: "Equivalent",
    reinvocationPolicy: "IfNeeded",
    sideEffects: "None",
    timeoutSeconds: target.timeoutSeconds,
  };
}

// A selector cannot say how a label begins. Without this the pods of all StatefulSets of the namespace would
// wait for the manager. The API server refuses all entries for one wrong expression, and a refused spec may have any name.
function podsOfStatefulSet(name: string | undefined): Pick<MutatingWebhook, "matchConditions"> {
  if (!dnsSubdomainSchema.safeParse(name).success) return {};
  const pattern = `^${name?.replaceAll(".", "[.]")}-[0-9]+$`;
  const expression = `object.metadata.?labels[?"${POD_NAME}"].orValue("").matches("${pattern}")`;
  return { matchConditions: [{ name: "pods-of-the-stateful-set", expression }] };
}

/** The API server stores a selector without empty maps and lists. */
function storedSelector({ matchLabels = {}, matchExpressions = [] }: LabelSelector): LabelSelector {
  const requirements = matchExpressions.map(({ key, operator, values = [] }) => {
    return values.length === 0 ? { key, operator } : { key, operator, values };
  });
  return {
    ...(Object.keys(matchLabels).length === 0 ? {} : { matchLabels }),
    ...(requirements.length === 0 ? {} : { matchExpressions: requirements }),
  };
}

/** For the objects of the mesh's own kinds, and for each app's pods after all mutating webhooks. */
export function validationConfiguration(entries: Entries): ValidatingWebhookConfiguration {
  const { target, trustPem } = entries;
  const admissions = injectedApps(entries).map((app) => admissionWebhook(app, target, trustPem));
  const own = validationWebhook(entries, VALIDATE_PATH);
  const asked = PROXY_REQUESTS.map((key) => askedWebhook(key, target, trustPem));
  const webhooks = [own, ...(target.warnsOfMoves ? [namespacesWebhook(own)] : []), ...inOrder(admissions), ...asked];
  return { metadata: metadata(VALIDATING_NAME), webhooks };
}

function injectedApps({ apps, target }: Entries): App[] {
  // If two apps of different kinds had one name, the API server would refuse all entries.
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

/** One entry for each label, since a selector cannot say "or". Only pods with the label depend on the manager. */
function askedWebhook(key: string, target: WebhookTarget, trustPem: string): ValidatingWebhook {
  return {
    name: `${key.slice(SHARDING_PREFIX.length)}.${SUFFIX}`,
    admissionReviewVersions: ["v1"],
    clientConfig: clientConfig(target, ASKED_PATH, trustPem),
    rules: POD_CREATION,
    namespaceSelector: {
      matchExpressions: [{ key: NAMESPACE_NAME, operator: "NotIn", values: [target.namespace] }],
    },
    objectSelector: { matchLabels: { [key]: "true" } },
    failurePolicy: "Fail",
    matchPolicy: "Equivalent",
    sideEffects: "None",
    timeoutSeconds: target.timeoutSeconds,
  };
}

// `failurePolicy` is Ignore, so users can edit objects and finalizers while no manager answers. The CRD's CEL
// rules always apply, and the condition Accepted reports all other problems. The entry is also a mutating
// webhook, although it changes nothing: the API server calls mutating webhooks before it checks the CRD's
// schema, which reports only some of the problems. The validating webhook sees the final object.
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
