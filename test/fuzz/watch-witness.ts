// Sees what the clients of the model test of watches are shown, and notes what must not be shown at that moment.
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
  readonly #wereMine = new Set<string>();
  readonly #mayExpire: () => boolean;
  readonly #retains: (namespace: string) => boolean;

  /**
   * @param mayExpire something has moved, or moves were lost
   * @param retains the pod is shown a namespace that it has lost, until it has seen its own writes
   */
  constructor(places: ReadonlyMap<string, Place>, mayExpire: () => boolean, retains: (namespace: string) => boolean) {
    this.#places = places;
    this.#mayExpire = mayExpire;
    this.#retains = retains;
  }

  /** The places have changed. */
  noteOurs(): void {
    for (const [name, place] of this.#places) if (place === "own") this.#wereMine.add(name);
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
      if (!this.#mayShow(each)) this.problems.push(`${each} listed, which is ${this.#places.get(each)}`);
  }

  #checkEvent({ type, key, namespace, version }: SeenEvent): void {
    // What has gone may be told of again, if the client may have known it.
    if (this.#mayShow(namespace) || (type === "DELETED" && this.#wereMine.has(namespace))) return;
    this.problems.push(`${type} ${key} of version ${version} shown, which is ${this.#places.get(namespace)}`);
  }

  #mayShow(namespace: string): boolean {
    return this.#places.get(namespace) === "own" || (this.#retains(namespace) && this.#wereMine.has(namespace));
  }
}
