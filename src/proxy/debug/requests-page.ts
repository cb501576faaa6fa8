// /debug/requests: the next few requests, as the access log without a setting or a restart. Invariant: bounded in number, time and
// readers, and it ends with its reader. Called by debug-pages.ts.
import { type Clock, sleep } from "../../base/clock.ts";
import { MeshError } from "../../base/errors.ts";
import type { Page } from "../../base/health-server.ts";
import type { AccessFields, AccessLog } from "../observe/access-log.ts";

const MAX_COUNT = 1_000;
const MAX_SECONDS = 60;
const MAX_READERS = 4;

export interface RequestsPageDeps {
  readonly accessLog: Pick<AccessLog, "tap">;
  readonly clock: Clock;
}

/** Makes the page: `?count=20&seconds=10`; it answers once it has so many, or when time is over. */
export function requestsPage({ accessLog, clock }: RequestsPageDeps): Page {
  let readers = 0;
  return async (query, signal) => {
    const count = parameter(query, "count", 20, MAX_COUNT);
    const seconds = parameter(query, "seconds", 10, MAX_SECONDS);
    if (readers >= MAX_READERS) throw new MeshError("BAD_REQUEST", `${MAX_READERS} readers at once are enough`);
    readers++;
    const requests: AccessFields[] = [];
    const full = new AbortController();
    const untap = accessLog.tap((fields) => {
      if (requests.length < count) requests.push(fields);
      if (requests.length >= count) full.abort();
    });
    try {
      await sleep(clock, seconds * 1_000, AbortSignal.any([signal, full.signal])).catch(() => undefined);
      return { requests };
    } finally {
      untap();
      readers--;
    }
  };
}

function parameter(query: URLSearchParams, name: string, fallback: number, max: number): number {
  const text = query.get(name) ?? String(fallback);
  const value = Number(text);
  if (/^\d+$/.test(text) && value >= 1 && value <= max) return value;
  throw new MeshError("BAD_REQUEST", `${name}: ${JSON.stringify(text)} is not a whole number from 1 to ${max}`);
}
