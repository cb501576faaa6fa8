#!/usr/bin/env bash
# Installs the Debian packages that the real node needs (test/real-node): runc, CNI plugins, buildah, debootstrap and network tools. Needs root on
# Debian or Ubuntu; elsewhere it does nothing, and `npm run test:node` reports what is missing.
set -euo pipefail

declare -A package_of=([runc]=runc [buildah]=buildah [debootstrap]=debootstrap [nft]=nftables [iptables]=iptables [conntrack]=conntrack
  [ip]=iproute2 [unshare]=util-linux [setpriv]=util-linux [/usr/lib/cni/ptp]=containernetworking-plugins)
missing=()
for program in "${!package_of[@]}"; do
  command -v "$program" >/dev/null || missing+=("${package_of[$program]}")
done
if [ "${#missing[@]}" -eq 0 ]; then
  exit 0
elif [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
  echo "missing and not installable here: ${missing[*]}"
else
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -q
  apt-get install -q -y --no-install-recommends -o DPkg::Lock::Timeout=300 "${missing[@]}"
fi
