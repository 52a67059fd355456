#!/bin/bash
# Starts a kubelet in a mount namespace of its own, where it sees folders below DIR in place of these FOLDERs, and files in place of the kernel
# settings that it changes: no option keeps it from writing to them. usage: unshare --mount kubelet.sh DIR FOLDER... -- COMMAND...
set -euo pipefail
dir=$1
shift
while [ "$1" != -- ]; do
  mkdir -p "$dir$1"
  mount --bind "$dir$1" "$1"
  shift
done
shift
# What it wants them to be (pkg/kubelet/cm/container_manager_linux.go, setupKernelTunables).
settings=(vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1)
settings+=(kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000)
for setting in "${settings[@]}"; do
  file=$dir/sys/${setting%=*}
  mkdir -p "${file%/*}"
  echo "${setting#*=}" > "$file"
  mount --bind "$file" "/proc/sys/${setting%=*}"
done
exec "$@"
