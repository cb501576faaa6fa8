// The contract between a controller and what it runs, in controller-runtime's words. A reconciler is level-based: it is
// told which object, never what happened, and reads the rest from stores.
import { MeshError } from "../base/errors.ts";

/** Which object to look at. The namespace is "" for cluster-scoped kinds. */
export interface Request {
  readonly namespace: string;
  readonly name: string;
}

export interface Result {
  /**
   * Look again after this time, in milliseconds, also if nothing changes. Taken as it is, without backoff or jitter; a
   * change comes first all the same. Absent: the next change will do.
   */
  readonly requeueAfterMs?: number;
}

export interface Reconciler {
  /**
   * Brings the world in line with the object, which may be gone. Never called twice at a time for one object. Throws to be
   * called again with backoff; throws a TerminalError when only a change of the object can help.
   * @param signal fires when the work must end at once: leadership is lost (reason `LEADERSHIP_LOST`), the time is over
   *   (`RECONCILE_TIMEOUT`), or the grace after a stop is. Hand it to every call of the client.
   */
  reconcile(request: Request, signal: AbortSignal): Promise<Result>;
}

/** An error that a retry cannot mend: logged and counted, not retried. */
export class TerminalError extends MeshError {
  constructor(message: string, options?: ErrorOptions) {
    super("TERMINAL", message, options);
    this.name = "TerminalError";
  }
}

/** The request as a key of a work queue; names and namespaces hold no slash. */
export function formatRequest({ namespace, name }: Request): string {
  return `${namespace}/${name}`;
}

/** The request of a key. */
export function parseRequest(key: string): Request {
  const slash = key.indexOf("/");
  return { namespace: key.slice(0, slash), name: key.slice(slash + 1) };
}
