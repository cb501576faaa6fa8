// Reconciles one Greeting: its ConfigMap, its line in the directory, its status. It reads from stores and writes only differences, so that a
// second run on the same state writes nothing.
import {
  type Clock,
  CONFIG_MAPS,
  type ConfigMap,
  type EventRecorder,
  ensure,
  hasFinalizer,
  type KubeClient,
  type Reconciler,
  type Result,
  type Store,
  setFinalizer,
  TerminalError,
  writeStatus,
} from "../../src/runtime/index.ts";
import type { Directory } from "./directory.ts";
import { childName, childOf, GREETINGS, type Greeting, statusOf, textOf } from "./greeting.ts";

const FINALIZER = "examples.ctrlmesh.io/directory";

export interface GreetingReconcilerOptions {
  readonly client: Pick<KubeClient, "create" | "get" | "patch">;
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
      const child = children.get(childName(greeting), greeting.metadata.namespace);
      await ensure(client, CONFIG_MAPS, child, childOf(greeting, text), { signal, createBy: "apply" });
      await directory.enter(greeting, text, signal);
    }
    await tell(greeting, text, signal);
    // Only a change of the Greeting or of the words helps; the controller watches both.
    if (text === undefined) throw new TerminalError(`greeting: no word for the language "${greeting.spec.language}"`);
    return {};
  }

  async function tell(greeting: Greeting, text: string | undefined, signal: AbortSignal): Promise<void> {
    const now = `${new Date(clock.now()).toISOString().slice(0, 19)}Z`;
    let before: string | undefined; // from the API server, since the store may be behind
    const next = (current: Greeting) => {
      before = current.status?.text;
      return statusOf(current, text, podName, now);
    };
    const written = await writeStatus(client, GREETINGS, greeting, next, { signal });
    if (written === undefined || before === text) return;
    if (text === undefined) events.event(greeting, "Warning", "UnknownLanguage", `no word for "${greeting.spec.language}"`);
    else events.event(greeting, "Normal", "Greeted", text);
  }

  return {
    async reconcile({ namespace, name }, signal) {
      const greeting = greetings.get(name, namespace);
      if (greeting === undefined) return {};
      const options = { client, resource: GREETINGS, finalizer: FINALIZER, signal };
      if (greeting.metadata.deletionTimestamp !== undefined) {
        if (!hasFinalizer(greeting, FINALIZER)) return {};
        await directory.remove(greeting, signal); // the garbage collector deletes the ConfigMap
        await setFinalizer(options, greeting, false);
        return {};
      }
      // Nothing is created before the object has the finalizer.
      const current = await setFinalizer(options, greeting, true);
      return current !== undefined && hasFinalizer(current, FINALIZER) ? apply(current, signal) : {};
    },
  };
}
