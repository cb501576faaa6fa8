#!/bin/bash
# The first process in the namespaces of a host (hosts.ts): prepares mounts, settings and loopback, then runs the given command. On the first
# host it is also the first process of the namespace for processes. When it ends, the kernel ends all others of all hosts, and with them go the
# namespaces, mounts and network devices.
# $1: the host's name; $2: a folder for its files; then the command.
set -euo pipefail
name=$1 folder=$2
shift 2

mount --make-rshared /
# Places with fixed paths: sockets, locks and logs of the container runtime and the kubelet.
mount -t tmpfs -o mode=755 tmpfs /run
mount -t tmpfs -o mode=755 tmpfs /var/log
mkdir /run/lock /run/netns
# The container runtime keeps its networks' state here.
for path in /var/lib/cni /etc/cni /opt/containerd; do
  mkdir -p "$path"
  mount -t tmpfs -o mode=755 tmpfs "$path"
done
# The kubelet sets all but the last of these for the whole machine. Here it sets a copy. reboot.ts writes a new boot_id.
mkdir -p "$folder/sysctls"
for path in vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops kernel/keys/root_maxkeys kernel/keys/root_maxbytes \
  kernel/random/boot_id; do
  copy="$folder/sysctls/${path//\//.}"
  cat "/proc/sys/$path" >"$copy"
  mount --bind "$copy" "/proc/sys/$path"
done
# No DNS server can be reached, so lookups shall fail at once.
echo "nameserver 127.0.0.1" >"$folder/resolv.conf"
mount --bind "$folder/resolv.conf" /etc/resolv.conf

hostname "$name"
ip link set lo up
echo 1 >/proc/sys/net/ipv4/ip_forward

# A child, so that this shell collects the processes whose parents have ended.
status=0
"$@" || status=$?
exit "$status"
