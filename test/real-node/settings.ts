// The settings of the node's programs: containerd, how pods are connected, kubelet and kube-proxy. Pure. Where a setting is not the usual one, a
// comment says why.
import { join } from "node:path";
import { cgroupOf } from "./cgroups.ts";
import type { Host } from "./hosts.ts";
import { PAUSE_IMAGE } from "./images.ts";

/** The addresses of all pods. */
const POD_RANGE = "10.244.0.0/16";
const DNS_ADDRESS = "10.96.0.10";
/** A node that has not reported for so long is lost. Kubernetes has 50. */
export const LOST_SECONDS = 20;
const CONTAINERD_SOCKET = "/run/containerd/containerd.sock";

export function containerdConfig(folder: string, cniPrograms: string): string {
  return `version = 3
root = "${join(folder, "containerd")}"
state = "/run/containerd"
disabled_plugins = ["io.containerd.nri.v1.nri"]
[grpc]
address = "${CONTAINERD_SOCKET}"
[plugins."io.containerd.cri.v1.runtime"]
# Without CAP_SYS_RESOURCE, as in a sandbox, runc could not lower a container's score.
restrict_oom_score_adj = true
[plugins."io.containerd.cri.v1.runtime".containerd]
default_runtime_name = "runc"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
SystemdCgroup = false
[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = ["${cniPrograms}"]
conf_dir = "${join(folder, "cni")}"
[plugins."io.containerd.cri.v1.images"]
snapshotter = "overlayfs"
[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "${PAUSE_IMAGE}"
`;
}

/** Each pod has a link to the node, which routes. A bridge would need a kernel module (br_netfilter) for calls of a Service between pods of the node. */
export function podNetwork({ folder, podRange }: Host): object {
  const ipam = {
    type: "host-local",
    ranges: [[{ subnet: podRange }]],
    routes: [{ dst: "0.0.0.0/0" }],
    dataDir: join(folder, "addresses"),
  };
  return {
    cniVersion: "1.0.0",
    name: "pods",
    plugins: [
      { type: "ptp", ipam },
      { type: "portmap", capabilities: { portMappings: true } },
    ],
  };
}

export function kubeletConfig({ folder, address }: Host, caFile: string): object {
  const least = { "memory.available": "1Mi", "nodefs.available": "1%", "nodefs.inodesFree": "1%", "imagefs.available": "1%" };
  return {
    apiVersion: "kubelet.config.k8s.io/v1beta1",
    kind: "KubeletConfiguration",
    address,
    authentication: { anonymous: { enabled: false }, webhook: { enabled: true }, x509: { clientCAFile: caFile } },
    authorization: { mode: "Webhook" },
    containerRuntimeEndpoint: `unix://${CONTAINERD_SOCKET}`,
    clusterDomain: "cluster.local",
    clusterDNS: [DNS_ADDRESS],
    resolvConf: join(folder, "resolv.conf"),
    cgroupDriver: "cgroupfs",
    cgroupRoot: cgroupOf(folder),
    // The machine may have cgroups of version 1, and swap.
    failCgroupV1: false,
    failSwapOn: false,
    // So that an hour of access logs is rotated; the default is 10Mi.
    containerLogMaxSize: "1Mi",
    podLogsDir: join(folder, "pods"),
    volumePluginDir: join(folder, "volume-plugins"),
    // The machine's disk and memory are not the node's own.
    evictionHard: least,
    imageGCHighThresholdPercent: 100,
    maxPods: 60,
    // It reports each second. The control plane marks it as lost after `LOST_SECONDS`.
    nodeLeaseDurationSeconds: 4,
    nodeStatusReportFrequency: "10s",
    // All images are imported, none can be fetched.
    serializeImagePulls: false,
  };
}

export function kubeProxyConfig(kubeconfig: string, name: string): object {
  return {
    apiVersion: "kubeproxy.config.k8s.io/v1alpha1",
    kind: "KubeProxyConfiguration",
    clientConnection: { kubeconfig },
    hostnameOverride: name,
    mode: "nftables",
    clusterCIDR: POD_RANGE,
    // These limits belong to the whole machine.
    conntrack: { maxPerCore: 0, min: 0, tcpEstablishedTimeout: "0s", tcpCloseWaitTimeout: "0s" },
  };
}
