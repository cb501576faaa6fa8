// The annotations of a pod, which control its injection. Pure. Invariant: every invalid value is reported,
// and so is a name that is almost a known one. Called by the manager's injection.
import { isIP } from "node:net";
import { HOST_ALIASES, INTERCEPT, INTERCEPT_MODES, type InterceptMode, wrongBoolean, wrongChoice } from "./annotations.ts";
import { nearest } from "./nearest.ts";
import { formatPath, type Problem } from "./problems.ts";
import { parseQuantity } from "./quantity.ts";

/** Of all annotations of the mesh on pods. */
export const ANNOTATION_PREFIX = "ctrlmesh.kruise.io/";
const PREFIX = ANNOTATION_PREFIX;

/** "false" requests a pod without a sidecar. A pod of an app needs a sidecar, so "false" is refused. */
export const INJECT = `${PREFIX}inject`;
/**
 * "false": an ordinary container instead of a native sidecar. "true": a native sidecar, for any version of
 * the API server.
 */
export const NATIVE_SIDECAR = `${PREFIX}native-sidecar`;
export const PROXY_IMAGE = `${PREFIX}proxy-image`;
export const PROXY_LOG_LEVEL = `${PREFIX}proxy-log-level`;
export const PROXY_CPU = `${PREFIX}proxy-cpu`;
export const PROXY_MEMORY = `${PREFIX}proxy-memory`;
export const PROXY_CPU_LIMIT = `${PREFIX}proxy-cpu-limit`;
export const PROXY_MEMORY_LIMIT = `${PREFIX}proxy-memory-limit`;
/** "true": the requests of the pod's containers to other servers than the API server go through the proxy. */
export const EGRESS = `${PREFIX}egress`;
/** Ranges of private addresses to which the proxy connects: `10.0.0.0/8,fd00::/8`. */
export const EGRESS_PRIVATE_ADDRESSES = `${PREFIX}egress-private-addresses`;
/** The prefix of annotations that set an environment variable of the proxy. */
export const PROXY_ENV = `${PREFIX}proxy-env.`;

