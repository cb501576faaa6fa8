// What the chaos has asked for, in its order: the labels of each namespace and the rules of the VirtualApp, and thereby whom each
// namespace was to belong to since when. Pure. It has an evaluation of its own of the few rules that the chaos uses, so that the
// judge does not go by the code that it judges.
import type { Wish } from "./judge.ts";

export const CANARY = "v2";
export const LANE_LABEL = "lane";

/** Which namespaces the rule names beside those with the label, by the last digit of their name; "" for none. */
export const ENDINGS = ["", "[02468]$", "[0-3]$", "[5-9]$"] as const;
export type Ending = (typeof ENDINGS)[number];

export interface Ledger {
  readonly namespaces: readonly string[];
  readonly ending: Ending;
  isLabelled(namespace: string): boolean;
  ownerOf(namespace: string): string;
  wishesOf(namespace: string): readonly Wish[];
  /** Each is to be noted before it is asked for: from then on it may come true. */
  noteNamespace(name: string, labelled: boolean, atMs: number): void;
  noteEnding(ending: Ending, atMs: number): void;
}

export function createLedger(): Ledger {
  const labels = new Map<string, boolean>();
  const wishes = new Map<string, Wish[]>();
  let ending: Ending = "";
  const ownerOf = (name: string) => {
    const named = ending !== "" && new RegExp(ending).test(name);
    return named || labels.get(name) === true ? CANARY : "";
  };
  const note = (name: string, atMs: number) => {
    const own = wishes.get(name) ?? [];
    wishes.set(name, own);
    const subset = ownerOf(name);
    if (own.at(-1)?.subset !== subset) own.push({ sinceMs: atMs, subset });
  };
  return {
    get namespaces() {
      return [...labels.keys()];
    },
    get ending() {
      return ending;
    },
    isLabelled: (namespace) => labels.get(namespace) === true,
    ownerOf,
    wishesOf: (namespace) => wishes.get(namespace) ?? [],
    noteNamespace(name, labelled, atMs) {
      labels.set(name, labelled);
      note(name, atMs);
    },
    noteEnding(next, atMs) {
      ending = next;
      for (const name of labels.keys()) note(name, atMs);
    },
  };
}
