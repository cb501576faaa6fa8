// The contract between a controller and its reconciler, with controller-runtime's names. A reconciler is
// level-based: a request names an object and never an event, and it reads everything else from stores.
import { MeshError } from "../base/errors.ts";

/** Names the object to reconcile. The namespace is "" for cluster-scoped kinds. */
export interface Request {
  readonly namespace: string;
  readonly name: string;
}

export interface Result {
  /** Reconcile again after this time, even if nothing changes. Without it the object waits for a change. */
  readonly requeueAfterMs?: number;
}

export interface Reconciler {
  /**
   * Brings the cluster to the state that the object describes. The object may be deleted. There is one call
   * at a time for each object. An error is retried with backoff, except for a TerminalError, which only a
   * change of the object can resolve.
   * @param signal fires when the reconcile must end immediately: the leadership is lost (reason
   * `LEADERSHIP_LOST`), the timeout is reached (`RECONCILE_TIMEOUT`), or the grace after a stop is over. Pass
   * it to every call of the client.
   */
  reconcile(request: Request, signal: AbortSignal): Promise<Result>;
}

/** An error that no retry can resolve. It is logged and counted. */
export class TerminalError extends MeshError {
  constructor(message: string, options?: ErrorOptions) {
    super("TERMINAL", message, options);
    this.name = "TerminalError";
  }
}

/** The request as a key of a work queue. Names and namespaces contain no slash. */
export function formatRequest({ namespace, name }: Request): string {
  return `${namespace}/${name}`;
}

export function parseRequest(key: string): Request {
  const slash = key.indexOf("/");
  return { namespace: key.slice(0, slash), name: key.slice(slash + 1) };
}
