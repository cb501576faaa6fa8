// The record of requests that tests and the demo check: bounded in memory, and optionally written as JSON lines of
// audit.k8s.io/v1 Event. Each request has one entry, written at its end; a watch has it at its start.
import { timestamp } from "./model/object.ts";

export interface AuditEntry {
  readonly verb: string;
  readonly user: string;
  /** As in UserInfo: for a pod-bound token the pod's name and uid. */
  readonly userExtra?: Readonly<Record<string, readonly string[]>>;
  readonly userAgent: string;
  readonly group: string;
  readonly version: string;
  readonly resource: string;
  readonly namespace: string;
  readonly name: string;
  readonly subresource: string;
  readonly requestURI: string;
  readonly code: number;
  /** Milliseconds since the epoch. */
  readonly receivedAt: number;
}

export interface AuditOptions {
  /** How many entries are kept; the default is 10,000. */
  readonly size?: number;
  /** Receives each entry as one line with its newline. */
  readonly write?: (line: string) => void;
}

export class AuditLog {
  readonly #size: number;
  readonly #write: ((line: string) => void) | undefined;
  readonly #entries: AuditEntry[] = [];
  #count = 0;

  constructor({ size = 10_000, write }: AuditOptions = {}) {
    this.#size = size;
    this.#write = write;
  }

  /** The newest entries, oldest first. */
  entries(): readonly AuditEntry[] {
    return this.#entries.slice(-this.#size);
  }

  record(entry: AuditEntry): void {
    this.#entries.push(entry);
    this.#count++;
    if (this.#entries.length > this.#size * 1.25) this.#entries.splice(0, this.#entries.length - this.#size);
    this.#write?.(`${JSON.stringify(auditEvent(entry, this.#count))}\n`);
  }
}

/** An entry as audit.k8s.io/v1 Event of level Metadata. */
function auditEvent(entry: AuditEntry, sequence: number): object {
  const { resource, namespace, name, subresource, group, version } = entry;
  const filled = Object.entries({ resource, namespace, name, apiGroup: group, apiVersion: version, subresource }).filter(
    ([, value]) => value !== "",
  );
  return {
    kind: "Event",
    apiVersion: "audit.k8s.io/v1",
    level: "Metadata",
    auditID: `localkube-${sequence}`,
    stage: entry.verb === "watch" && entry.code === 200 ? "ResponseStarted" : "ResponseComplete",
    requestURI: entry.requestURI,
    verb: entry.verb,
    user: { username: entry.user, ...(entry.userExtra === undefined ? {} : { extra: entry.userExtra }) },
    userAgent: entry.userAgent,
    ...(resource === "" ? {} : { objectRef: Object.fromEntries(filled) }),
    responseStatus: { metadata: {}, code: entry.code },
    requestReceivedTimestamp: timestamp(entry.receivedAt).replace(
      "Z",
      `.${String(entry.receivedAt % 1000).padStart(3, "0")}000Z`,
    ),
  };
}
