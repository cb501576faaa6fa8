// What the Greeting controller watches: Greetings, the ConfigMaps that they own, the words, and the directory.
import {
  type Clock,
  CONFIG_MAPS,
  type Controller,
  type ControllerMetrics,
  controllerOf,
  controllerRequest,
  type EventRecorder,
  generationChanged,
  type Informers,
  type KubeClient,
  type Logger,
  selfRequest,
} from "../../src/runtime/index.ts";
import { amissIn, createDirectory, DIRECTORY_NAME } from "./directory.ts";
import { CHILD_LABEL, GREETINGS } from "./greeting.ts";
import { createGreetingReconciler } from "./reconciler.ts";

const WORDS_NAME = "greeting-words";

export interface GreetingControllerOptions {
  readonly client: KubeClient;
  readonly informers: Informers;
  readonly events: EventRecorder;
  readonly metrics: ControllerMetrics;
  readonly clock: Clock;
  readonly log: Logger;
  readonly podName: string;
  /** The operator's own namespace. */
  readonly namespace: string;
}

export function addGreetingController(options: GreetingControllerOptions): Controller {
  const { client, informers, namespace } = options;
  const own = (name: string) => ({ namespace, fieldSelector: `metadata.name=${name}` });
  const selectors = {
    children: { labelSelector: `${CHILD_LABEL.name}=${CHILD_LABEL.value}` },
    words: own(WORDS_NAME),
    directory: own(DIRECTORY_NAME),
  };
  // These are the stores of the controller below, so each kind has one list and one watch.
  const greetings = informers.store(GREETINGS);
  const children = informers.store(CONFIG_MAPS, selectors.children);
  const words = informers.store(CONFIG_MAPS, selectors.words);
  const directory = informers.store(CONFIG_MAPS, selectors.directory);

  return controllerOf({ name: "greeting", concurrency: 4, debounceMs: 20, reconcileTimeoutMs: 30_000, ...options })
    .for(GREETINGS, { predicates: [generationChanged] })
    .watches(CONFIG_MAPS, controllerRequest(GREETINGS), { selectors: selectors.children })
    .watches(CONFIG_MAPS, () => greetings.list().flatMap(selfRequest), { selectors: selectors.words })
    .watches(CONFIG_MAPS, (lines) => amissIn(lines, greetings.list()).flatMap(selfRequest), { selectors: selectors.directory })
    .withReconciler(
      createGreetingReconciler({
        ...options,
        greetings,
        children,
        words: () => words.get(WORDS_NAME, namespace)?.data ?? {},
        directory: createDirectory({ client, store: directory, namespace }),
      }),
    );
}
