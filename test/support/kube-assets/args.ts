// The flags of the control plane's own programs: the same choices as in test/kube/args.go.
import { SERVICE_RANGE, type State } from "./state.ts";

export interface PlaneOptions {
  readonly controllerManager: boolean;
  readonly nodeControllers: boolean;
  readonly featureGates: string;
  /** Additional flags, at the end. */
  readonly apiServerFlags: readonly string[];
  readonly controllerManagerFlags: readonly string[];
}

/** They mark nodes without a kubelet unreachable and delete their pods. */
const NODE_CONTROLLERS = ["node-lifecycle-controller", "taint-eviction-controller", "pod-garbage-collector-controller"];
const ISSUER = "https://kubernetes.default.svc";

export function etcdArgs({ ports, path }: State): string[] {
  const client = `http://127.0.0.1:${ports.etcd}`;
  const peer = `http://127.0.0.1:${ports.etcdPeer}`;
  return [
    `--data-dir=${path("etcd")}`,
    `--listen-client-urls=${client}`,
    `--advertise-client-urls=${client}`,
    `--listen-peer-urls=${peer}`,
    `--initial-advertise-peer-urls=${peer}`,
    `--initial-cluster=default=${peer}`,
    "--unsafe-no-fsync", // kill -9 loses nothing, only a crash of the machine would
  ];
}

export function apiServerArgs({ ports, path, auditLog }: State, options: PlaneOptions): string[] {
  const { controllerManager, featureGates, apiServerFlags } = options;
  const args = [
    `--etcd-servers=http://127.0.0.1:${ports.etcd}`,
    "--bind-address=127.0.0.1",
    `--secure-port=${ports.api}`,
    "--advertise-address=127.0.0.1",
    "--endpoint-reconciler-type=none", // Endpoints may not be loopback addresses
    `--service-cluster-ip-range=${SERVICE_RANGE}`,
    `--tls-cert-file=${path("apiserver.crt")}`,
    `--tls-private-key-file=${path("apiserver.key")}`,
    `--client-ca-file=${path("ca.crt")}`,
    `--token-auth-file=${path("tokens.csv")}`,
    "--authorization-mode=Node,RBAC",
    `--service-account-issuer=${ISSUER}`,
    `--api-audiences=${ISSUER}`,
    `--service-account-key-file=${path("service-account.key")}`,
    `--service-account-signing-key-file=${path("service-account.key")}`,
    "--allow-privileged=true",
    "--profiling=false",
  ];
  // Without controllers the ServiceAccounts that this plugin requires of every pod do not exist.
  if (!controllerManager) args.push("--disable-admission-plugins=ServiceAccount");
  if (auditLog !== "") {
    args.push(
      `--audit-policy-file=${path("audit-policy.yaml")}`,
      `--audit-log-path=${auditLog}`,
      "--audit-log-format=json",
      "--audit-log-mode=blocking", // loses nothing
      "--audit-log-maxsize=100000", // no rotation, which would hide lines
    );
  }
  if (featureGates !== "") args.push(`--feature-gates=${featureGates}`);
  return [...args, ...apiServerFlags];
}

export function controllerManagerArgs({ path, kubeconfig }: State, options: PlaneOptions): string[] {
  const { nodeControllers, featureGates, controllerManagerFlags } = options;
  const disabled = [...(nodeControllers ? [] : NODE_CONTROLLERS), "node-ipam-controller"];
  return [
    `--kubeconfig=${kubeconfig("controller-manager")}`,
    `--controllers=*,-${disabled.join(",-")}`,
    "--leader-elect=false",
    "--secure-port=0",
    "--use-service-account-credentials=true",
    `--service-account-private-key-file=${path("service-account.key")}`,
    `--root-ca-file=${path("ca.crt")}`,
    "--kube-api-qps=500",
    "--kube-api-burst=1000",
    ...(featureGates === "" ? [] : [`--feature-gates=${featureGates}`]),
    ...controllerManagerFlags,
  ];
}

export function schedulerArgs({ kubeconfig }: State, { featureGates }: PlaneOptions): string[] {
  return [
    `--kubeconfig=${kubeconfig("scheduler")}`,
    "--leader-elect=false",
    "--secure-port=0",
    ...(featureGates === "" ? [] : [`--feature-gates=${featureGates}`]),
  ];
}
