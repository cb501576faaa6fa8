# sh private-root.sh FOLDER PROGRAM ARGS...: runs PROGRAM with the files of this machine, but with an empty /home and an empty
# /ctrlmesh of its own. The other mesh's proxy stores its route in /ctrlmesh. Run it in a mount namespace (unshare --mount): its
# mounts are invisible outside, and end with it.
set -e
root=$1
program=$2
shift 2
mount -t tmpfs none "$root"
mkdir "$root/ctrlmesh" "$root/home"
touch "$root/other-proxy"
mount --bind "$program" "$root/other-proxy"
for path in /*; do
  if [ -e "$root$path" ]; then
    continue
  elif [ -L "$path" ]; then
    cp -P "$path" "$root$path"
  elif [ -d "$path" ]; then
    mkdir "$root$path"
    mount --rbind "$path" "$root$path"
  fi
done
exec chroot "$root" /other-proxy "$@"
