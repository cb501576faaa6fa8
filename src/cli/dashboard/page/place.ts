// Where a reader is: in the hash of the address, so that it can be bookmarked, and the browser's back goes back.

export const VIEWS = ["waiting", "map", "handovers", "balance", "policies", "traffic"] as const;
export type View = (typeof VIEWS)[number];

export interface Place {
  readonly view: View;
  /** NAMESPACE/NAME of the chosen app; "" for none. */
  readonly app: string;
  /** The filter. */
  readonly find: string;
}

export function readPlace(hash: string): Place {
  const [, path = "", query = ""] = /^#\/?([^?]*)\??(.*)$/.exec(hash) ?? [];
  const params = new URLSearchParams(query);
  const view = VIEWS.find((name) => name === path) ?? "waiting";
  return { view, app: params.get("app") ?? "", find: params.get("find") ?? "" };
}

export function hashOf({ view, app, find }: Place): string {
  const params = new URLSearchParams({ ...(app !== "" && { app }), ...(find !== "" && { find }) });
  const query = params.toString().replaceAll("%2F", "/");
  return `#/${view}${query === "" ? "" : `?${query}`}`;
}
