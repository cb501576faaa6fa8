// The reads of the API server that the webhook port causes. Any pod can send reviews, and the API server's
// flow control counts their reads as the manager's. Invariants: at most MAX_AT_ONCE reads at a time and
// PER_SECOND a second; the addresses take turns; each wait ends.
import { createClientPace } from "../../../base/client-pace.ts";
import { type Clock, sleep } from "../../../base/clock.ts";
import { StatusError } from "../../../kube/status.ts";
import type { App } from "../../apps/app.ts";
import type { ManagerContext } from "../../context/manager-context.ts";
import type { AppName } from "../server/webhook.ts";

/** @throws StatusError ServiceUnavailable if the review's address gets no turn: the API server tries again */
export type ReadLimit = <T>(address: string, read: () => Promise<T>) => Promise<T>;

const MAX_AT_ONCE = 16;
/** An honest cluster needs some a minute: only pods of a rollout and pods that no app selects cause any. */
const PER_SECOND = 20;
const BURST = 40;
/** All addresses share one pace. */
const ALL = "";
/** Much shorter than the timeout of the API server, which tries again. */
const MAX_WAIT_MS = 2_000;
/** About as many reads get their turn within the wait. */
const MAX_WAITING_OF_ADDRESS = 64;
const MAX_WAITING_ADDRESSES = 256;

export function createReadLimit(clock: Clock): ReadLimit {
  /** The functions that start the waiting reads, by address. The address whose turn is next comes first. */
  const waiting = new Map<string, (() => void)[]>();
  const pace = createClientPace({ perSecond: PER_SECOND, burst: BURST, clock });
  let running = 0;
  let isTimed = false;

  const startNext = () => {
    const [next] = waiting;
    if (next === undefined) return;
    const [address, queue] = next;
    waiting.delete(address);
    if (queue.length > 1) waiting.set(address, queue);
    running++;
    queue.shift()?.();
  };
  const startMore = () => {
    while (waiting.size > 0 && running < MAX_AT_ONCE && pace.allow(ALL, 1)) startNext();
    if (waiting.size === 0 || running >= MAX_AT_ONCE || isTimed) return;
    isTimed = true;
    clock.after(1_000 / PER_SECOND, () => {
      isTimed = false;
      startMore();
    });
  };
  const turnOf = async (address: string): Promise<void> => {
    const queue = waiting.get(address) ?? [];
    const hasRoom = queue.length === 0 ? waiting.size < MAX_WAITING_ADDRESSES : queue.length < MAX_WAITING_OF_ADDRESS;
    if (!hasRoom) throw busy();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    queue.push(resolve);
    waiting.set(address, queue);
    const timer = clock.after(MAX_WAIT_MS, () => {
      queue.splice(queue.indexOf(resolve), 1);
      if (queue.length === 0) waiting.delete(address);
      reject(busy());
    });
    startMore();
    await promise.finally(() => timer.cancel());
  };

  return async (address, read) => {
    await turnOf(address);
    try {
      return await read();
    } finally {
      running--;
      startMore();
    }
  };
}

function busy(): StatusError {
  const message = "ctrlmesh: too many reviews cause reads of the API server";
  return new StatusError("ServiceUnavailable", message, { retryAfterSeconds: 1 });
}

/** Much shorter than the API server's timeout. */
export const READ_TIMEOUT_MS = 3_000;

interface AppReaderOptions extends Pick<ManagerContext, "client" | "sources" | "clock"> {
  readonly limit: ReadLimit;
}

/** Undefined if the app does not exist. */
export function createAppReader({ client, sources, limit, clock }: AppReaderOptions): ReadApp<App | undefined> {
  return shareReads(async (app, address) => {
    for (const source of sources) {
      const { items } = await limit(address, () =>
        client.list(source.resource, { namespace: app.namespace, timeoutMs: READ_TIMEOUT_MS, maxRetries: 0 }),
      );
      const found = source.appsOf(items).find(({ ref }) => ref.name === app.name);
      if (found !== undefined) return found;
    }
    return undefined;
  }, clock);
}

/** Much shorter than the API server's timeout. Only pods that would pass unchanged cause a read. */
const GATHER_MS = 100;

type ReadApp<T> = (app: AppName, address: string) => Promise<T>;

/** Requests of one address for one app within GATHER_MS share a read, which begins after all of them. */
export function shareReads<T>(read: ReadApp<T>, clock: Clock): ReadApp<T> {
  const gathering = new Map<string, Promise<T>>();
  return (app, address) => {
    const key = `${address} ${app.namespace}/${app.name}`;
    const shared = gathering.get(key);
    if (shared !== undefined) return shared;
    const next = sleep(clock, GATHER_MS).then(() => {
      gathering.delete(key); // a later request needs a later read
      return read(app, address);
    });
    gathering.set(key, next);
    return next;
  };
}
