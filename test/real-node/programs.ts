// The programs of a node, unmodified, built from their Go modules (./programs) once for each version and kept in the user's cache. The kubelet
// and kube-proxy have the version of the control plane (test/kube), so both builds share Go's cache.
import { fileURLToPath } from "node:url";
import { buildGoPackage, type GoPackage } from "../support/go-build.ts";
import { versionFlags } from "../support/kube-assets/build.ts";

const CONTAINERD = "github.com/containerd/containerd/v2/cmd";
/** Storage drivers that would need libraries of the machine. The node uses overlayfs. */
const CONTAINERD_FLAGS = ["-tags=no_btrfs,no_devmapper,no_zfs"];

const KUBERNETES = {
  folder: "kubernetes",
  linkerFlags: versionFlags(fileURLToPath(new URL("programs/kubernetes", import.meta.url))),
};

const PACKAGES = {
  kubelet: { ...KUBERNETES, packagePath: "k8s.io/kubernetes/cmd/kubelet" },
  "kube-proxy": { ...KUBERNETES, packagePath: "k8s.io/kubernetes/cmd/kube-proxy" },
  containerd: { folder: "containerd", packagePath: `${CONTAINERD}/containerd`, flags: CONTAINERD_FLAGS },
  "containerd-shim-runc-v2": {
    folder: "containerd",
    packagePath: `${CONTAINERD}/containerd-shim-runc-v2`,
    flags: CONTAINERD_FLAGS,
  },
  ctr: { folder: "containerd", packagePath: `${CONTAINERD}/ctr`, flags: CONTAINERD_FLAGS },
  // In images that have nothing else.
  coredns: { folder: "coredns", packagePath: "github.com/coredns/coredns", isStatic: true },
  pause: { folder: "pause", packagePath: ".", isStatic: true },
} satisfies Record<string, Omit<GoPackage, "name">>;

export type NodeProgram = keyof typeof PACKAGES;
/** The paths of the built programs. */
export type NodePrograms = Readonly<Record<NodeProgram, string>>;

/** Builds what is not in the cache, one after the other, since each build uses all cores. @throws Error with the compiler's output */
export async function buildNodePrograms(): Promise<NodePrograms> {
  const paths = new Map<string, string>();
  for (const [name, { folder, ...rest }] of Object.entries(PACKAGES)) {
    paths.set(name, await buildGoPackage({ name, folder: `test/real-node/programs/${folder}`, ...rest }));
  }
  return Object.fromEntries(paths) as NodePrograms;
}
