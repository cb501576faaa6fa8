// The node loses power: all processes of pods and of the node's services end at once, and with them what was in memory: tmpfs, network devices, rules
// of the packet filter. The disk stays, and so does the control plane, which is on another machine in a usual cluster.
import { randomUUID } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { eventually } from "../support/eventually.ts";
import { makeCgroups, processesInCgroups, removeCgroups } from "./cgroups.ts";
import { processesOf } from "./host-processes.ts";
import type { RealNode } from "./node.ts";

export async function reboot(node: RealNode): Promise<void> {
  const { services, folder, run } = node;
  await Promise.all((["kubelet", "kube-proxy", "containerd"] as const).map((name) => services.stop(name, 0)));
  await eventually(() => killAll([...shims(node), ...processesInCgroups(folder)]) === 0, { withinMs: 20_000, everyMs: 50 });
  for (const path of mountsBelow(node, [join(folder, "kubelet"), "/run"])) await run("umount", "--lazy", path);
  await run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/run");
  await run("mkdir", "/run/lock", "/run/netns");
  await run("nft", "flush", "ruleset");
  await removeCgroups(folder);
  makeCgroups(folder);
  writeFileSync(join(folder, "sysctls/kernel.random.boot_id"), randomUUID());
  await node.startServices();
}

function shims(node: RealNode): number[] {
  return processesOf(node).flatMap(({ pid, command }) => (command.includes("containerd-shim") ? [pid] : []));
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
function mountsBelow({ pid }: RealNode, folders: readonly string[]): string[] {
  const paths = readFileSync(`/proc/${pid}/mountinfo`, "utf8")
    .split("\n")
    .map((line) => line.split(" ")[4] ?? "");
  return paths.filter((path) => folders.some((folder) => path === folder || path.startsWith(`${folder}/`))).reverse();
}
