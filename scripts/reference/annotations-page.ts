// The page of the mesh's annotations, labels and finalizers. Pure. The annotations of pods and apps come from
// their table; the others are listed here, and test/docs/reference.test.ts checks that none is missing.
import { ANNOTATIONS, annotationKey, annotationsOn } from "../../src/api/annotations.ts";
import { KEYS_OF_CONFIGS, KEYS_OF_PODS, KUSIONSTACK_FINALIZER, VARIABLES_OF_PODS } from "../../src/api/kusionstack-keys.ts";
import { PROXY_ENV } from "../../src/api/pod-annotations.ts";
import { PROXY_REQUESTS, SHARDING_PREFIX } from "../../src/api/sharding-keys.ts";
import { code, page, table } from "./markdown.ts";

const HEAD = ["annotation", "values", "default", "meaning"];

const ON_PODS =
  "Set these on the pod; in a Deployment, in `spec.template.metadata.annotations`. If a value is not allowed, the pod is refused, and the message names the annotation. A misspelled name causes a warning. The manager's flag `--proxy-defaults` has values for all pods that have none of their own, except for `inject` and `proxy-image`; the chart sets it from its values `proxy`.";
const RESERVED =
  "`proxy-env` does not allow the variables `KUBERNETES_*`, `NODE_*`, `LD_*`, `SSL_CERT_*` and `OPENSSL_*`. Of the variables `CTRLMESH_*` it allows only `CTRLMESH_ACCESS_LOG` and `CTRLMESH_DRAIN_MS`.";
const ON_APPS =
  "Set these on a VirtualApp or on the ShardingConfigs of an operator. An annotation that is also in the table of pods has priority on the pod. If a value is not allowed, the object is invalid, as with any field.";

const ASKS =
  "`true`: the pod is [refused](webhooks.md#pods-that-ask-for-the-proxy) if it would start without the proxy; not needed, since the selector decides who gets it";
const NO_EFFECT =
  "KusionStack's Controller Mesh knows these. Here they have no effect. A pod that gets the proxy and a ShardingConfig get a warning at admission that says the same.";

/** Key, object, meaning. */
const SET_BY_USERS: readonly (readonly [key: string, on: string, meaning: string])[] = [
  ["ctrlmesh.kruise.io/rotate", "annotation of the CA's Secret", "any value: the mesh makes a new CA now"],
  ["ctrlmesh.kusionstack.io/recover", "annotation of a CircuitBreaker", "a new text closes every open breaker of the object"],
  ["circuitbreaker.ctrlmesh.kusionstack.io/disable", "label of a CircuitBreaker", "switches it off, unless its value is `false`"],
  ["faultinjection.ctrlmesh.kusionstack.io/disable", "label of a FaultInjection", "switches it off, unless its value is `false`"],
  [
    "ctrlmesh.kusionstack.io/control",
    "label of a namespace",
    "a value other than `true`: neither the namespace nor its objects are [labelled](../tasks/label-objects.md)",
  ],
  [
    "ctrlmesh.kusionstack.io/rolling",
    "label of a StatefulSet",
    "rolls out new versions [shard by shard](../tasks/shard-an-operator.md#roll-out-a-new-version): empty or `all`, or names of shards or parts of names (`canary`, `normal`) with `_` between them",
  ],
  ...PROXY_REQUESTS.map((key) => [key, "label of a pod", ASKS] as const),
];

const SET_BY_THE_MESH: typeof SET_BY_USERS = [
  ["ctrlmesh.kruise.io/virtual-app-injected", "label of a pod", "the app for which the pod got its proxy"],
  [
    "ctrlmesh.kusionstack.io/sharding-config-injected",
    "label of a pod of a ShardingConfig",
    "the [shard](../concepts/sharding.md#the-label-of-a-shards-pods) of the pod when it was created",
  ],
  ["ctrlmesh.kruise.io/app", "label of an [OwnershipSlice](ownershipslice.md)", "the app whose places it has"],
  ["ctrlmesh.kruise.io/routes", "finalizer of a VirtualApp or ShardingConfig", "the pods first get the whole view back"],
  ["ctrlmesh.kruise.io/promoted-at", "annotation of the CA's Secret", "when the present CA took over from another one"],
  ["ctrlmesh.kusionstack.io/roll-expected", "annotation of a root ShardingConfig", "the revision that each pod has or gets"],
  ["ctrlmesh.kusionstack.io/auto-sharding-root", "label of a child ShardingConfig", "the name of its root"],
  [
    "ctrlmesh.kusionstack.io/namespace",
    "label of objects, with [labelObjects](../tasks/label-objects.md)",
    "the object's namespace; in a limit's selector, a computed key",
  ],
  [
    "ctrlmesh.kusionstack.io/shard-hash",
    "label of objects, with [labelObjects](../tasks/label-objects.md)",
    "the hash of the namespace, from 0 to 31; in a limit's selector, a computed key",
  ],
  [
    "ctrlmesh.kusionstack.io/shard",
    "key in the selectors of children, never a label",
    "the child to which the placement assigns the namespace",
  ],
];

export function annotationsPage(): string {
  const env = [code(`${PROXY_ENV}NAME`), "any", "", "another variable of the sidecar, such as `proxy-env.CTRLMESH_ACCESS_LOG`"];
  const others = (rows: typeof SET_BY_USERS) =>
    table(
      ["key", "on", "meaning"],
      rows.map(([key, ...rest]) => [code(key), ...rest]),
    );
  return page("Annotations and labels", [
    "## On pods",
    ON_PODS,
    table(HEAD, [...rowsOn("pod"), env]),
    RESERVED,
    "## On apps",
    ON_APPS,
    table(HEAD, rowsOn("app")),
    "## Others that users set",
    others(SET_BY_USERS),
    "## Set by the mesh",
    "Do not write these.",
    others(SET_BY_THE_MESH),
    "## Of KusionStack, without effect",
    NO_EFFECT,
    table(
      ["key", "on", "instead"],
      [
        ...keyRows(KEYS_OF_PODS, "label or annotation of a pod"),
        ...Object.entries(VARIABLES_OF_PODS).map(([name, instead]) => [code(name), "variable of a container", instead]),
        ...keyRows(KEYS_OF_CONFIGS, "label of a ShardingConfig"),
        [
          code(KUSIONSTACK_FINALIZER),
          "finalizer of a ShardingConfig",
          "nobody removes it: remove it before you delete the object",
        ],
      ],
    ),
  ]);
}

function keyRows(rows: Readonly<Record<string, string>>, on: string): string[][] {
  return Object.entries(rows).map(([name, instead]) => [code(`${SHARDING_PREFIX}${name}`), on, instead]);
}

function rowsOn(place: "app" | "pod"): string[][] {
  return annotationsOn(place).map((name) => {
    const { values, fallback = "", meaning } = ANNOTATIONS[name];
    return [code(annotationKey(name)), values, code(fallback), meaning];
  });
}
