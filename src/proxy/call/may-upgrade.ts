// Which upgrades the outbound stack serves: exec, attach, port-forward and proxy. Called by the traffic server.
import { parseRequestInfo } from "../../kube/request-info.ts";
import * as kind from "../../kube/request-kind.ts";

/** True for a request that may become a tunnel. */
export function mayUpgrade(method: string, target: string): boolean {
  try {
    return kind.mayUpgrade(parseRequestInfo(method, target));
  } catch {
    return false; // the stack answers 400
  }
}
