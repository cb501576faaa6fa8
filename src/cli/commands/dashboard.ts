// `ctrlmesh dashboard`: a page on this machine that shows what waits, who owns what, and what moves.
import { untilAborted } from "../../base/abort.ts";
import { type Call, type Command, usageError } from "../frame/command.ts";
import { EXIT } from "../frame/exit.ts";
import { ALL_NAMESPACES, accessFlags, clusterOptions, namespaceOf } from "../frame/flags.ts";

const MAX_PORT = 65_535;

export const DASHBOARD: Command = {
  name: "dashboard",
  args: "",
  maxArgs: 0,
  summary: "a page on this machine: what waits, who owns what, what moves",
  flags: {
    ...ALL_NAMESPACES,
    port: { type: "string", value: "PORT", help: "the port on 127.0.0.1; default: a free one" },
  },
  async run({ flags, output, clock, cluster, interrupted }: Call) {
    const port = portOf(flags.text("port"));
    const connected = await cluster();
    const namespace = flags.isSet("all-namespaces") ? undefined : namespaceOf(flags, connected.namespace);
    // Loaded only here: watching takes a moment to load, which other commands should not need.
    const { openDashboard } = await import("../dashboard/open-dashboard.ts");
    const access = accessFlags(clusterOptions(flags));
    const { url, close } = await openDashboard({ cluster: connected, namespace, access, port, clock });
    const stopped = untilAborted(interrupted()); // before this, Ctrl-C ends the process as everywhere
    output.data("Dashboard", { url }, [url]);
    const where = namespace === undefined ? "all namespaces" : `namespace ${namespace}; -A shows all namespaces`;
    output.hint(`shows ${where}. Only who has this address can open it, on this machine, until Ctrl-C.`);
    await stopped;
    await close();
    return EXIT.ok;
  },
};

function portOf(text = "0"): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN;
  if (port <= MAX_PORT) return port;
  throw usageError(`--port: "${text}" is no port, which is a number from 0 to ${MAX_PORT}`);
}
