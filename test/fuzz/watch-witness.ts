// Sees what the clients of the model test of watches are shown, and notes what must not be shown at that moment.
import { ANSWER_MS, EVENT_MS } from "../../src/proxy/filter/own-writes.ts";
import type { FakeClock } from "../support/fake-clock.ts";
import type { ModelClient, Observer } from "./watch-model/client.ts";
import type { SeenEvent } from "./watch-model/memory.ts";
import type { Place, Resource } from "./watch-script.ts";

export interface WatchedClient {
  readonly client: ModelClient;
  readonly resource: Resource;
}

export class Witness {
  /** All events that clients were shown, in their order. */
  readonly shown: (SeenEvent & { readonly client: ModelClient; readonly resource: Resource })[] = [];
  /** What was shown although it must not be. */
  readonly problems: string[] = [];
  readonly #places: ReadonlyMap<string, Place>;
  /** The namespaces that were the subset's => when they last were. */
  readonly #wereMine = new Map<string, number>();
  readonly #clock: FakeClock;
  readonly #mayExpire: () => boolean;

  /** @param mayExpire something has moved, or moves were lost */
  constructor(places: ReadonlyMap<string, Place>, clock: FakeClock, mayExpire: () => boolean) {
    this.#places = places;
    this.#clock = clock;
    this.#mayExpire = mayExpire;
  }

  /** The places have changed. */
  noteOurs(): void {
    for (const [name, place] of this.#places) {
      if (place !== "own" && this.#wereMine.get(name) === Number.POSITIVE_INFINITY)
        this.#wereMine.set(name, this.#clock.monotonicMs());
      if (place === "own") this.#wereMine.set(name, Number.POSITIVE_INFINITY);
    }
  }

  /** What a client tells. @param watched the client, as soon as it runs */
  observerOf(watched: () => WatchedClient): Observer {
    return {
      onEvent: (event) => {
        this.#checkEvent(event);
        this.shown.push({ ...event, ...watched() });
      },
      onList: (namespaces) => this.checkList(namespaces),
      onExpired: () => {
        if (!this.#mayExpire()) this.problems.push("a client has to list again, but nothing has moved");
      },
    };
  }

  checkList(namespaces: ReadonlySet<string>): void {
    for (const each of namespaces)
      if (this.#places.get(each) !== "own") this.problems.push(`${each} listed, which is ${this.#places.get(each)}`);
  }

  #checkEvent({ type, key, namespace, version }: SeenEvent): void {
    const place = this.#places.get(namespace);
    // What has gone may be told of again, if the client may have known it.
    const untilMs = this.#wereMine.get(namespace) ?? Number.NEGATIVE_INFINITY;
    if (place === "own" || (type === "DELETED" && this.#wereMine.has(namespace))) return;
    // The events of the last own writes are still shown.
    if (this.#clock.monotonicMs() - untilMs <= ANSWER_MS + EVENT_MS) return;
    this.problems.push(`${type} ${key} of version ${version} shown, which is ${place}`);
  }
}
