// What the test node needs of the machine.
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";

const PROGRAMS = ["ip", "iptables-restore", "unshare", "nsenter", "setpriv"] as const;

/** Why there can be no test node here; undefined if there can. */
export function whyNoTestNode(): string | undefined {
  if (process.getuid?.() !== 0) return "not root";
  const missing = PROGRAMS.filter((program) => spawnSync("which", [program]).status !== 0);
  if (missing.length > 0) return `not installed: ${missing.join(", ")}; see scripts/ci-packages.sh`;
  if (spawnSync("unshare", ["--mount", "--net", "true"]).status !== 0) return "no namespaces can be made";
  return readFileSync("/proc/filesystems", "utf8").includes("overlay") ? undefined : "the kernel has no overlayfs";
}
