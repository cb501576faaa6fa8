// The annotations of a pod, which control its injection. Pure. Invariant: every invalid value is reported,
// and so is a name that is almost a known one.
import {
  ANNOTATION_PREFIX,
  ANNOTATIONS,
  type AnnotationName,
  type Annotations,
  annotationKey,
  annotationsOn,
  annotationValue,
} from "./annotations.ts";
import { nearest } from "./nearest.ts";
import type { Problem } from "./problems.ts";
import { parseQuantity } from "./quantity.ts";
import { formatPath } from "./rule.ts";

/** Annotations with this prefix set an environment variable of the proxy. */
export const PROXY_ENV = `${ANNOTATION_PREFIX}proxy-env.`;

const POD_ANNOTATIONS = annotationsOn("pod");
const NAMES: ReadonlyMap<string, AnnotationName> = new Map(POD_ANNOTATIONS.map((name) => [annotationKey(name), name]));
const ENV_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** The annotations of each resource of the proxy. */
export const RESOURCE_PAIRS = POD_ANNOTATIONS.flatMap((request) => {
  const { requests: resource } = ANNOTATIONS[request];
  const limit = POD_ANNOTATIONS.find((name) => resource !== undefined && ANNOTATIONS[name].limits === resource);
  return resource === undefined || limit === undefined ? [] : [{ resource, request, limit }];
});

/** An app's object sets these for all of its pods. */
export const SHARED_ANNOTATIONS: readonly string[] = annotationsOn("app")
  .filter((name) => ANNOTATIONS[name].on === "both")
  .map(annotationKey);

/** A pod's own annotations come first, then those of its app, then the defaults of the cluster. */
export function annotationsInForce(own: Annotations = {}, app: Annotations = {}, defaults: Annotations = {}): Annotations {
  // A pod that sets a request or a limit gets no default of the other, which might contradict it.
  const replaced = RESOURCE_PAIRS.map(({ request, limit }) => [annotationKey(request), annotationKey(limit)])
    .filter((pair) => pair.some((key) => own[key] !== undefined))
    .flat();
  return {
    ...picked(defaults, (key) => !replaced.includes(key)),
    ...picked(app, (key) => SHARED_ANNOTATIONS.includes(key)),
    ...picked(own, isOfMesh),
  };
}

function picked(annotations: Annotations, isWanted: (key: string) => boolean): Annotations {
  return Object.fromEntries(Object.entries(annotations).filter(([key]) => isWanted(key)));
}

/** True for the annotations that the manager reads. A pod may have thousands of others. */
function isOfMesh(key: string): boolean {
  return NAMES.has(key) || key.startsWith(PROXY_ENV);
}

/** What the annotations set in the proxy's container, without its resources. */
export interface ProxyAnnotations {
  /** The variables of the table in its order, then further ones by name. */
  readonly env: readonly { readonly name: string; readonly value: string }[];
  readonly fields: Readonly<Record<string, string>>;
}

/** Expects that `podAnnotationProblems` finds no problem. */
export function proxyAnnotations(annotations: Annotations = {}): ProxyAnnotations {
  const passed = POD_ANNOTATIONS.flatMap((name) => {
    const { env, field, normalize = (value: string) => value } = ANNOTATIONS[name];
    const value = normalize(annotationValue(annotations, name));
    return value === "" ? [] : [{ env, field, value }];
  });
  const others = Object.keys(annotations)
    .filter((key) => key.startsWith(PROXY_ENV))
    .map((key) => ({ name: key.slice(PROXY_ENV.length), value: annotations[key] ?? "" }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
  return {
    env: [...passed.flatMap(({ env: name, value }) => (name === undefined ? [] : [{ name, value }])), ...others],
    fields: Object.fromEntries(passed.flatMap(({ field, value }) => (field === undefined ? [] : [[field, value]]))),
  };
}

/** `isReserved` is true for the variables of the proxy that may not be set. */
export function podAnnotationProblems(
  annotations: Annotations = {},
  isReserved: (variable: string) => boolean = () => false,
): Problem[] {
  const wrong = Object.entries(picked(annotations, isOfMesh)).flatMap(([key, value]) => {
    const name = NAMES.get(key);
    const message = key.startsWith(PROXY_ENV)
      ? wrongEnv(key.slice(PROXY_ENV.length), isReserved)
      : name && ANNOTATIONS[name].whyWrong(value);
    return message === undefined ? [] : [problemOf(key, value, message)];
  });
  if (wrong.length > 0) return wrong;
  return [...RESOURCE_PAIRS.flatMap((pair) => aboveLimit(annotations, pair)), ...withoutEgress(annotations)];
}

/** Why these annotations cannot be the defaults of all pods. */
export function defaultAnnotationProblems(annotations: Annotations, isReserved: (variable: string) => boolean): string[] {
  const allowed: readonly string[] = POD_ANNOTATIONS.filter((name) => ANNOTATIONS[name].isPerPod !== true);
  const unknown = Object.keys(annotations)
    .filter((key) => !key.startsWith(PROXY_ENV))
    .map((key) => key.slice(ANNOTATION_PREFIX.length))
    .filter((name) => !allowed.includes(name));
  return [
    ...unknown.map((name) => {
      const meant = nearest(name, allowed);
      const hint = meant === undefined ? `; these are: ${allowed.join(", ")}, proxy-env.NAME` : `; did you mean "${meant}"?`;
      return `${JSON.stringify(name)} is not a default of pods${hint}`;
    }),
    ...podAnnotationProblems(annotations, isReserved).map(
      ({ path, value, message }) => `${path}: ${JSON.stringify(value)}: ${message}`,
    ),
  ];
}

/** A pod has few unknown names. Each comparison takes 30 µs. */
const MAX_COMPARED = 100;
const MAX_MISSPELLINGS = 10;

/** Warns of names that are almost a known one. */
export function podAnnotationMisspellings(annotations: Annotations = {}): string[] {
  return Object.keys(annotations)
    .filter((key) => key.startsWith(ANNOTATION_PREFIX) && !isOfMesh(key))
    .slice(0, MAX_COMPARED)
    .flatMap((key) => {
      const meant = nearest(key.slice(ANNOTATION_PREFIX.length), POD_ANNOTATIONS);
      return meant === undefined ? [] : [`unknown annotation ${key}: did you mean ${ANNOTATION_PREFIX}${meant}?`];
    })
    .slice(0, MAX_MISSPELLINGS);
}

function aboveLimit(annotations: Annotations, { request, limit }: (typeof RESOURCE_PAIRS)[number]): Problem[] {
  const [value = "", most = ""] = [annotations[annotationKey(request)], annotations[annotationKey(limit)]];
  const [asked, allowed] = [parseQuantity(value), parseQuantity(most)];
  if (asked === undefined || allowed === undefined || asked <= allowed) return [];
  return [problemOf(annotationKey(request), value, `must be at most the ${most} of ${annotationKey(limit)}`)];
}

function withoutEgress(annotations: Annotations): Problem[] {
  const key = annotationKey("egress-private-addresses");
  const value = annotations[key];
  if (value === undefined || annotationValue(annotations, "egress") === "true") return [];
  return [problemOf(key, value, `has no effect without ${annotationKey("egress")}: "true"`)];
}

function problemOf(key: string, value: string, message: string): Problem {
  return { path: formatPath(["metadata", "annotations", key]), value, message };
}

function wrongEnv(name: string, isReserved: (variable: string) => boolean): string | undefined {
  if (!ENV_NAME.test(name)) return "must end with the name of an environment variable";
  return isReserved(name) ? "must not be set: the mesh sets it for the proxy's identity and configuration" : undefined;
}
