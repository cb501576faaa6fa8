// The program of the lifecycle hooks of a proxy that is a plain container (clusters below Kubernetes 1.29):
//   node dist/proxy/hooks/main.js wait-ready --port=5441
//   node dist/proxy/hooks/main.js wait-idle --ports=5443 --at-most=20
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { systemClock } from "../../base/clock.ts";
import { waitIdle, waitReady } from "./wait.ts";

/** sysexits.h; settings.ts would cost a hook more than all of its work. */
const EXIT_USAGE = 64;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    port: { type: "string", default: "5441" },
    ports: { type: "string", default: "5443" },
    "at-most": { type: "string", default: "20" },
  },
});
const say = (text: string) => process.stderr.write(`ctrlmesh-proxy: ${text}\n`);
const keepAlive = new MessageChannel(); // the timers of a Clock keep no process alive
keepAlive.port1.on("message", () => undefined);

switch (positionals[0]) {
  case "wait-ready":
    await waitReady({ port: Number(values.port), clock: systemClock, say });
    break;
  case "wait-idle": {
    const ports = values.ports.split(",").map(Number);
    const atMostMs = Number(values["at-most"]) * 1_000;
    const idle = await waitIdle({ ports, atMostMs, clock: systemClock, readTables });
    if (!idle) say("the operator is still connected; stopping all the same");
    break;
  }
  default:
    say("wait-ready or wait-idle?");
    process.exitCode = EXIT_USAGE;
}
keepAlive.port1.close();

function readTables(): string {
  return ["/proc/net/tcp", "/proc/net/tcp6"].map(readIfAny).join("\n");
}

function readIfAny(file: string): string {
  try {
    return readFileSync(file, "latin1");
  } catch {
    return ""; // no IPv6
  }
}
