// The apps of all source kinds, as the watches show them. Created once by app.ts; read by webhooks, controllers, and the watch of pods.
import type { Informers } from "../../runtime/informers.ts";
import type { ChangeHandler } from "../../runtime/store.ts";
import type { App, Source, SourceObject } from "./app.ts";

export interface Apps {
  /** Every source kind has been listed. */
  readonly hasSynced: boolean;
  get(name: string, namespace: string): App | undefined;
  /** All apps, or those of one namespace. */
  list(namespace?: string): App[];
  /** Calls the handler for every object that is there, as added, and then for every change. Returns the way to end it. */
  onChange(handler: ChangeHandler<SourceObject>): () => void;
}

export function createApps(informers: Pick<Informers, "store">, sources: readonly Source[]): Apps {
  const kinds = sources.map((source) => ({ source, store: informers.store(source.resource) }));
  return {
    get hasSynced() {
      return kinds.every(({ store }) => store.hasSynced);
    },
    get(name, namespace) {
      for (const { source, store } of kinds) {
        const object = store.get(name, namespace);
        if (object !== undefined) return source.appOf(object);
      }
      return undefined;
    },
    list: (namespace) => kinds.flatMap(({ source, store }) => store.list(namespace).map((object) => source.appOf(object))),
    onChange(handler) {
      const ends = kinds.map(({ store }) => store.onChange(handler));
      return () => {
        for (const end of ends) end();
      };
    },
  };
}
