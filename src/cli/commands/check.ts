// `ctrlmesh check`: is the mesh installed right, and is anything wrong or left on?
import { type Clock, parseDuration, sleep } from "../../base/clock.ts";
import { once } from "../../base/remember.ts";
import { findApp, listApps } from "../apps/apps.ts";
import { APPS, LEFT_ON, SIDECARS } from "../checks/app-checks.ts";
import { CERTIFICATES } from "../checks/certificate-checks.ts";
import { type Check, type Checked, type Finding, type Look, runChecks, SEVERITIES, type Severity } from "../checks/check.ts";
import { CLUSTERS } from "../checks/cluster-checks.ts";
import { CLUSTER_RULES } from "../checks/cluster-rule-checks.ts";
import { KINDS_SERVED, LEADER, REPLICAS } from "../checks/manager-checks.ts";
import { BREAKERS, FAULTS, POLICIES } from "../checks/policy-checks.ts";
import { OTHER_MESH, RIGHTS, SERVER_VERSION } from "../checks/pre-checks.ts";
import { SLICES } from "../checks/slice-checks.ts";
import { WEBHOOK_CA, WEBHOOK_CONFIGURATIONS } from "../checks/webhook-checks.ts";
import { type Call, type Command, type FlagValues, usageError } from "../frame/command.ts";
import { EXIT } from "../frame/exit.ts";
import { namespaceOf } from "../frame/flags.ts";
import { counted } from "../frame/output.ts";

/** Without these, the others find nothing but that. */
const INSTALLED: readonly Check[] = [KINDS_SERVED];
const RUNNING: readonly Check[] = [
  LEADER,
  REPLICAS,
  WEBHOOK_CONFIGURATIONS,
  WEBHOOK_CA,
  SIDECARS,
  APPS,
  SLICES,
  CLUSTERS,
  CLUSTER_RULES,
  LEFT_ON,
  POLICIES,
  BREAKERS,
  FAULTS,
];
const BEFORE: readonly Check[] = [SERVER_VERSION, RIGHTS, OTHER_MESH];
/** It takes a process for each sidecar, and kubectl. */
const ASKED: readonly Check[] = [CERTIFICATES];
export const CHECKS: readonly Check[] = [...INSTALLED, ...RUNNING, ...ASKED, ...BEFORE];

const POLL_MS = 2_000;

export const CHECK: Command = {
  name: "check",
  args: "",
  maxArgs: 0,
  summary: "is the mesh installed right, and is anything wrong or left on",
  flags: {
    pre: { type: "boolean", help: "before the installation: can this cluster get the mesh" },
    app: { type: "string", value: "APP", help: "of the apps only this one, in the namespace of -n; default: all" },
    sidecars: { type: "boolean", help: "also ask up to 20 sidecars when their certificates end" },
    wait: { type: "string", value: "DURATION", help: "check again until nothing is found, for this long" },
    "fail-on": { type: "string", value: "error|warning", help: "from which severity on the exit code is 2; default error" },
  },
  async run({ flags, output, clock, cluster }: Call) {
    const least = leastSeverity(flags);
    const endMs = clock.monotonicMs() + waitMs(flags);
    const connected = await cluster();
    const home = namespaceOf(flags, connected.namespace);
    const look = () => lookAt(connected, flags.text("app"), home, clock);
    // A wrong name must not look like success.
    if (flags.text("app") !== undefined && !flags.isSet("pre")) await look().apps();
    const chosen = flags.isSet("pre") ? BEFORE : [...RUNNING, ...(flags.isSet("sidecars") ? ASKED : [])];
    let checked = await checkAll(look(), chosen);
    while (isFound(checked, least) && clock.monotonicMs() < endMs) {
      await sleep(clock, Math.min(POLL_MS, endMs - clock.monotonicMs()));
      checked = await checkAll(look(), chosen);
    }
    const findings = checked.flatMap(({ check, findings: of }) => of.map((finding) => ({ check: check.name, ...finding })));
    const names = checked.map(({ check: { name } }) => name);
    output.data("CheckResult", { checks: names, findings }, [...checked.flatMap(linesOf), summaryOf(findings)]);
    return isFound(checked, least) ? EXIT.findings : EXIT.ok;
  },
};

async function checkAll(look: Look, chosen: readonly Check[]): Promise<Checked[]> {
  if (chosen === BEFORE) return runChecks(chosen, look);
  const installed = await runChecks(INSTALLED, look);
  if (isFound(installed, "error")) return installed;
  return [...installed, ...(await runChecks(chosen, look))];
}

function lookAt(cluster: Look["cluster"], app: string | undefined, home: string, clock: Clock): Look {
  const apps = once(async () => (app === undefined ? listApps(cluster, undefined) : [await findApp(cluster, app, home)]));
  return {
    cluster,
    nowMs: clock.now(),
    namespace: app === undefined ? undefined : home,
    apps,
  };
}

function leastSeverity(flags: FlagValues): Severity {
  const text = flags.text("fail-on") ?? "error";
  const severity = SEVERITIES.find((each) => each === text);
  if (severity === undefined) throw usageError(`--fail-on: "${text}" is none of: ${SEVERITIES.join(", ")}`);
  return severity;
}

function waitMs(flags: FlagValues): number {
  const text = flags.text("wait");
  const ms = text === undefined ? 0 : parseDuration(text);
  if (ms === undefined) throw usageError(`--wait: "${text}" is no duration such as "30s" or "5m"`);
  return ms;
}

function isFound(checked: readonly Checked[], least: Severity): boolean {
  return checked.some(({ findings }) =>
    findings.some(({ severity }) => SEVERITIES.indexOf(severity) >= SEVERITIES.indexOf(least)),
  );
}

function linesOf({ check: { name, holds }, findings }: Checked): string[] {
  if (findings.length === 0) return [`ok       ${name}: ${holds}`];
  return findings.flatMap(({ severity, object, message, next, docs }) => [
    `${severity.padEnd(7)}  ${name}: ${object === undefined ? "" : `${object}: `}${message}`,
    ...(next === undefined ? [] : [`         next: ${next}`]),
    `         docs/${docs}`,
  ]);
}

function summaryOf(findings: readonly Finding[]): string {
  const count = (severity: Severity) => findings.filter((finding) => finding.severity === severity).length;
  return `${counted(count("error"), "error")}, ${counted(count("warning"), "warning")}`;
}
