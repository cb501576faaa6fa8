// A Prometheus that scrapes the given addresses every half second, as the chart's monitors would, and evaluates the chart's alerts.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stringify } from "yaml";
import { chartAlerts, type Labels } from "./alert-rules.ts";
import { startChild } from "./child-process.ts";
import { eventually } from "./eventually.ts";
import { freePort } from "./free-port.ts";
import { prometheusProgram } from "./prometheus.ts";

export interface ScrapeTarget {
  readonly job: "manager" | "sidecars";
  /** http://HOST:PORT */
  readonly url: string;
  readonly namespace: string;
  readonly pod: string;
}

export interface Sample {
  readonly labels: Labels;
  readonly value: number;
}

export interface PrometheusServer {
  /** The samples now, without those that are no number. @throws Error with the reason if the query is wrong */
  query(expr: string): Promise<readonly Sample[]>;
  /** The alerts that fire or will, with the label `alertname`, and why rules cannot be evaluated. */
  rules(): Promise<{ readonly alerts: readonly Labels[]; readonly problems: readonly string[] }>;
  stop(): Promise<void>;
}

const SCRAPE_INTERVAL = "500ms";

export async function startPrometheus(targets: readonly ScrapeTarget[]): Promise<PrometheusServer> {
  const folder = mkdtempSync(join(tmpdir(), "ctrlmesh-prometheus-"));
  const address = `127.0.0.1:${await freePort()}`;
  const config = join(folder, "prometheus.yaml");
  writeFileSync(join(folder, "alerts.yaml"), stringify(chartAlerts()));
  writeFileSync(config, stringify(configOf(targets)));
  const child = await startChild({
    name: "prometheus",
    command: await prometheusProgram("prometheus"),
    args: [`--config.file=${config}`, `--storage.tsdb.path=${join(folder, "data")}`, `--web.listen-address=${address}`],
    readyLine: false,
  });
  const get = async <T>(path: string): Promise<T> => {
    const answer = (await (await fetch(`http://${address}/api/v1/${path}`)).json()) as { data: T; error?: string };
    if (answer.error !== undefined) throw new Error(`${path}: ${answer.error}`);
    return answer.data;
  };
  await eventually(async () => (await fetch(`http://${address}/-/ready`)).ok, { withinMs: 20_000 });
  return {
    async query(expr) {
      const { result } = await get<QueryResult>(`query?query=${encodeURIComponent(expr)}`);
      const samples = result.map(({ metric, value }) => ({ labels: metric, value: Number(value[1]) }));
      return samples.filter(({ value }) => !Number.isNaN(value));
    },
    async rules() {
      const { groups } = await get<RuleGroups>("rules");
      const rules = groups.flatMap((group) => group.rules);
      const alerts = rules.flatMap((rule) => rule.alerts.map(({ labels }) => labels));
      return { alerts, problems: rules.flatMap(({ name, lastError }) => (lastError ? [`${name}: ${lastError}`] : [])) };
    },
    async stop() {
      await child.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

interface QueryResult {
  readonly result: readonly { readonly metric: Labels; readonly value: readonly [number, string] }[];
}

interface RuleGroups {
  readonly groups: readonly {
    readonly rules: readonly {
      readonly name: string;
      readonly lastError?: string;
      readonly alerts: readonly { readonly labels: Labels }[];
    }[];
  }[];
}

function configOf(targets: readonly ScrapeTarget[]): object {
  const jobs = [
    { job_name: "manager", honor_labels: true },
    { job_name: "sidecars", honor_labels: false },
  ];
  const of = (name: string) =>
    targets
      .filter(({ job }) => job === name)
      .map(({ url, namespace, pod }) => ({ targets: [new URL(url).host], labels: { namespace, pod } }));
  return {
    global: { scrape_interval: SCRAPE_INTERVAL, scrape_timeout: SCRAPE_INTERVAL, evaluation_interval: SCRAPE_INTERVAL },
    rule_files: ["alerts.yaml"],
    scrape_configs: jobs.map((job) => ({ ...job, static_configs: of(job.job_name) })),
  };
}
