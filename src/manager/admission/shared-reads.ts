// Reads of source objects for the injecting webhook. Whoever reaches its port can cause one, without proving who it is, and the manager's
// requests share the API server's patience with those that renew its lease. Invariants: an app is read a few times a second at most,
// however many ask; and what is given was read after it was asked for.
import { type Clock, sleep } from "../../base/clock.ts";
import type { AppName } from "./webhook.ts";

/** Nothing beside what the API server waits for; a pod that is let through as it is has to be made sure of once in a while only. */
const GATHER_MS = 100;

/** Those who ask for the same app within a moment share one read. */
export function shareReads<T>(read: (app: AppName) => Promise<T>, clock: Clock): (app: AppName) => Promise<T> {
  const gathering = new Map<string, Promise<T>>();
  return (app) => {
    const key = `${app.namespace}/${app.name}`;
    const known = gathering.get(key);
    if (known !== undefined) return known;
    const next = sleep(clock, GATHER_MS).then(() => {
      gathering.delete(key); // who asks from now on has to be told of what changes from now on
      return read(app);
    });
    gathering.set(key, next);
    return next;
  };
}
