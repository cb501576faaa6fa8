// The shell script that sets up a container and becomes its first process. It sets up mounts over this machine's files, /proc,
// /dev and the host name. It also sets the user, groups and capabilities of the securityContext. Pure: it only builds text.
import type { Container, NodePod } from "./pod-types.ts";
import { type TestImage, userOf } from "./test-image.ts";

export interface Bind {
  readonly source: string;
  readonly target: string;
  readonly isFolder: boolean;
  readonly readOnly: boolean;
}

export interface Sandbox {
  /** An empty folder of the agent for the container's root. */
  readonly dir: string;
  readonly hostname: string;
  /** Folders of this machine that the container must not see. */
  readonly hidden: readonly string[];
  readonly binds: readonly Bind[];
  readonly readOnlyRoot: boolean;
  readonly workingDir: string;
  readonly identity: Identity;
}

/** The identity of the container's processes. */
export interface Identity {
  readonly uid: number;
  readonly gid: number;
  readonly groups: readonly number[];
  /** Lower case, without CAP_. */
  readonly capabilities: readonly string[] | "all";
  readonly noNewPrivileges: boolean;
}

// The default capabilities of container runtimes.
const DEFAULT_CAPABILITIES = [
  "chown",
  "dac_override",
  "fowner",
  "fsetid",
  "kill",
  "setgid",
  "setuid",
  "setpcap",
  "net_bind_service",
  "net_raw",
  "sys_chroot",
  "mknod",
  "audit_write",
  "setfcap",
];

/** @throws Error with the kubelet's message if the container is root and must not be */
export function identityOf(pod: NodePod, container: Container, image: TestImage): Identity {
  const { securityContext: ofPod = {} } = pod.spec;
  const { securityContext: own = {} } = container;
  const user = userOf(image);
  const uid = own.runAsUser ?? ofPod.runAsUser ?? user.uid;
  const gid = own.runAsGroup ?? ofPod.runAsGroup ?? user.gid;
  if ((own.runAsNonRoot ?? ofPod.runAsNonRoot) && uid === 0) {
    throw new Error("container has runAsNonRoot and image will run as root");
  }
  return {
    uid,
    gid,
    groups: [...(ofPod.supplementalGroups ?? []), ...(ofPod.fsGroup === undefined ? [] : [ofPod.fsGroup])],
    capabilities: own.privileged ? "all" : capabilitiesOf(own.capabilities),
    noNewPrivileges: own.allowPrivilegeEscalation === false,
  };
}

function capabilitiesOf({ add = [], drop = [] }: { add?: readonly string[]; drop?: readonly string[] } = {}) {
  const plain = (name: string) => name.toLowerCase().replace(/^cap_/, "");
  const dropped = new Set(drop.map(plain));
  if (add.map(plain).includes("all")) return "all";
  const kept = dropped.has("all") ? [] : DEFAULT_CAPABILITIES.filter((name) => !dropped.has(name));
  return [...new Set([...kept, ...add.map(plain)])];
}

/** The command that drops all other rights and then runs a program. */
export function asIdentity({ uid, gid, groups, capabilities, noNewPrivileges }: Identity): string[] {
  return [
    "setpriv",
    "--reuid",
    String(uid),
    "--regid",
    String(gid),
    groups.length === 0 ? "--clear-groups" : `--groups=${groups.join(",")}`,
    ...(capabilities === "all" ? [] : [`--bounding-set=${["-all", ...capabilities.map((name) => `+${name}`)].join(",")}`]),
    "--inh-caps=-all",
    ...(noNewPrivileges ? ["--no-new-privs"] : []),
    // The kernel clears the death signal when the user changes, so it is set again here.
    "--pdeathsig",
    "KILL",
    "--",
  ];
}

/** A script for sh as root in new mount, pid and uts namespaces; it writes its pid to fd 3, "made" after the set-up, and becomes `argv`. */
export function sandboxScript(sandbox: Sandbox, env: Readonly<Record<string, string>>, argv: readonly string[]): string {
  const { dir, binds, identity } = sandbox;
  const hidden = outermost(sandbox.hidden);
  const root = `${dir}/root`;
  return `
set -eu
read -r pid rest </proc/self/stat
echo "$pid" >&3
echo ${quote(sandbox.hostname)} >/proc/sys/kernel/hostname
mount -t tmpfs -o mode=755 tmpfs ${dir}
mkdir ${dir}/upper ${dir}/work ${root}
${hidden.map((path) => hide(`${dir}/upper`, path)).join("\n")}
mount -t overlay -o lowerdir=/,upperdir=${dir}/upper,workdir=${dir}/work overlay ${root}
mkdir -p ${hidden.map((path) => quote(root + path)).join(" ")}
chmod 1777 ${root}/tmp
mount -t proc proc ${root}/proc
mount -t sysfs -o ro sysfs ${root}/sys
mount -t tmpfs -o mode=755 tmpfs ${root}/dev
cp -a /dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/tty ${root}/dev/
ln -s /proc/self/fd ${root}/dev/fd
ln -s fd/1 ${root}/dev/stdout
ln -s fd/2 ${root}/dev/stderr
mkdir -m 1777 ${root}/dev/shm
${[...binds]
  .sort((a, b) => a.target.length - b.target.length)
  .map((bind) => bindLine(root, bind))
  .join("\n")}
mkdir -p ${quote(root + sandbox.workingDir)}
cd ${root}
pivot_root . .
umount -l .
${sandbox.readOnlyRoot ? "mount -o remount,bind,ro /" : ""}
cd ${quote(sandbox.workingDir)}
echo made >&3
exec 3>&-
exec ${[...asIdentity(identity), "env", "-i", ...envWords(env), ...argv].map(quote).join(" ")}
`;
}

/** NAME=VALUE words for env. */
export function envWords(env: Readonly<Record<string, string>>): string[] {
  return Object.entries(env).map(([name, value]) => `${name}=${value}`);
}

// Folders inside a hidden folder are hidden with it and cannot have their own whiteout: a clone in /tmp, a home in /home.
function outermost(paths: readonly string[]): string[] {
  return paths.filter((path) => path !== "/" && !paths.some((other) => other !== "/" && path.startsWith(`${other}/`)));
}

// A whiteout in the upper layer hides the files below. A folder created in its place is empty.
function hide(upper: string, path: string): string {
  const parent = path.slice(0, path.lastIndexOf("/"));
  return `mkdir -p ${quote(upper + parent)}; mknod ${quote(upper + path)} c 0 0`;
}

function bindLine(root: string, { source, target, isFolder, readOnly }: Bind): string {
  const at = quote(root + target);
  const make = isFolder
    ? `mkdir -p ${at}`
    : `mkdir -p ${quote(root + target.slice(0, target.lastIndexOf("/")))}; [ -e ${at} ] || : >${at}`;
  const mount = `mount --bind ${quote(source)} ${at}`;
  return `${make}; ${mount}${readOnly ? `; mount -o remount,bind,ro ${at}` : ""}`;
}

function quote(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`;
}
