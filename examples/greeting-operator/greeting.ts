// The kind Greeting (crd.yaml): the desired ConfigMap and status of an object. Pure.
import {
  type Condition,
  type ConfigMap,
  controllerRef,
  type KubeObject,
  type Resource,
  withTransitionTime,
} from "../../src/runtime/index.ts";

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

/** The ConfigMap that a Greeting desires. */
export function childOf(greeting: Greeting, text: string): ConfigMap {
  return {
    metadata: {
      ...(greeting.metadata.namespace === undefined ? {} : { namespace: greeting.metadata.namespace }),
      name: childName(greeting),
      labels: { [CHILD_LABEL.name]: CHILD_LABEL.value },
      ownerReferences: [controllerRef(GREETINGS, greeting)],
    },
    data: { text },
  };
}

/** The status of a Greeting. @param text undefined if the language is unknown */
export function statusOf(greeting: Greeting, text: string | undefined, writtenBy: string, now: string): GreetingStatus {
  const { metadata, spec, status } = greeting;
  const observedGeneration = metadata.generation ?? 0;
  const ready: Condition =
    text === undefined
      ? { type: "Ready", status: "False", reason: "UnknownLanguage", message: `no word for the language "${spec.language}"` }
      : { type: "Ready", status: "True", reason: "Greeted", message: "the ConfigMap says so" };
  const before = status?.conditions?.find(({ type }) => type === "Ready");
  return {
    observedGeneration,
    writtenBy,
    ...(text === undefined ? {} : { text }),
    conditions: [withTransitionTime({ ...ready, observedGeneration }, before, now)],
  };
}
