// Which annotations are in force for a pod. Pure. Invariant: the pod's own take precedence over the app's,
// and these over the defaults of the cluster. Called by inject-pod.ts.
import { HOST_ALIASES, INTERCEPT } from "../../api/annotations.ts";
import { PROXY_CPU, PROXY_CPU_LIMIT, PROXY_MEMORY, PROXY_MEMORY_LIMIT } from "../../api/pod-annotations.ts";

type Annotations = Readonly<Record<string, string>>;

/**
 * A request and a limit belong together: a pod that sets one gets no default of the other, which might
 * contradict it.
 */
const PAIRS = [
  [PROXY_CPU, PROXY_CPU_LIMIT],
  [PROXY_MEMORY, PROXY_MEMORY_LIMIT],
] as const;

/** @param app the annotations of the app's object, of which the two that pods share count */
export function annotationsInForce(own: Annotations = {}, app: Annotations = {}, defaults: Annotations = {}): Annotations {
  const left = { ...defaults };
  for (const pair of PAIRS) if (pair.some((name) => own[name] !== undefined)) for (const name of pair) delete left[name];
  const shared = [INTERCEPT, HOST_ALIASES].flatMap((name) => (app[name] === undefined ? [] : [[name, app[name]] as const]));
  return { ...left, ...Object.fromEntries(shared), ...own };
}
