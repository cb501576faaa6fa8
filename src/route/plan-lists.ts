// Chooses between one list over all namespaces and a list for each own namespace, by the CPU time that they
// cost the API server and the proxy. Pure. Invariant: both show the same objects, so a wrong guess costs time
// and nothing else. docs/decisions/0021 has the measurements.

/** What is known of a collection over all namespaces. */
export interface ListSize {
  readonly items: number;
  readonly bytes: number;
}

export interface ListFacts {
  /** Known namespaces. */
  readonly namespaces: { readonly own: number; readonly foreign: number };
  readonly size: ListSize;
  /** Bound of the answer; undefined if it is streamed. */
  readonly maxAnswerBytes?: number | undefined;
}

export interface ListChoice {
  readonly way: "one-list" | "by-namespace";
  readonly why: "cheaper" | "too-large";
  /** Estimated CPU time. */
  readonly oneListMs: number;
  readonly byNamespaceMs: number;
}

/** A request without its objects. */
const REQUEST_US = 1_000;
/** The API server looks at an object. */
const ITEM_US = 0.5;
/** The API server encodes and sends a byte, and the proxy reads it. */
const BYTE_US = 0.014;
/**
 * Less is not worth it: lists by namespace leave out namespaces that are not known yet, so watches are
 * renewed for each later one.
 */
const MIN_SAVED_US = 5_000;

/** Takes each namespace to have the same share of the objects. */
export function planLists({ namespaces, size, maxAnswerBytes }: ListFacts): ListChoice {
  const share = namespaces.own / Math.max(1, namespaces.own + namespaces.foreign);
  const wholeUs = size.items * ITEM_US + size.bytes * BYTE_US;
  const oneListUs = REQUEST_US + wholeUs;
  // One more request learns the version.
  const byNamespaceUs = REQUEST_US * (namespaces.own + 1) + wholeUs * share;
  const estimates = { oneListMs: oneListUs / 1_000, byNamespaceMs: byNamespaceUs / 1_000 };
  if (byNamespaceUs + MIN_SAVED_US > oneListUs) return { way: "one-list", why: "cheaper", ...estimates };
  if (maxAnswerBytes !== undefined && size.bytes * share > maxAnswerBytes)
    return { way: "one-list", why: "too-large", ...estimates };
  return { way: "by-namespace", why: "cheaper", ...estimates };
}
