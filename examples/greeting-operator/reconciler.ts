// Reconciles one Greeting: its ConfigMap, its line in the directory, its status. It reads from stores and writes only differences, so that a
// second run on the same state writes nothing.
import type { Clock } from "../../src/base/clock.ts";
import { CONFIG_MAPS, type ConfigMap } from "../../src/kube/client/resources.ts";
import type { KubeClient } from "../../src/kube/client/types.ts";
import type { EventRecorder } from "../../src/runtime/events.ts";
import { reconcileFinalized } from "../../src/runtime/finalizer.ts";
import { type Reconciler, type Result, TerminalError } from "../../src/runtime/reconciler.ts";
import { applyStatus } from "../../src/runtime/status-writer.ts";
import type { Store } from "../../src/runtime/store.ts";
import type { Directory } from "./directory.ts";
import { childName, childOf, GREETINGS, type Greeting, isInLine, statusOf, textOf } from "./greeting.ts";

export const FIELD_MANAGER = "greeting-operator";
const FINALIZER = "examples.ctrlmesh.io/directory";

export interface GreetingReconcilerOptions {
  readonly client: Pick<KubeClient, "get" | "patch">;
  readonly greetings: Store<Greeting>;
  readonly children: Store<ConfigMap>;
  /** Further words by language. */
  readonly words: () => Readonly<Record<string, string>>;
  readonly directory: Directory;
  readonly events: Pick<EventRecorder, "event">;
  readonly podName: string;
  readonly clock: Clock;
}

export function createGreetingReconciler(options: GreetingReconcilerOptions): Reconciler {
  const { client, greetings, children, words, directory, events, podName, clock } = options;

  async function apply(greeting: Greeting, signal: AbortSignal): Promise<Result> {
    const text = textOf(greeting, words());
    if (text !== undefined) {
      await applyChild(greeting, text, signal);
      await directory.enter(greeting, text, signal);
    }
    await tell(greeting, text, signal);
    // Only a change of the Greeting or of the words helps; the controller watches both.
    if (text === undefined) throw new TerminalError(`greeting: no word for the language "${greeting.spec.language}"`);
    return {};
  }

  async function applyChild(greeting: Greeting, text: string, signal: AbortSignal): Promise<void> {
    const { namespace } = greeting.metadata;
    const name = childName(greeting);
    if (isInLine(children.get(name, namespace), greeting, text)) return;
    const patch = { type: "apply", body: childOf(greeting, text), fieldManager: FIELD_MANAGER } as const;
    await client.patch(CONFIG_MAPS, { namespace, name }, patch, { signal });
  }

  async function tell(greeting: Greeting, text: string | undefined, signal: AbortSignal): Promise<void> {
    const now = `${new Date(clock.now()).toISOString().slice(0, 19)}Z`;
    let before: string | undefined; // from the API server, since the store may be behind
    const next = (current: Greeting) => {
      before = current.status?.text;
      return statusOf(current, text, podName, now);
    };
    const written = await applyStatus(client, GREETINGS, greeting, next, { fieldManager: FIELD_MANAGER, signal });
    if (written === undefined || before === text) return;
    if (text === undefined) events.event(greeting, "Warning", "UnknownLanguage", `no word for "${greeting.spec.language}"`);
    else events.event(greeting, "Normal", "Greeted", text);
  }

  async function cleanup(greeting: Greeting, signal: AbortSignal): Promise<Result> {
    await directory.remove(greeting, signal); // the garbage collector deletes the ConfigMap
    return {};
  }

  return {
    async reconcile({ namespace, name }, signal) {
      const greeting = greetings.get(name, namespace);
      if (greeting === undefined) return {};
      const finalized = { client, resource: GREETINGS, finalizer: FINALIZER, fieldManager: FIELD_MANAGER, signal };
      return reconcileFinalized(finalized, greeting, {
        apply: (current) => apply(current, signal),
        cleanup: (current) => cleanup(current, signal),
      });
    },
  };
}
