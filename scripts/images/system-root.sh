#!/bin/sh
# Makes the root of an image without a shell and a package manager: FOLDER gets the named files of this Debian system, the libraries that they
# load, and the license of each package from which it has a file. The package's entry is in var/lib/dpkg/status.d, where scanners of images look.
#   system-root.sh FOLDER FILE...
set -eu
root=$1
shift
mkdir -p "$root/etc" "$root/var/lib/dpkg/status.d" "$root/usr/lib" "$root/usr/lib64" "$root/usr/bin" "$root/usr/sbin"
for name in bin sbin lib lib64; do ln -s "usr/$name" "$root/$name"; done
install -d -m 1777 "$root/tmp"
echo 'root:x:0:0:root:/:/nonexistent' >"$root/etc/passwd"
echo 'ctrlmesh:x:1359:1359:ctrlmesh:/:/nonexistent' >>"$root/etc/passwd"

# The path below /usr: on Debian /lib, /bin and the like are links into it.
below_usr() {
  case $1 in /usr/*) echo "$1" ;; *) echo "/usr$1" ;; esac
}

taken=
take() {
  path=$(below_usr "$1")
  real=$(readlink -f "$1")
  if [ "$path" != "$(below_usr "$real")" ]; then
    mkdir -p "$root${path%/*}"
    ln -sf "$(below_usr "$real")" "$root$path"
    path=$(below_usr "$real")
  fi
  [ ! -e "$root$path" ] || return 0
  mkdir -p "$root${path%/*}"
  cp --preserve=mode "$real" "$root$path"
  # dpkg knows some files by the path that they had before /lib and /bin became links into /usr.
  taken="$taken $real ${real#/usr}"
}

libraries=$(ldd "$@" | sed -n 's/.*=> \(\/[^ ]*\).*/\1/p; s/^\s*\(\/[^ ]*\) (.*/\1/p' | sort -u)
for file in "$@" $libraries; do take "$file"; done
# Node.js belongs to no package.
packages=$({ dpkg-query -S $taken 2>/dev/null || true; } | sed 's/[:,].*//' | sort -u)
for package in $packages; do
  dpkg-query -s "$package" >"$root/var/lib/dpkg/status.d/$package"
  mkdir -p "$root/usr/share/doc/$package"
  cp -L "/usr/share/doc/$package/copyright" "$root/usr/share/doc/$package/copyright"
done
# The license of Node.js, where the official image has it.
[ ! -e /usr/local/LICENSE ] || cp /usr/local/LICENSE "$root/usr/local/LICENSE"
