// How often a status says another number of held namespaces: it goes up and down with every request that waits, and each number would
// be a write of the status. Pure; the status feed remembers when it was said last.
import type { AppStatus } from "../../api/app-status.ts";

/** Another number is said at most once in this time, in milliseconds; the first after a quiet time at once. */
const HELD_EVERY_MS = 5_000;

export interface Paced {
  readonly status: AppStatus;
  /** When the number that is kept back may be said. */
  readonly dueMs?: number;
}

/** @param saidMsAgo when another number was said last */
export function paceHeld(before: AppStatus | undefined, status: AppStatus, saidMsAgo: number): Paced {
  const said = before?.namespaces?.held;
  const { namespaces } = status;
  if (said === undefined || namespaces === undefined || namespaces.held === said || saidMsAgo >= HELD_EVERY_MS) return { status };
  return { status: { ...status, namespaces: { ...namespaces, held: said } }, dueMs: HELD_EVERY_MS - saidMsAgo };
}
