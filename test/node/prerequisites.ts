// Checks that the machine has everything that the test node needs.
import { spawnSync } from "node:child_process";

const PROGRAMS = ["ip", "iptables-restore", "unshare", "nsenter", "setpriv"] as const;

// Mounts like a container (sandbox.ts). The kernel loads the module at the first mount, so /proc/filesystems lacks it before.
const TRY_OVERLAY = `
mount -t tmpfs tmpfs /mnt
mkdir /mnt/upper /mnt/work /mnt/root
mount -t overlay -o lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work overlay /mnt/root`;

/** The reason why a test node is impossible here; undefined if it is possible. */
export function whyNoTestNode(): string | undefined {
  if (process.getuid?.() !== 0) return "not root";
  const missing = PROGRAMS.filter((program) => spawnSync("which", [program]).status !== 0);
  if (missing.length > 0) return `not installed: ${missing.join(", ")}; see scripts/ci-packages.sh`;
  if (spawnSync("unshare", ["--mount", "--net", "true"]).status !== 0) return "no namespaces can be made";
  return spawnSync("unshare", ["--mount", "sh", "-euc", TRY_OVERLAY]).status === 0 ? undefined : "no overlayfs can be mounted";
}
