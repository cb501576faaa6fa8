// What users of KusionStack's controller mesh may set that has no effect here, and what to use instead. Pure.
// docs/reference/annotations.md is made from it. Names and meanings are KusionStack's.
import { ANNOTATION_PREFIX, type Annotations } from "./annotations.ts";
import { PROXY_REQUESTS, SHARDING_PREFIX } from "./sharding-keys.ts";

const INTERCEPT = `${ANNOTATION_PREFIX}intercept`;
const IPTABLES = `use the annotation ${INTERCEPT}: iptables`;
const LOGS = "mount a volume in the template; the proxy logs to its standard output";

/** Labels or annotations of pods, without their prefix, with the end of "KEY has no effect here: ...". */
export const KEYS_OF_PODS: Readonly<Record<string, string>> = {
  "enable-iptables": IPTABLES,
  "proxy-resource": `use the annotations ${ANNOTATION_PREFIX}proxy-cpu, -memory, -cpu-limit and -memory-limit`,
  "env-sync": `use the annotations ${ANNOTATION_PREFIX}proxy-env.NAME`,
  "env-inject": "set the variables in the template's containers",
  "log-path": LOGS,
  "log-volume": LOGS,
  "kubeconfig-volume": "the proxy calls the API server of the pod's own cluster",
  "disable-fake-kubeconfig-arg": "the mesh adds no arguments",
  "disable-fake-kubeconfig-env": `the mesh sets KUBECONFIG only with the annotation ${INTERCEPT}: kubeconfig`,
};

/** The same for variables of the operator's containers, if they are "true". */
export const VARIABLES_OF_PODS: Readonly<Record<string, string>> = { ENABLE_IPTABLE_PROXY: IPTABLES };

/** The same for labels or annotations of a ShardingConfig. */
export const KEYS_OF_CONFIGS: Readonly<Record<string, string>> = { "ignore-validate": "every ShardingConfig is checked" };

/** KusionStack's manager writes it on roots, and nobody but that manager removes it. */
export const KUSIONSTACK_FINALIZER = `finalizer.${SHARDING_PREFIX}protected`;

interface Metadata {
  readonly labels?: Annotations | undefined;
  readonly annotations?: Annotations | undefined;
}

interface Container {
  readonly name: string;
  readonly env?: readonly { readonly name: string; readonly value?: string | undefined }[] | undefined;
}

/** The warnings about a pod that gets the proxy. @param containers those of the operator */
export function podKeyWarnings(metadata: Metadata, containers: readonly Container[]): string[] {
  const declined = PROXY_REQUESTS.filter((key) => (metadata.labels?.[key] ?? "true") !== "true");
  return [
    ...keyWarnings(metadata, KEYS_OF_PODS),
    ...declined.map((key) => `label ${key} has no effect here unless it is true: the selector decides who gets the proxy`),
    ...containers.flatMap(({ name, env = [] }) =>
      env
        .filter((variable) => variable.value === "true" && Object.hasOwn(VARIABLES_OF_PODS, variable.name))
        .map((variable) => `variable ${variable.name} of container ${name} ${effectText(VARIABLES_OF_PODS[variable.name])}`),
    ),
  ];
}

export function configKeyWarnings(metadata: Metadata & { readonly finalizers?: readonly string[] | undefined }): string[] {
  const isHeld = metadata.finalizers?.includes(KUSIONSTACK_FINALIZER) === true;
  return [
    ...keyWarnings(metadata, KEYS_OF_CONFIGS),
    ...(isHeld ? [`finalizer ${KUSIONSTACK_FINALIZER}: nobody removes it here, so remove it before you delete the object`] : []),
  ];
}

// A loop over the rows and not over the keys of the object, of which there may be thousands.
function keyWarnings({ labels = {}, annotations = {} }: Metadata, rows: Readonly<Record<string, string>>): string[] {
  return Object.entries(rows).flatMap(([name, instead]) => {
    const key = `${SHARDING_PREFIX}${name}`;
    return [
      ...(Object.hasOwn(labels, key) ? [`label ${key} ${effectText(instead)}`] : []),
      ...(Object.hasOwn(annotations, key) ? [`annotation ${key} ${effectText(instead)}`] : []),
    ];
  });
}

function effectText(instead = ""): string {
  return `has no effect here: ${instead}`;
}
