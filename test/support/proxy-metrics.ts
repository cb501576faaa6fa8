// The metrics of a proxy, read from its /metrics.

export interface Metrics {
  /** The sum of all samples of the metric with these labels; 0 without samples. */
  sum(name: string, labels?: Readonly<Record<string, string>>): number;
}

export async function readMetrics(healthUrl: string): Promise<Metrics> {
  return parseMetrics(await (await fetch(`${healthUrl}/metrics`)).text());
}

/** Reads Prometheus' text format, as far as the proxy and kube-apiserver write it. */
export function parseMetrics(text: string): Metrics {
  const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return {
    sum(name, labels = {}) {
      const wanted = Object.entries(labels).map(([key, value]) => `${key}="${value}"`);
      const isWanted = (line: string) =>
        (line.startsWith(`${name}{`) || line.startsWith(`${name} `)) && wanted.every((label) => line.includes(label));
      return lines.filter(isWanted).reduce((total, line) => total + Number(line.slice(line.lastIndexOf(" ") + 1)), 0);
    },
  };
}
