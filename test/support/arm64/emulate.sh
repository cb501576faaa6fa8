#!/bin/sh
# Runs a command where Linux starts programs for arm64 with QEMU. QEMU is registered in a user namespace of its own (Linux 6.7 and later), so
# this machine does not see it, and it ends with the command. Users keep their numbers. Needs root.
#   emulate.sh QEMU COMMAND...
set -eu
before=$(readlink /proc/self/ns/user)
# Only a process outside of the namespace may say which users it has.
(
  {
    until [ "$(readlink /proc/$$/ns/user)" != "$before" ]; do sleep 0.01; done
    for map in uid_map gid_map; do echo '0 0 4294967295' >/proc/$$/$map; done
  } &
)
# The header of an executable file or library for arm64, without what differs between them.
exec unshare --user --mount sh -euc '
  until [ -n "$(cat /proc/self/gid_map)" ]; do sleep 0.01; done
  mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc
  magic="\x7f\x45\x4c\x46\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00"
  mask="\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff"
  printf "%s" ":arm64:M::$magic:$mask:$0:OPF" >/proc/sys/fs/binfmt_misc/register
  exec "$@"' "$@"
