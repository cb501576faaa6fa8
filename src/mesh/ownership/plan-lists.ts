// Chooses between one list over all namespaces and a list for each own namespace, by the CPU time that they
// cost the API server and the proxy (measured in docs/decisions/0021). Pure. Invariant: both show the same
// objects, so a wrong choice costs only time.

/** What is known of a collection over all namespaces. */
export interface ListSize {
  readonly items: number;
  readonly bytes: number;
  /** How many of the items the subset owned; undefined if they were only counted. */
  readonly kept?: number;
}

export interface ListFacts {
  /** Known namespaces. */
  readonly namespaces: { readonly own: number; readonly foreign: number };
  readonly size: ListSize;
  /** The limit of a list by namespace, which is merged in memory; undefined if it is streamed. */
  readonly maxAnswerBytes?: number | undefined;
}

export interface ListChoice {
  readonly way: "one-list" | "by-namespace";
  readonly why: "cheaper" | "too-large";
  /** Estimated CPU time. */
  readonly oneListMs: number;
  readonly byNamespaceMs: number;
}

/** The cost of a request without its objects. */
const REQUEST_US = 1_000;
/** The cost of an object that the API server considers. */
const ITEM_US = 0.5;
/** The cost of a byte that the API server encodes and sends and the proxy reads. */
const BYTE_US = 0.014;
/** Lists by namespace have to save more than this, since their watches are renewed for each new namespace. */
const MIN_SAVED_US = 5_000;

/** Assumes that all namespaces have equally many objects, if it is not known how many the subset owns. */
export function planLists({ namespaces, size, maxAnswerBytes }: ListFacts): ListChoice {
  const shareOfNamespaces = namespaces.own / Math.max(1, namespaces.own + namespaces.foreign);
  const share = size.kept === undefined ? shareOfNamespaces : size.kept / Math.max(1, size.items);
  const wholeUs = size.items * ITEM_US + size.bytes * BYTE_US;
  const oneListUs = REQUEST_US + wholeUs;
  // One more request gets the resourceVersion.
  const byNamespaceUs = REQUEST_US * (namespaces.own + 1) + wholeUs * share;
  const estimates = { oneListMs: oneListUs / 1_000, byNamespaceMs: byNamespaceUs / 1_000 };
  if (byNamespaceUs + MIN_SAVED_US > oneListUs) return { way: "one-list", why: "cheaper", ...estimates };
  if (maxAnswerBytes !== undefined && size.bytes * share > maxAnswerBytes)
    return { way: "one-list", why: "too-large", ...estimates };
  return { way: "by-namespace", why: "cheaper", ...estimates };
}
