// /etc/hosts of one pod. Containers mount it as a file, so it is changed in place: it is overwritten and never truncated, as a
// reader must never see a part of it.
import { closeSync, constants, openSync, writeSync } from "node:fs";
import type { NodePod } from "./pod-types.ts";

export interface HostsFile {
  /** @param services lines for the Services */
  write(services: readonly string[]): void;
}

export function createHostsFile(path: string, { metadata, spec }: NodePod, podIP: string): HostsFile {
  let last = "";
  let length = 0;
  const hostname = spec.hostname ?? metadata.name ?? "";
  const full = spec.subdomain === undefined ? "" : ` ${hostname}.${spec.subdomain}.${metadata.namespace}.svc.cluster.local`;
  const aliases = (spec.hostAliases ?? []).map(({ ip, hostnames = [] }) => `${ip} ${hostnames.join(" ")}`);
  const own = ["127.0.0.1 localhost", "::1 localhost ip6-localhost ip6-loopback", `${podIP}${full} ${hostname}`, ...aliases];
  const aliased = new Set((spec.hostAliases ?? []).flatMap(({ hostnames = [] }) => hostnames));
  return {
    write(services) {
      const others = services.map((line) => withoutNames(line, aliased)).filter((line) => line !== "");
      const text = `${[...own, ...others].join("\n")}\n`;
      if (text === last) return;
      last = text;
      length = Math.max(length, Buffer.byteLength(text));
      const file = openSync(path, constants.O_RDWR | constants.O_CREAT, 0o644);
      writeSync(file, text.padEnd(length, "\n"), 0);
      closeSync(file);
    },
  };
}

// As in a cluster, the pod's own aliases win: the file comes before DNS.
function withoutNames(line: string, names: ReadonlySet<string>): string {
  if (names.size === 0) return line;
  const [address, ...rest] = line.split(" ");
  const left = rest.filter((name) => !names.has(name));
  return left.length === 0 ? "" : [address, ...left].join(" ");
}
