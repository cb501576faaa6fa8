#!/usr/bin/env bash
# Installs the Debian packages that the tests need and a plain image may lack: network namespaces, the test node
# (test/node), the processes of the demo, the environment of the Python clients, jemalloc, which the images use, and the
# model checker, and a browser for the page of the dashboard. Needs root on Debian or Ubuntu; elsewhere it does nothing, and the tests report what is missing. kubectl
# and Go are not installed.
set -euo pipefail

declare -A package_of=([ip]=iproute2 [iptables-restore]=iptables [unshare]=util-linux [setpriv]=util-linux [mount]=mount [ps]=procps [python3]=python3 [spin]=spin [gcc]=gcc [chromium]=chromium)
missing=()
for program in "${!package_of[@]}"; do
  command -v "$program" >/dev/null || missing+=("${package_of[$program]}")
done
# The verifier that Spin writes is in C.
[ -e /usr/include/stdio.h ] || missing+=(libc6-dev)
# Debian's python3 needs this package for virtual environments.
python3 -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3-venv)
ls /usr/lib/*/libjemalloc.so.2 >/dev/null 2>&1 || missing+=(libjemalloc2)
if [ "${#missing[@]}" -eq 0 ]; then
  echo "nothing is missing"
elif [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
  echo "missing and not installable here: ${missing[*]}"
else
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -q
  apt-get install -q -y --no-install-recommends -o DPkg::Lock::Timeout=300 "${missing[@]}"
fi
