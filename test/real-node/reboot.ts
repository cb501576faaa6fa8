// The node loses power: all processes of pods and of the node's services end at once, and with them what was in memory: tmpfs, network devices, rules
// of the packet filter. The disk stays, and so does the control plane, which is on another machine in a usual cluster.
import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { eventually } from "../support/eventually.ts";
import { makeCgroups, processesInCgroups, removeCgroups } from "./cgroups.ts";
import type { RealNode } from "./node.ts";

export async function reboot(node: RealNode): Promise<void> {
  const { services, folder } = node;
  await Promise.all((["kubelet", "kube-proxy", "containerd"] as const).map((name) => services.stop(name, 0)));
  await eventually(() => killAll([...shims(), ...processesInCgroups(folder)]) === 0, { withinMs: 20_000, everyMs: 50 });
  for (const path of mountsBelow([join(folder, "kubelet"), "/run"])) execFileSync("umount", ["--lazy", path]);
  execFileSync("mount", ["-t", "tmpfs", "-o", "mode=755", "tmpfs", "/run"]);
  for (const path of ["/run/lock", "/run/netns"]) mkdirSync(path);
  execFileSync("nft", ["flush", "ruleset"]);
  await removeCgroups(folder);
  makeCgroups(folder);
  writeFileSync(join(folder, "sysctls/kernel.random.boot_id"), randomUUID());
  await node.startServices();
}

function shims(): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => commandOf(pid).includes("containerd-shim"))
    .map(Number);
}

function commandOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8");
  } catch {
    return ""; // it has just ended
  }
}

/** Returns how many there were. */
function killAll(pids: readonly number[]): number {
  for (const pid of pids) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // it has just ended
    }
  }
  return pids.length;
}

/** The innermost first. */
function mountsBelow(folders: readonly string[]): string[] {
  const paths = readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .map((line) => line.split(" ")[4] ?? "");
  return paths.filter((path) => folders.some((folder) => path === folder || path.startsWith(`${folder}/`))).reverse();
}
