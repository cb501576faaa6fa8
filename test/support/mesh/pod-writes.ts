// The pods' writes from the API server's audit log. A pod's token is bound to the pod, so the log names the pod, independently
// of the operator's user agent.
import type { AuditEvent } from "../kube.ts";

export interface PodWrite {
  readonly pod: string;
  readonly verb: string;
  /** With the subresource: "foos/status". */
  readonly resource: string;
  readonly namespace: string;
  readonly name: string;
  readonly code: number;
  /** When the API server received and answered the request: milliseconds since 1970, with microseconds. */
  readonly receivedMs: number;
  readonly answeredMs: number;
}

const POD_NAME_CLAIM = "authentication.kubernetes.io/pod-name";

/** The writes of pods in the order of the log, which is the order of the answers. */
export function podWritesOf(events: readonly AuditEvent[]): PodWrite[] {
  return events.flatMap((event) => {
    const pod = podOf(event);
    const { objectRef } = event;
    // A review changes nothing.
    if (pod === undefined || objectRef === undefined || objectRef.apiGroup === "authorization.k8s.io" || isRead(event)) return [];
    const { resource, namespace = "", name = "", subresource } = objectRef;
    return [
      {
        pod,
        verb: event.verb,
        resource: subresource === undefined ? resource : `${resource}/${subresource}`,
        namespace,
        name,
        code: event.responseStatus?.code ?? 0,
        receivedMs: microTimeMs(event.requestReceivedTimestamp),
        answeredMs: microTimeMs(event.stageTimestamp),
      },
    ];
  });
}

/** A list or a watch. */
export function isRead({ verb }: AuditEvent): boolean {
  return verb === "list" || verb === "watch";
}

/** The pod of the request's token. */
export function podOf({ user }: AuditEvent): string | undefined {
  return user.extra?.[POD_NAME_CLAIM]?.[0];
}

/** Kubernetes' MicroTime, "2026-01-02T03:04:05.123456Z". Date keeps only its milliseconds. */
export function microTimeMs(text: string): number {
  const [whole = "", fraction = "Z"] = text.split(".");
  const seconds = Date.parse(fraction === "Z" ? whole : `${whole}Z`);
  return fraction === "Z" ? seconds : seconds + Number(`0.${fraction.slice(0, -1)}`) * 1000;
}
