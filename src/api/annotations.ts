// The table of the mesh's annotations on pods and on the objects that describe apps. Pure. The checks, the
// injection, the defaults of the cluster and the reference are derived from its rows. A CRD schema cannot
// check annotations, so an invalid value on an app's object is a problem of the object.
import { isIP } from "node:net";
import { jsonText } from "../base/json.ts";
import { didYouMean } from "./nearest.ts";
import { parseQuantity } from "./quantity.ts";
import { type Finding, fieldAt } from "./rule.ts";

// The kinds of values. Any user may write a value, so a check takes time linear in its length.

interface AnnotationValue {
  /** For the reference, as Markdown. */
  readonly values: string;
  /** Why a value is not allowed; undefined if it is allowed. */
  readonly whyWrong: (value: string) => string | undefined;
  /** The form in which the proxy gets the value. Default: unchanged. */
  readonly normalize?: (value: string) => string;
}

const BOOLEAN: AnnotationValue = {
  values: "`true`, `false`",
  whyWrong: (value) => (value === "true" || value === "false" ? undefined : 'must be "true" or "false"'),
};

function oneOf(allowed: readonly string[]): AnnotationValue {
  const listed = allowed.map((each) => JSON.stringify(each)).join(", ");
  return {
    values: allowed.map((each) => `\`${each}\``).join(", "),
    whyWrong: (value) => (allowed.includes(value) ? undefined : `must be one of ${listed}${didYouMean(value, allowed)}`),
  };
}

function quantityOfAtLeast(least: string): AnnotationValue {
  return {
    values: `a quantity, at least \`${least}\``,
    whyWrong: (value) => {
      const amount = parseQuantity(value);
      if (amount === undefined) return 'must be a quantity such as "100m" or "128Mi"';
      return amount < (parseQuantity(least) ?? 0) ? `must be at least ${least}` : undefined;
    },
  };
}

