// Records the edits of the chaos in order: the labels of each namespace and the rules of the VirtualApp. From
// these it computes each namespace's desired owners over time. Pure.
//
// It evaluates the few rules of the chaos with its own code, so that the check does not depend on the code
// under test.
import type { OwnerChange } from "./ownership-check.ts";

/** The VirtualApp, and the name of its lock. */
export const APP = { namespace: "foo-system", name: "foo-operator" } as const;
export const CANARY = "v2";
export const LANE_LABEL = "lane";

/**
 * The possible expressions of the rule for namespaces without the label, by the last digit of the name; ""
 * for none.
 */
export const ENDINGS = ["", "[02468]$", "[0-3]$", "[5-9]$"] as const;
export type Ending = (typeof ENDINGS)[number];

export interface DesiredOwners {
  /** Without those that are deleted. */
  readonly namespaces: readonly string[];
  readonly ending: Ending;
  isLabelled(namespace: string): boolean;
  ownerOf(namespace: string): string;
  ownersOf(namespace: string): readonly OwnerChange[];
  /** Call before the edit is sent, since the edit may take effect at once. */
  noteNamespace(name: string, labelled: boolean, atMs: number): void;
  noteDeath(namespace: string): void;
  noteEnding(ending: Ending, atMs: number): void;
}

export function createDesiredOwners(): DesiredOwners {
  const labels = new Map<string, boolean>();
  const dead = new Set<string>(); // their owners may change until they are gone
  const changes = new Map<string, OwnerChange[]>();
  let ending: Ending = "";
  const ownerOf = (name: string) => {
    const named = ending !== "" && new RegExp(ending).test(name);
    return named || labels.get(name) === true ? CANARY : "";
  };
  const note = (name: string, atMs: number) => {
    const own = changes.get(name) ?? [];
    changes.set(name, own);
    const subset = ownerOf(name);
    if (own.at(-1)?.subset !== subset) own.push({ sinceMs: atMs, subset });
  };
  return {
    get namespaces() {
      return [...labels.keys()].filter((name) => !dead.has(name));
    },
    get ending() {
      return ending;
    },
    isLabelled: (namespace) => labels.get(namespace) === true,
    ownerOf,
    ownersOf: (namespace) => changes.get(namespace) ?? [],
    noteNamespace(name, labelled, atMs) {
      labels.set(name, labelled);
      note(name, atMs);
    },
    noteDeath(name) {
      dead.add(name);
    },
    noteEnding(next, atMs) {
      ending = next;
      for (const name of labels.keys()) note(name, atMs);
    },
  };
}
