// The requests that kube-apiserver answered, by its own count, by verb and resource.

export type RequestCounts = ReadonlyMap<string, number>;

const LINE = /^apiserver_request_total\{(.*)\} (.*)$/;

/** Reads them from kube-apiserver's /metrics: "LIST foos" -> how many, over all codes and versions. */
export function parseRequestCounts(metrics: string): RequestCounts {
  const counts = new Map<string, number>();
  for (const line of metrics.split("\n")) {
    const [, labels = "", value] = LINE.exec(line) ?? [];
    if (value === undefined) continue;
    const label = (name: string) => new RegExp(`(?:^|,)${name}="([^"]*)"`).exec(labels)?.[1] ?? "";
    const subresource = label("subresource");
    const key = `${label("verb")} ${label("resource")}${subresource === "" ? "" : `/${subresource}`}`;
    counts.set(key, (counts.get(key) ?? 0) + Number(value));
  }
  return counts;
}

/** The increase of the counts that `isCounted` selects. */
export function requestsBetween(before: RequestCounts, after: RequestCounts, isCounted: (key: string) => boolean) {
  const more: Record<string, number> = {};
  for (const [key, count] of [...after].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const difference = count - (before.get(key) ?? 0);
    if (difference > 0 && isCounted(key)) more[key] = difference;
  }
  return more;
}