const IMAGE: AnnotationValue = {
  values: "an image",
  whyWrong: (value) => (/^[^\s"'\\]{1,512}$/.test(value) ? undefined : "must be the name of an image"),
};

const MAX_RANGES_CHARS = 16_384;

const ADDRESS_RANGES: AnnotationValue = {
  values: "ranges such as `10.0.0.0/8,fd00::/8`",
  whyWrong: (value) => {
    if (value.length > MAX_RANGES_CHARS) return `must have at most ${MAX_RANGES_CHARS} characters`;
    const ranges = rangesOf(value);
    const wrong = ranges.find((range) => !isRange(range));
    if (wrong !== undefined) return `${JSON.stringify(wrong.slice(0, 64))} is not a range of addresses such as 10.0.0.0/8`;
    return ranges.length === 0 ? "must be ranges of addresses such as 10.0.0.0/8, divided by commas" : undefined;
  },
  normalize: (value) => rangesOf(value).join(","),
};

function rangesOf(text: string): string[] {
  return text.split(",").flatMap((part) => part.trim() || []);
}

function isRange(text: string): boolean {
  const [, address = "", bits = ""] = /^([0-9a-fA-F:.]+)\/(\d{1,3})$/.exec(text) ?? [];
  const version = isIP(address);
  return version !== 0 && Number(bits) <= (version === 4 ? 32 : 128);
}

export interface AnnotationRow extends AnnotationValue {
  /** Where users set it. The annotation of a pod takes precedence over the same one of its app. */
  readonly on: "app" | "pod" | "both";
  /** For the reference, as Markdown. */
  readonly meaning: string;
  /** The value in force without the annotation. Default: none, "". */
  readonly fallback?: string;
  /** True if the cluster may have no default of it, since it is about one pod. */
  readonly isPerPod?: boolean;
  /** The environment variable of the proxy's container that gets the value. */
  readonly env?: string;
  readonly field?: string;
  /** The resource (`cpu`, `memory`) whose request, or whose limit, is the value. */
  readonly requests?: string;
  readonly limits?: string;
}

/** How the operator's requests reach its proxy. */
export const INTERCEPT_MODES = ["env", "kubeconfig", "iptables"] as const;

export type InterceptMode = (typeof INTERCEPT_MODES)[number];

const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"];

const ROWS = {
  "strip-managed-fields": {
    on: "app",
    ...BOOLEAN,
    fallback: "false",
    meaning: "`true` removes `metadata.managedFields` from the objects that the operator reads",
  },
  "confirm-moves": {
    on: "app",
    values: "the object's `metadata.generation`",
    whyWrong: () => undefined,
    meaning:
      "confirms the moves of this generation that exceed `spec.route.maxMovingPercent`, or in a root ShardingConfig `spec.root.maxMovingPercent`",
  },
  intercept: {
    on: "both",
    ...oneOf(INTERCEPT_MODES),
    fallback: "env",
    meaning: "how requests reach the proxy, see [the modes](injection.md#which-mode-for-which-client)",
  },
  "host-aliases": {
    on: "both",
    ...BOOLEAN,
    fallback: "false",
    meaning: "`true` resolves the names of the Service `kubernetes` to the proxy; no effect in `iptables` mode",
  },
  inject: {
    on: "pod",
    ...BOOLEAN,
    fallback: "true",
    isPerPod: true,
    meaning: "a pod of an app needs its proxy: with `false` it is [refused](injection.md#what-is-refused)",
  },
  "native-sidecar": {
    on: "pod",
    ...BOOLEAN,
    meaning: "whether the proxy is a native sidecar; default: `true` if the API server is 1.29 or later",
  },
  "proxy-image": {
    on: "pod",
    ...IMAGE,
    isPerPod: true,
    field: "image",
    meaning: "the sidecar's image, but not that of the init container of `iptables` mode",
  },
  "proxy-log-level": {
    on: "pod",
    ...oneOf(LOG_LEVELS),
    fallback: "info",
    env: "CTRLMESH_LOG_LEVEL",
    meaning: "the sidecar's log level",
  },
  "proxy-cpu": {
    on: "pod",
    ...quantityOfAtLeast("1m"),
    fallback: "50m",
    requests: "cpu",
    meaning: "the sidecar's request; the default is at most the limit",
  },
  "proxy-memory": {
    on: "pod",
    ...quantityOfAtLeast("32Mi"),
    fallback: "128Mi",
    requests: "memory",
    meaning: "the sidecar's request; the default is at most the limit",
  },
  "proxy-cpu-limit": {
    on: "pod",
    ...quantityOfAtLeast("1m"),
    limits: "cpu",
    meaning: "the sidecar's limit",
  },
  "proxy-memory-limit": {
    on: "pod",
    ...quantityOfAtLeast("128Mi"), // An idle proxy uses about 100 MB.
    fallback: "512Mi",
    limits: "memory",
    meaning: "the sidecar's limit; the default is at least the request",
  },
  egress: {
    on: "pod",
    ...BOOLEAN,
    fallback: "false",
    meaning: "see [calls to other servers](injection.md#calls-to-other-servers)",
  },
  "egress-private-addresses": {
    on: "pod",
    ...ADDRESS_RANGES,
    env: "CTRLMESH_EGRESS_PRIVATE_ADDRESSES",
    meaning: "private addresses that the proxy may connect to; only with `egress`",
  },
} satisfies Readonly<Record<string, AnnotationRow>>;

export type AnnotationName = keyof typeof ROWS;

/** By their names without the prefix, in the order of the reference. */
export const ANNOTATIONS: Readonly<Record<AnnotationName, AnnotationRow>> = ROWS;

export function annotationsOn(place: "app" | "pod"): AnnotationName[] {
  return (Object.keys(ROWS) as AnnotationName[]).filter((name) => [place, "both"].includes(ROWS[name].on));
}

export const ANNOTATION_PREFIX = "ctrlmesh.kruise.io/";

export type Annotations = Readonly<Record<string, string>>;

export function annotationKey(name: AnnotationName): string {
  return `${ANNOTATION_PREFIX}${name}`;
}

/** The value in force: that of the annotation, else its fallback, else "". */
export function annotationValue(annotations: Annotations | undefined, name: AnnotationName): string {
  return annotations?.[annotationKey(name)] ?? ANNOTATIONS[name].fallback ?? "";
}

export function stripsManagedFields({ annotations }: { readonly annotations?: Annotations }): boolean {
  return annotationValue(annotations, "strip-managed-fields") === "true";
}

export function* appAnnotations(metadata: unknown): Iterable<Finding> {
  for (const name of annotationsOn("app")) {
    const key = annotationKey(name);
    const value = fieldAt(metadata, "annotations", key);
    const message = value === undefined ? undefined : ANNOTATIONS[name].whyWrong(jsonText(value));
    if (message !== undefined) yield { path: ["annotations", key], value, message };
  }
}
