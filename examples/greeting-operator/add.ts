// What the Greeting controller watches: Greetings, the ConfigMaps that they own, the words, and the directory.
import type { Clock } from "../../src/base/clock.ts";
import type { Logger } from "../../src/base/log.ts";
import { CONFIG_MAPS } from "../../src/kube/client/resources.ts";
import type { KubeClient } from "../../src/kube/client/types.ts";
import { type Controller, controllerOf, selfRequest } from "../../src/runtime/controller.ts";
import type { ControllerMetrics } from "../../src/runtime/controller-metrics.ts";
import type { EventRecorder } from "../../src/runtime/events.ts";
import type { Informers } from "../../src/runtime/informers.ts";
import { generationChanged } from "../../src/runtime/predicates.ts";
import { amissIn, createDirectory, DIRECTORY_NAME } from "./directory.ts";
import { CHILD_LABEL, GREETINGS } from "./greeting.ts";
import { createGreetingReconciler, FIELD_MANAGER } from "./reconciler.ts";

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
    .owns(CONFIG_MAPS, { selectors: selectors.children })
    .watches(CONFIG_MAPS, () => greetings.list().flatMap(selfRequest), { selectors: selectors.words })
    .watches(CONFIG_MAPS, (lines) => amissIn(lines, greetings.list()).flatMap(selfRequest), { selectors: selectors.directory })
    .withReconciler(
      createGreetingReconciler({
        ...options,
        greetings,
        children,
        words: () => words.get(WORDS_NAME, namespace)?.data ?? {},
        directory: createDirectory({ client, store: directory, namespace, fieldManager: FIELD_MANAGER }),
      }),
    );
}
