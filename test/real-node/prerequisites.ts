// Prepares this machine for the real node, or says in one line why that cannot run here.
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

const PACKAGES = fileURLToPath(new URL("packages.sh", import.meta.url));
const PROGRAMS = ["runc", "buildah", "debootstrap", "nft", "iptables", "conntrack", "ip", "unshare", "setpriv", "kubectl", "go"];
/** Where Debian puts the programs that connect pods. */
export const CNI_PROGRAMS = "/usr/lib/cni";

/** Installs missing packages where apt can; returns why a node is impossible here all the same, or undefined. */
export function prepareMachine(): string | undefined {
  if (process.platform !== "linux") return "not Linux";
  if (process.getuid?.() !== 0) return "not root";
  execFileSync(PACKAGES, { stdio: ["ignore", "ignore", "inherit"] });
  const missing = PROGRAMS.filter((program) => spawnSync("which", [program]).status !== 0);
  if (!existsSync(`${CNI_PROGRAMS}/ptp`)) missing.push("containernetworking-plugins");
  if (missing.length > 0) return `not installed: ${missing.join(", ")}`;
  const namespaces = ["--mount", "--net", "--pid", "--uts", "--ipc", "--fork", "--mount-proc"];
  if (spawnSync("unshare", [...namespaces, "true"]).status !== 0) return "no namespaces can be made";
  return undefined;
}
