// The chart's alerts, and promtool's judgement of them over given series.
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { parse, stringify } from "yaml";
import { CHART } from "./helm.ts";
import { prometheusProgram } from "./prometheus.ts";

const run = promisify(execFile);

export type Labels = Readonly<Record<string, string>>;

export interface AlertRule {
  readonly alert: string;
  readonly expr: string;
  readonly labels: Labels;
  readonly annotations: Labels;
}

export interface AlertRules {
  readonly groups: readonly { readonly rules: readonly AlertRule[] }[];
}

/** Series of promtool (`metric{label="x"}: values`, one value a minute), and the labels of the alert at that time. */
export interface AlertCase {
  readonly series: Labels;
  readonly at: string;
  /** The labels besides the severity; undefined: the alert does not fire. */
  readonly fires: Labels | undefined;
}

export function chartAlerts(): AlertRules {
  return parse(readFileSync(join(CHART, "files/alerts.yaml"), "utf8")) as AlertRules;
}

/** @throws Error with promtool's output, which names what fired and what should have */
export async function judgeAlert(rules: AlertRules, name: string, { series, at, fires }: AlertCase): Promise<void> {
  const rule = rules.groups.flatMap((group) => group.rules).find(({ alert }) => alert === name);
  if (rule === undefined) throw new Error(`no alert ${name}`);
  const expected = fires && { exp_labels: { ...fires, ...rule.labels }, exp_annotations: filled(rule.annotations, fires) };
  const test = {
    interval: "1m",
    input_series: Object.entries(series).map(([metric, values]) => ({ series: metric, values })),
    alert_rule_test: [{ eval_time: at, alertname: name, exp_alerts: expected === undefined ? [] : [expected] }],
  };
  const folder = mkdtempSync(join(tmpdir(), "ctrlmesh-alerts-"));
  try {
    writeFileSync(join(folder, "rules.yaml"), stringify({ groups: [{ name: "one", rules: [rule] }] }));
    writeFileSync(join(folder, "test.yaml"), stringify({ rule_files: ["rules.yaml"], evaluation_interval: "1m", tests: [test] }));
    await run(await prometheusProgram("promtool"), ["test", "rules", join(folder, "test.yaml")]);
  } catch (error) {
    const { stdout = "", stderr = "" } = error as { readonly stdout?: string; readonly stderr?: string };
    throw new Error(`${name}: ${stdout}${stderr}`, { cause: error });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The annotations with the labels in their places, so that a label that the expression drops is noticed. */
function filled(annotations: Labels, labels: Labels): Labels {
  const fill = (text: string) => text.replace(/\{\{ \$labels\.(\w+) \}\}/g, (_, label: string) => labels[label] ?? "");
  return Object.fromEntries(Object.entries(annotations).map(([key, text]) => [key, fill(text)]));
}
