// The kind Greeting (crd.yaml): the desired ConfigMap and status of an object. Pure.
import type { Resource } from "../../src/kube/client/resource.ts";
import type { Condition, ConfigMap } from "../../src/kube/client/resources.ts";
import type { KubeObject } from "../../src/kube/types.ts";
import { controlledBy, controllerOfKind } from "../../src/runtime/controller.ts";

export interface GreetingStatus {
  readonly observedGeneration?: number;
  readonly text?: string;
  /** The pod that wrote the text. */
  readonly writtenBy?: string;
  readonly conditions?: readonly Condition[];
}

export interface Greeting extends KubeObject {
  readonly spec: { readonly to: string; readonly language?: string };
  readonly status?: GreetingStatus;
}

export const GREETINGS: Resource<Greeting> = {
  group: "examples.ctrlmesh.io",
  version: "v1",
  resource: "greetings",
  kind: "Greeting",
  namespaced: true,
};

/** The label of all ConfigMaps of Greetings, so that the operator watches only those. */
export const CHILD_LABEL = { name: "app.kubernetes.io/managed-by", value: "greeting-operator" };

const WORDS: Readonly<Record<string, string>> = { en: "Hello", de: "Hallo" };

/** The text of a greeting; undefined if the language is unknown. @param more further words by language */
export function textOf({ spec }: Greeting, more: Readonly<Record<string, string>>): string | undefined {
  const language = spec.language ?? "en";
  const word = Object.hasOwn(more, language) ? more[language] : Object.hasOwn(WORDS, language) ? WORDS[language] : undefined;
  return word === undefined ? undefined : `${word}, ${spec.to}!`;
}

export function childName({ metadata }: Greeting): string {
  return `${metadata.name}-greeting`;
}

/** The fields of the ConfigMap that the operator applies. */
export function childOf(greeting: Greeting, text: string): ConfigMap {
  return {
    metadata: {
      ...(greeting.metadata.namespace === undefined ? {} : { namespace: greeting.metadata.namespace }),
      name: childName(greeting),
      labels: { [CHILD_LABEL.name]: CHILD_LABEL.value },
      ownerReferences: [controlledBy(GREETINGS, greeting)],
    },
    data: { text },
  };
}

/** True if the ConfigMap belongs to the Greeting and has the desired text. */
export function isInLine(child: ConfigMap | undefined, greeting: Greeting, text: string): boolean {
  if (child === undefined || child.data?.text !== text) return false;
  return controllerOfKind(child, GREETINGS)?.uid === greeting.metadata.uid;
}

/** The fields of the status that the operator applies. @param text undefined if the language is unknown */
export function statusOf(greeting: Greeting, text: string | undefined, writtenBy: string, now: string): GreetingStatus {
  const { metadata, spec, status } = greeting;
  const observedGeneration = metadata.generation ?? 0;
  const ready: Condition =
    text === undefined
      ? { type: "Ready", status: "False", reason: "UnknownLanguage", message: `no word for the language "${spec.language}"` }
      : { type: "Ready", status: "True", reason: "Greeted", message: "the ConfigMap says so" };
  const before = status?.conditions?.find(({ type }) => type === "Ready");
  const lastTransitionTime = before?.status === ready.status ? (before.lastTransitionTime ?? now) : now;
  return {
    observedGeneration,
    writtenBy,
    ...(text === undefined ? {} : { text }),
    conditions: [{ ...ready, lastTransitionTime, observedGeneration }],
  };
}
