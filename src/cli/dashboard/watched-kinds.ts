// The kinds that the page shows, listed and watched, and what is known of the API server meanwhile. Invariants: a kind that the user may not
// read, or that is not there, hides no other; nothing that was known is forgotten while the API server does not answer.
import { type Clock, type Random, sleep } from "../../base/clock.ts";
import { errorMessage } from "../../base/errors.ts";
import { silentLogger } from "../../base/log.ts";
import { type Resource, resourceName } from "../../kube/client/resource.ts";
import type { WatchEvent, WatchOptions } from "../../kube/client/types.ts";
import { StatusError } from "../../kube/status.ts";
import type { KubeObject } from "../../kube/types.ts";
import { createInformers, type Informers } from "../../runtime/informers.ts";
import type { Watcher } from "../frame/cluster.ts";
import type { StoreOf } from "./board.ts";
import type { KindPart, Tick } from "./model/parts.ts";

/** A person looks at it, so reads that have failed are tried again sooner than those of a controller. */
const MAX_WAIT_MS = 3_000;
const PROBE_MS = 2_000;
/** Each watch of a resource answers, or is silent, by itself, so one cheap read says whether the API server is there. */
const PROBE_PATH = "/apis/ctrlmesh.kruise.io/v1alpha1";
const PROBE_TIMEOUT_MS = 5_000;

export interface WatchedKinds {
  readonly storeOf: StoreOf;
  /** Empty while the API server answers. */
  connection(): Pick<Tick, "awaySinceMs" | "problem">;
  start(signal: AbortSignal): Promise<void>;
}

interface Options {
  readonly client: Watcher["client"];
  /** Undefined: all namespaces. */
  readonly namespace: string | undefined;
  readonly clock: Clock;
  readonly random: Random;
  onKind(part: KindPart): void;
}

export function watchedKinds({ client, namespace, clock, random, onKind }: Options): WatchedKinds {
  let answeredMs = clock.now();
  let problem: string | undefined;
  const answered = () => {
    answeredMs = clock.now();
    problem = undefined;
  };
  const failed = (error: unknown) => {
    if (isAnswer(error)) answered();
    else problem = errorMessage(error);
  };
  const kindFailed = (error: unknown) => {
    if (!isErrorOfKind(error)) failed(error);
  };
  const told = (resource: Resource, state: KindPart["state"], why?: string) =>
    onKind({ part: "kind", resource: resourceName(resource), kind: resource.kind, state, problem: why });
  const list: Watcher["client"]["list"] = async (resource, options) => {
    try {
      const found = await client.list(resource, options);
      answered();
      told(resource as Resource, "shown");
      return found;
    } catch (error) {
      kindFailed(error);
      if (isAnswer(error) || isErrorOfKind(error)) told(resource as Resource, stateBy(error), errorMessage(error));
      throw error;
    }
  };
  async function* watch<T extends KubeObject>(resource: Resource<T>, options: WatchOptions = {}): AsyncGenerator<WatchEvent<T>> {
    let isFirst = true;
    try {
      for await (const event of client.watch(resource, options)) {
        answered();
        if (isFirst) told(resource as Resource, "shown");
        isFirst = false;
        yield event;
      }
    } catch (error) {
      kindFailed(error);
      // A right to list without the right to watch shows what was there at the beginning.
      if (error instanceof StatusError && error.status.code === 403) told(resource as Resource, "forbidden", error.message);
      throw error;
    }
  }
  const informers = informersOf({ list, watch }, clock, random);
  return {
    storeOf: (resource) => informers.store(resource, namespace === undefined ? {} : { namespace }),
    connection: () => (problem === undefined ? {} : { awaySinceMs: answeredMs, problem }),
    async start(signal) {
      await informers.start(signal);
      while (!signal.aborted) {
        const within = AbortSignal.any([signal, AbortSignal.timeout(PROBE_TIMEOUT_MS)]);
        await client.request({ method: "GET", path: PROBE_PATH, signal: within, maxRetries: 0 }).then(answered, failed);
        await sleep(clock, PROBE_MS, signal).catch(() => {});
      }
      await informers.stop();
    },
  };
}

function informersOf(client: Pick<Watcher["client"], "list" | "watch">, clock: Clock, random: Random): Informers {
  const impatient: Clock = { ...clock, after: (ms, run) => clock.after(Math.min(ms, MAX_WAIT_MS), run) };
  // A failure is said on the page.
  return createInformers({ client, clock: impatient, random, log: silentLogger() });
}

/** True for an answer of the API server, also a refusal. 401 is for a credential that has ended, and above 500 is a proxy, or a server that starts. */
function isAnswer(error: unknown): error is StatusError {
  return error instanceof StatusError && error.status.code < 500 && error.status.code !== 401;
}

/** Of a kind's conversion webhook, or of kubectl that cannot reach the API server: the probe says which. */
function isErrorOfKind(error: unknown): error is StatusError {
  return error instanceof StatusError && error.status.code === 500;
}

function stateBy({ status: { code } }: StatusError): KindPart["state"] {
  if (code === 404) return "missing";
  return code === 403 ? "forbidden" : "failed";
}
