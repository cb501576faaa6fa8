// Which Kubernetes Events a change of status is worth: results only, on change, never repeated. Pure.
import type { ConditionType } from "../../../api/conditions.ts";
import type { VirtualAppStatus } from "../../../api/virtual-app-status.ts";
import type { EventType } from "../../../runtime/events.ts";

export interface AppEvent {
  readonly type: EventType;
  /** One CamelCase word, stable. */
  readonly reason: string;
  readonly message: string;
}

/** The events between two statuses. Every warning also stands in a condition. */
export function appEvents(before: VirtualAppStatus | undefined, now: VirtualAppStatus): AppEvent[] {
  const events: AppEvent[] = [];
  const accepted = conditionOf(now, "Accepted");
  if (accepted?.status === "False" && accepted.message !== conditionOf(before, "Accepted")?.message) {
    events.push({ type: "Warning", reason: "ConfigRejected", message: accepted.message });
  }
  const ready = conditionOf(now, "Ready");
  if (ready?.reason === "SnapshotRefused" && conditionOf(before, "Ready")?.reason !== ready.reason) {
    events.push({ type: "Warning", reason: "SnapshotRefused", message: ready.message });
  }
  const lock = conditionOf(now, "LockPermitted");
  const lockBefore = conditionOf(before, "LockPermitted");
  if (lock?.status === "False" && lock.message !== lockBefore?.message) {
    events.push({ type: "Warning", reason: "LockDenied", message: lock.message });
  } else if (lock?.status === "True" && lockBefore?.status === "False") {
    events.push({ type: "Normal", reason: "LockPermitted", message: lock.message });
  }
  const intercepted = conditionOf(now, "TrafficIntercepted");
  if (intercepted?.status === "False" && conditionOf(before, "TrafficIntercepted")?.status !== "False") {
    events.push({ type: "Warning", reason: "InjectionMissed", message: intercepted.message });
  }
  const moved = before?.namespaces?.moving ?? 0;
  if (moved > 0 && now.namespaces?.moving === 0) {
    events.push({
      type: "Normal",
      reason: "MovedNamespaces",
      message: `${moved} namespaces have moved, route ${now.routeVersion}`,
    });
  }
  return events;
}

function conditionOf(status: VirtualAppStatus | undefined, type: ConditionType) {
  return status?.conditions?.find((row) => row.type === type);
}
