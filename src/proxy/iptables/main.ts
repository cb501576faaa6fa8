// The program of the init container ctrlmesh-iptables, the only one with NET_ADMIN:
//   node dist/proxy/iptables/main.js --redirect=10.96.0.1:443 --redirect=[fd00::1]:443 --to=5443 --except-uid=1359 --inbound=9443:5445
import { spawnSync } from "node:child_process";
import { parseArgs } from "node:util";
import { processEnv } from "../../base/env.ts";
import { errorMessage } from "../../base/errors.ts";
import { parseAddress } from "../../base/settings.ts";
import { applyRules, familyRules, type Run } from "./rules.ts";

const USAGE = "ctrlmesh-iptables: --redirect=IP:PORT [--redirect=...] --to=PORT --except-uid=UID [--inbound=PORT:PORT]";
const EXIT_USAGE = 64;
/** The older iptables locks a file, and the root is read-only. No other program writes rules in a pod. */
const LOCK = { XTABLES_LOCKFILE: "/dev/null" };

const { values } = parseArgs({
  options: {
    redirect: { type: "string", multiple: true, default: [] },
    to: { type: "string", default: "" },
    "except-uid": { type: "string", default: "" },
    inbound: { type: "string" },
  },
});
const from = values.redirect.map(parseAddress).filter((each) => each !== undefined);
const [to, exceptUid] = [Number(values.to), Number(values["except-uid"])];
const [, webhookPort, proxyPort] = /^(\d+):(\d+)$/.exec(values.inbound ?? "") ?? [];
const inbound = webhookPort === undefined ? undefined : { from: Number(webhookPort), to: Number(proxyPort) };
const env = { ...processEnv(), ...LOCK };

if (
  from.length === 0 ||
  from.length < values.redirect.length ||
  !(to > 0) ||
  !(exceptUid > 0) ||
  (values.inbound !== undefined && inbound === undefined)
) {
  process.stderr.write(`${USAGE}\n`);
  process.exitCode = EXIT_USAGE;
} else {
  try {
    const rules = familyRules({ from: from.map(({ host, port }) => ({ ip: host, port })), to, exceptUid, inbound });
    const run: Run = (command, args, input = "") => spawnSync(command, args, { input, env, encoding: "utf8" });
    const used = applyRules(rules, run);
    const webhooks = inbound === undefined ? "" : `, and connections from outside to port ${inbound.from} to port ${inbound.to}`;
    process.stdout.write(`ctrlmesh-iptables: ${used} redirects ${values.redirect.join(", ")} to port ${to}${webhooks}\n`);
  } catch (error) {
    process.stderr.write(`ctrlmesh-iptables: ${errorMessage(error)}\n`);
    process.exitCode = 1;
  }
}
