// Recognizes a refused request of an elector whose lock the app does not name: the elector would try again
// for ever. The request stays refused, but its answer names the cause, and the manager gets a report.
import type { Clock, Timer } from "../../../base/clock.ts";
import type { Logger } from "../../../base/log.ts";
import { resourceName } from "../../../kube/client/resource.ts";
import { isStatus, StatusError } from "../../../kube/status.ts";
import type { UnnamedLockMessage } from "../../../mesh/contract/messages.ts";
import { isLockResource } from "../../../mesh/ownership/lock.ts";
import type { Snapshot } from "../../../mesh/ownership/snapshot.ts";
import { unnamedLockText } from "../../../mesh/ownership/words.ts";
import type { ResourceCall } from "../../call/call.ts";
import type { Report } from "../../session/session.ts";

/** An elector tries again within seconds. An operator that exits is started again after 5 min at most. */
const FORGOTTEN_AFTER_MS = 360_000;
/** An elector reads its lock before it creates it. */
const ELECTOR_VERBS: ReadonlySet<string> = new Set(["get", "update", "patch"]);
/** The end of the User-Agent of controller-runtime's electors, and of Kubernetes' own. */
const ELECTOR_AGENT = "/leader-election";

/** Returns a function from the error of a call to the error for the client. */
export function createUnnamedLocks(report: Report, clock: Clock, log: Logger) {
  let reported: UnnamedLockMessage | undefined;
  let timer: Timer | undefined;

  const forget = () => {
    reported = undefined;
    report("unnamedLock", null);
  };
  // One lock at a time, so that two electors do not change the report by turns.
  const tell = (lock: UnnamedLockMessage) => {
    if (reported === undefined) {
      log.warn(
        { lock: lock.lockName, resource: lock.resource },
        "the operator is refused what looks like its leader-election lock",
      );
      reported = lock;
      report("unnamedLock", lock);
    } else if (reported.lockName !== lock.lockName || reported.resource !== lock.resource) return;
    timer?.cancel();
    timer = clock.after(FORGOTTEN_AFTER_MS, forget);
  };
  return (error: unknown, call: ResourceCall, snapshot: Snapshot): unknown => {
    const { info, record } = call;
    const isRefused = isStatus(error, "Forbidden") && record.reason === "other-subset";
    if (!isRefused || !looksLikeLock(call, snapshot)) return error;
    tell({ lockName: info.name, resource: resourceName(info) });
    const { message, details } = error.status;
    const cause = { reason: "LockNotNamed", message: unnamedLockText(info.name, snapshot.lockName, snapshot.words) };
    const causes = [...(details?.causes ?? []), cause];
    return new StatusError("Forbidden", `${message}; ${cause.message}`, { ...details, causes });
  };
}

// Leases serve electors and little else. Only the User-Agent distinguishes a lock from another ConfigMap.
function looksLikeLock({ info, headers }: ResourceCall, { podNamespace }: Snapshot): boolean {
  if (info.namespace !== podNamespace || !ELECTOR_VERBS.has(info.verb) || info.subresource !== "") return false;
  if (!isLockResource(info.group, info.resource)) return false;
  return info.resource === "leases" || (headers["user-agent"] ?? "").endsWith(ELECTOR_AGENT);
}
