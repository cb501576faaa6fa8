#!/usr/bin/env bash
# The Debian packages that the tests with network namespaces and the test node (test/support/node) need and that a plain image
# may lack. Installs what is missing, as root on Debian or Ubuntu; elsewhere it does nothing, and the tests say what they miss.
set -euo pipefail

declare -A package_of=([ip]=iproute2 [iptables-restore]=iptables [unshare]=util-linux [setpriv]=util-linux)
missing=()
for program in "${!package_of[@]}"; do
  command -v "$program" >/dev/null || missing+=("${package_of[$program]}")
done
if [ "${#missing[@]}" -eq 0 ]; then
  echo "nothing is missing"
elif [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
  echo "missing, and cannot be installed here: ${missing[*]}"
else
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -q
  apt-get install -q -y --no-install-recommends -o DPkg::Lock::Timeout=300 "${missing[@]}"
fi
