// A host for each node, with its own mounts, network, host name and IPC. The first host is the namespaces that enter.ts makes; the tests and the
// control plane run there. The second host has its own namespaces, but shares the one for processes. A link connects it to the bridge of the first.
import { execFile, spawn } from "node:child_process";
import { closeSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { eventually } from "../support/eventually.ts";

export const HOST_SCRIPT = fileURLToPath(new URL("host.sh", import.meta.url));
export const FIRST_NAME = "node-1";
/** The device of a host by which it reaches the others. On the first host it is a bridge. */
const DEVICE = "node0";
const READY_MS = 20_000;
const STAY = "echo ready && exec sleep infinity";

export interface Host {
  /** Also the name of its device on the first host. */
  readonly name: string;
  readonly address: string;
  /** The addresses of its pods. */
  readonly podRange: string;
  /** All of its files are here. */
  readonly folder: string;
  /** A process in its namespaces. */
  readonly pid: number;
  /** The command line that runs a program on this host. */
  commandLine(program: string, args: readonly string[]): readonly [string, ...string[]];
  /** Runs a program on this host. Returns its output. @throws Error with its output if it fails */
  run(program: string, ...args: readonly string[]): Promise<string>;
}

export function hostFolder(folder: string, name: string): string {
  return join(folder, name);
}

/** The host of this process. */
export async function firstHost(folder: string): Promise<Host> {
  const host = hostOf(folder, 1, process.pid, []);
  await host.run("ip", "link", "add", DEVICE, "type", "bridge");
  await connect(host);
  await host.run("ip", "route", "add", "default", "dev", DEVICE);
  return host;
}

/** @param index from 2 */
export async function addHost(folder: string, first: Host, index: number): Promise<Host> {
  const name = `node-${index}`;
  const namespaces = ["--mount", "--net", "--uts", "--ipc"];
  const script = [HOST_SCRIPT, name, hostFolder(folder, name), "sh", "-c", STAY];
  // A file, since whoever reads this process's stderr would wait for the host's end.
  const logFile = join(folder, `${name}.log`);
  const log = openSync(logFile, "a");
  const child = spawn("unshare", [...namespaces, ...script], { stdio: ["ignore", log, log] });
  closeSync(log);
  await eventually(() => readFileSync(logFile, "utf8").endsWith("ready\n"), READY_MS).catch((cause) => {
    throw new Error(`starting ${name}: ${readFileSync(logFile, "utf8")}`, { cause });
  });
  const host = hostOf(folder, index, child.pid ?? 0, ["nsenter", `--target=${child.pid}`, ...namespaces, "--"]);
  await first.run("ip", "link", "add", host.name, "type", "veth", "peer", "name", DEVICE, "netns", String(host.pid));
  await first.run("ip", "link", "set", host.name, "master", DEVICE, "up");
  await connect(host);
  await host.run("ip", "route", "add", "default", "via", first.address);
  await first.run("ip", "route", "add", host.podRange, "via", host.address);
  return host;
}

/** Cuts the host off from all others, or connects it again. */
export async function setLink(first: Host, host: Host, state: "up" | "down"): Promise<void> {
  await first.run("ip", "link", "set", host.name, state);
}

function hostOf(folder: string, index: number, pid: number, enter: readonly string[]): Host {
  const name = `node-${index}`;
  const commandLine = (program: string, args: readonly string[]) => {
    const [first = program, ...rest] = [...enter, program, ...args];
    return [first, ...rest] as const;
  };
  return {
    name,
    address: `10.200.0.${index}`,
    podRange: `10.244.${index - 1}.0/24`,
    folder: hostFolder(folder, name),
    pid,
    commandLine,
    async run(program, ...args) {
      const [first, ...rest] = commandLine(program, args);
      return (await promisify(execFile)(first, rest, { maxBuffer: 64 * 1024 * 1024, timeout: 120_000 })).stdout;
    },
  };
}

async function connect(host: Host): Promise<void> {
  await host.run("ip", "address", "add", `${host.address}/24`, "dev", DEVICE);
  await host.run("ip", "link", "set", DEVICE, "up");
}
