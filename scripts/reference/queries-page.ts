// The page of useful PromQL, from the chart's dashboard and alerts. Pure.
import { code, page, table } from "./markdown.ts";

export interface Dashboard {
  readonly panels: readonly {
    readonly title: string;
    readonly type: string;
    readonly description?: string;
    readonly targets?: readonly { readonly expr?: string }[];
  }[];
}

export interface AlertRules {
  readonly groups: readonly {
    readonly rules: readonly {
      readonly alert: string;
      readonly expr: string;
      readonly for: string;
      readonly labels: { readonly severity: string };
      readonly annotations: { readonly summary: string };
    }[];
  }[];
}

const INTRO =
  "The chart installs the dashboard and the alerts (`monitoring` in its values). The metrics are in [observability.md](observability.md).";

export function queriesPage({ panels }: Dashboard, { groups }: AlertRules): string {
  const blocks: string[] = [INTRO, "## Dashboard"];
  let rows: string[][] = [];
  const flush = () => {
    if (rows.length > 0) blocks.push(table(["panel", "PromQL"], rows));
    rows = [];
  };
  for (const { type, title, targets = [] } of panels) {
    if (type === "row") {
      flush();
      blocks.push(`### ${title}`);
    } else for (const { expr = "" } of targets) rows.push([title, code(expr)]);
  }
  flush();
  const alerts = groups
    .flatMap((group) => group.rules)
    .map(({ alert, labels, expr, annotations, ...rule }) => [
      `[${alert}](../troubleshooting.md#${alert.toLowerCase()})`,
      labels.severity,
      rule.for,
      annotations.summary,
      code(expr),
    ]);
  return page("Queries and alerts", [...blocks, "## Alerts", table(["alert", "severity", "for", "summary", "PromQL"], alerts)]);
}
