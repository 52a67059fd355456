#!/bin/bash
# The first process of a machine: gives it paths of its own, then reaps. usage: machine.sh NAME DIR
set -euo pipefail
name=$1 dir=$2

hostname "$name"
mount -t proc proc /proc
# The mounts of pods must reach the containers that ask for them; none of them reaches the machine.
mount --make-rshared /
mount -t tmpfs tmpfs /run
for path in /var/lib /var/log; do
  mkdir -p "$dir$path"
  mount --bind "$dir$path" "$path"
done
mkdir /var/log/pods /var/log/containers
touch "$dir/mounted"
while :; do
  sleep infinity &
  wait $! || true
done
