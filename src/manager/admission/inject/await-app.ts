// Waits for an app that this replica does not know yet: the leader knew it before it wrote the webhook, but
// this replica may lag. Invariant: a request that waits holds no body, and few wait at a time, since any
// client can name an app that does not exist.
import { onAbort } from "../../../base/abort.ts";
import type { Clock } from "../../../base/clock.ts";
import { createFairBudget } from "../../../base/fair-budget.ts";
import { StatusError } from "../../../kube/status.ts";
import type { Apps } from "../../apps/app.ts";
import type { AppName, Ready } from "../server/webhook.ts";

/** A watch that is further behind than this is broken. */
const UNKNOWN_APP_MS = 2_000;
/**
 * As many as there are places for connections (webhook-server.ts): a waiting request has a connection and no
 * body. One address gets half, and those that then take all they can a quarter, an eighth and so on. An API
 * server that gets none tries again after a second.
 */
const MAX_WAITING = 256;

export function createAppWait({ apps, clock }: { readonly apps: Apps; readonly clock: Clock }): (app: AppName) => Ready {
  const places = createFairBudget(MAX_WAITING);
  return (app) =>
    async ({ address, signal }) => {
      // Before the first list, the review says so.
      if (!apps.hasSynced || apps.get(app.name, app.namespace) !== undefined) return;
      if (!places.take(address, 1)) {
        const message = "ctrlmesh: too many requests wait for an app that this replica of the manager does not know";
        throw new StatusError("TooManyRequests", message, { retryAfterSeconds: 1 });
      }
      await untilKnown(apps, app, clock, signal).finally(() => places.give(address, 1));
    };
}

/** Resolves when the app is known, after UNKNOWN_APP_MS, or when the client is gone. */
async function untilKnown(apps: Apps, { namespace, name }: AppName, clock: Clock, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = clock.after(UNKNOWN_APP_MS, () => resolve());
  const unlink = onAbort(signal, resolve);
  const unsubscribe = apps.onChange(({ type, object }) => {
    if (type === "deleted" || object.metadata.namespace !== namespace) return;
    if (apps.get(name, namespace) !== undefined) resolve();
  });
  await promise;
  timer.cancel();
  unsubscribe();
  unlink();
}
