#!/bin/sh
# Memory of training on a file larger than memory. Usage: bench/memory.sh [GIGABYTES [BUILD [SETTING...]]]
# Makes an NPY file of sequences of 100 steps of 256 bytes (as floats they would take four times as much) in
# TMPDIR, all but its beginning a hole, trains some updates, prints the largest resident set and removes the file.
# Needs GNU time.
set -eu
size=${1:-4}
build=${2:-build}
[ $# -gt 2 ] && shift 2 || set --
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' INT TERM
sequences=$((size * 1024 * 1024 * 1024 / 25600))
{
  printf '\223NUMPY\001\000\166\000' # version 1.0 and a header of 118 bytes
  printf '%-117s\n' "{'descr': '|u1', 'fortran_order': False, 'shape': ($sequences, 100, 256), }"
  head -c 33554432 /dev/urandom
} >"$folder/x.npy"
truncate -s $((128 + sequences * 25600)) "$folder/x.npy"
if ! /usr/bin/time -f 'resident at most %M KB, %e s' "$build/dvbf" train "$folder/x.npy" -o "$folder/run" \
  --updates 20 --memory 64 --quiet --no-verdict "$@" 2>"$folder/log"; then
  cat "$folder/log" >&2
  exit 1
fi
echo "$(stat -c %s "$folder/x.npy") bytes in the file: $(tail -n 1 "$folder/log")"