const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"];
const ENV_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;
const IMAGE = /^[^\s"'\\]{1,512}$/;
const MIN_MEMORY_REQUEST = "32Mi";
/** An idle proxy uses about 100 MB. */
const MIN_MEMORY_LIMIT = "128Mi";

/** The settings in the annotations of a pod; undefined if absent. */
export interface PodOptions {
  readonly inject: boolean;
  readonly intercept: InterceptMode | undefined;
  readonly hostAliases: boolean | undefined;
  readonly nativeSidecar: boolean | undefined;
  readonly image: string | undefined;
  readonly logLevel: string | undefined;
  readonly cpu: string | undefined;
  readonly memory: string | undefined;
  readonly cpuLimit: string | undefined;
  readonly memoryLimit: string | undefined;
  readonly egress: boolean;
  /** Ranges of private addresses, divided by commas; "" for none. */
  readonly egressPrivateAddresses: string;
  /** Further environment variables of the proxy, by name. */
  readonly env: readonly { readonly name: string; readonly value: string }[];
}

type Annotations = Readonly<Record<string, string>>;
type Check = (value: string) => string | undefined;

const CHECKS: Readonly<Record<string, Check>> = {
  [INJECT]: wrongBoolean,
  [INTERCEPT]: (value) => wrongChoice(value, INTERCEPT_MODES),
  [HOST_ALIASES]: wrongBoolean,
  [NATIVE_SIDECAR]: wrongBoolean,
  [PROXY_IMAGE]: (value) => (IMAGE.test(value) ? undefined : "must be the name of an image"),
  [PROXY_LOG_LEVEL]: (value) => wrongChoice(value, LOG_LEVELS),
  [PROXY_CPU]: (value) => wrongQuantity(value, "1m"),
  [PROXY_MEMORY]: (value) => wrongQuantity(value, MIN_MEMORY_REQUEST),
  [PROXY_CPU_LIMIT]: (value) => wrongQuantity(value, "1m"),
  [PROXY_MEMORY_LIMIT]: (value) => wrongQuantity(value, MIN_MEMORY_LIMIT),
  [EGRESS]: wrongBoolean,
  [EGRESS_PRIVATE_ADDRESSES]: wrongRanges,
};

/** The annotations of a pod that the manager reads, without those that begin with {@link PROXY_ENV}. */
export const POD_ANNOTATIONS: readonly string[] = Object.keys(CHECKS);

/** The options of a pod. They are meaningful only if `podAnnotationProblems` finds no problem. */
export function podOptions(annotations: Annotations = {}): PodOptions {
  const boolean = (name: string) => (annotations[name] === undefined ? undefined : annotations[name] === "true");
  return {
    inject: boolean(INJECT) ?? true,
    intercept: interceptMode(annotations),
    hostAliases: boolean(HOST_ALIASES),
    nativeSidecar: boolean(NATIVE_SIDECAR),
    image: annotations[PROXY_IMAGE],
    logLevel: annotations[PROXY_LOG_LEVEL],
    cpu: annotations[PROXY_CPU],
    memory: annotations[PROXY_MEMORY],
    cpuLimit: annotations[PROXY_CPU_LIMIT],
    memoryLimit: annotations[PROXY_MEMORY_LIMIT],
    egress: boolean(EGRESS) ?? false,
    egressPrivateAddresses: rangesOf(annotations[EGRESS_PRIVATE_ADDRESSES] ?? "").join(","),
    env: Object.entries(annotations)
      .filter(([name]) => name.startsWith(PROXY_ENV))
      .map(([name, value]) => ({ name: name.slice(PROXY_ENV.length), value }))
      .sort((a, b) => (a.name < b.name ? -1 : 1)),
  };
}

/** The mode in the annotations of a pod or a VirtualApp. */
export function interceptMode(annotations: Annotations = {}): InterceptMode | undefined {
  return INTERCEPT_MODES.find((mode) => mode === annotations[INTERCEPT]);
}

/**
 * Every annotation with an invalid value. `isReserved` is true for the proxy's variables that may not be set.
 */
export function podAnnotationProblems(
  annotations: Annotations = {},
  isReserved: (variable: string) => boolean = () => false,
): Problem[] {
  const wrong = Object.entries(annotations).flatMap(([name, value]) => {
    const check = Object.hasOwn(CHECKS, name) ? CHECKS[name] : undefined;
    const message = name.startsWith(PROXY_ENV) ? wrongEnv(name.slice(PROXY_ENV.length), isReserved) : check?.(value);
    return message === undefined ? [] : [{ path: annotationPath(name), value, message }];
  });
  return wrong.length > 0
    ? wrong
    : [
        ...aboveLimit(annotations, PROXY_CPU, PROXY_CPU_LIMIT),
        ...aboveLimit(annotations, PROXY_MEMORY, PROXY_MEMORY_LIMIT),
        ...withoutEgress(annotations),
      ];
}

/** Annotations that decide about one pod only. */
const NO_DEFAULTS: readonly string[] = [INJECT, PROXY_IMAGE];

/** Why these annotations cannot be the defaults of all pods. */
export function defaultAnnotationProblems(annotations: Annotations, isReserved: (variable: string) => boolean): string[] {
  const unknown = Object.keys(annotations).filter(
    (name) => NO_DEFAULTS.includes(name) || !(POD_ANNOTATIONS.includes(name) || name.startsWith(PROXY_ENV)),
  );
  const known = POD_ANNOTATIONS.filter((name) => !NO_DEFAULTS.includes(name)).map((name) => name.slice(PREFIX.length));
  return [
    ...unknown.map((name) => {
      const short = name.slice(PREFIX.length);
      const meant = nearest(short, known);
      return `${JSON.stringify(short)} is not a default of pods${meant === undefined ? `; these are: ${known.join(", ")}, proxy-env.NAME` : `; did you mean "${meant}"?`}`;
    }),
    ...podAnnotationProblems(annotations, isReserved).map(
      ({ path, value, message }) => `${path}: ${JSON.stringify(value)}: ${message}`,
    ),
  ];
}

function aboveLimit(annotations: Annotations, request: string, limit: string): Problem[] {
  const [value = "", most = ""] = [annotations[request], annotations[limit]];
  const [asked, allowed] = [parseQuantity(value), parseQuantity(most)];
  if (asked === undefined || allowed === undefined || asked <= allowed) return [];
  return [{ path: annotationPath(request), value, message: `must be at most the ${most} of ${limit}` }];
}

function withoutEgress(annotations: Annotations): Problem[] {
  const value = annotations[EGRESS_PRIVATE_ADDRESSES];
  if (value === undefined || annotations[EGRESS] === "true") return [];
  return [{ path: annotationPath(EGRESS_PRIVATE_ADDRESSES), value, message: `has no effect without ${EGRESS}: "true"` }];
}

/** Unknown names that are compared with the known ones: a pod has few, and each takes 30 µs. */
const MAX_COMPARED = 100;
const MAX_SLIPS = 10;

/** A warning for each name that is almost a known one, of the first ones. */
export function podAnnotationSlips(annotations: Annotations = {}): string[] {
  const known = POD_ANNOTATIONS;
  return Object.keys(annotations)
    .filter((name) => name.startsWith(PREFIX) && !Object.hasOwn(CHECKS, name) && !name.startsWith(PROXY_ENV))
    .slice(0, MAX_COMPARED)
    .flatMap((name) => {
      const meant = nearest(
        name.slice(PREFIX.length),
        known.map((each) => each.slice(PREFIX.length)),
      );
      return meant === undefined ? [] : [`unknown annotation ${name}: did you mean ${PREFIX}${meant}?`];
    })
    .slice(0, MAX_SLIPS);
}

/** The path of an annotation, as in problems. */
export function annotationPath(name: string): string {
  return formatPath(["metadata", "annotations", name]);
}

function wrongQuantity(value: string, least: string): string | undefined {
  const amount = parseQuantity(value);
  if (amount === undefined) return 'must be a quantity such as "100m" or "128Mi"';
  return amount < (parseQuantity(least) ?? 0) ? `must be at least ${least}` : undefined;
}

function rangesOf(text: string): string[] {
  return text.split(",").flatMap((part) => part.trim() || []);
}

const MAX_RANGES_CHARS = 16_384;

function wrongRanges(value: string): string | undefined {
  if (value.length > MAX_RANGES_CHARS) return `must have at most ${MAX_RANGES_CHARS} characters`;
  const ranges = rangesOf(value);
  const wrong = ranges.find((range) => !isRange(range));
  if (wrong !== undefined) return `${JSON.stringify(wrong.slice(0, 64))} is not a range of addresses such as 10.0.0.0/8`;
  return ranges.length === 0 ? "must be ranges of addresses such as 10.0.0.0/8, divided by commas" : undefined;
}

function isRange(text: string): boolean {
  const [, address = "", bits = ""] = /^([0-9a-fA-F:.]+)\/(\d{1,3})$/.exec(text) ?? [];
  const version = isIP(address);
  return version !== 0 && Number(bits) <= (version === 4 ? 32 : 128);
}

function wrongEnv(name: string, isReserved: (variable: string) => boolean): string | undefined {
  if (!ENV_NAME.test(name)) return "must end with the name of an environment variable";
  return isReserved(name) ? "must not be set: the mesh sets it for the proxy's identity and configuration" : undefined;
}
