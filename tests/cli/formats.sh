#!/bin/sh
# Files of each format that there has been can be read: tests/formats/run-N is a run folder of format N, stopped halfway by the version that
# wrote it, on tests/formats/data.csv. A file of a later format is refused with a sentence that says so.
# Usage: formats.sh DVBF
set -eu
dvbf=$1
from=$(cd "$(dirname "$0")/../formats" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }

for run in "$from"/run-*; do
  name=$(basename "$run")
  "$dvbf" filter "$run" "$from/data.csv" -o "$work/$name.csv" 2>"$work/log" || fail "$name: $(cat "$work/log")"
  [ "$(wc -l <"$work/$name.csv")" -gt 5 ] || fail "$name: few states"
  cp -r "$run" "$work/$name"
  "$dvbf" train "$from/data.csv" -o "$work/$name" --resume --no-verdict 2>"$work/log" || fail "$name: $(cat "$work/log")"
  grep -q 'continuing from update' "$work/log" || fail "$name did not go on: $(cat "$work/log")"
done

# The document on data names the formats and endings that the command does.
document=$from/../../docs/data-formats.md
named() { [ "$1" ] && grep -qF -- "$1" "$document" || fail "docs/data-formats.md does not say: $1"; }
named "dvbf reads $("$dvbf" help train | sed -n 's/^DATA is a file (\(.*\)), several.*/\1/p') files"
named "which ends in $("$dvbf" help predict | tr -s ' \n' ' ' | sed -n 's/.*whose name ends in \([^;]*\);.*/\1/p')."
mkdir "$work/empty"
named "files that end in $("$dvbf" info "$work/empty" 2>&1 | sed -n 's/.*files that end in \([^;]*\).*/\1/p')"

# The number in the metadata of a model and of a checkpoint becomes a later one.
cp -r "$from/run-1" "$work/later"
for file in model checkpoint; do
  LC_ALL=C sed -i 's/"format":"dvbf 1"/"format":"dvbf 9"/; s/"format":"dvbf checkpoint 1"/"format":"dvbf checkpoint 9"/' "$work/later/$file.safetensors"
done
! "$dvbf" info "$work/later/model.safetensors" 2>"$work/log" || fail "a model of a later format was taken"
grep -q 'is a model of the format "dvbf 9".*use a newer dvbf' "$work/log" || fail "$(cat "$work/log")"
! "$dvbf" train "$from/data.csv" -o "$work/later" --resume --no-verdict 2>"$work/log" || fail "a checkpoint of a later format was taken"
grep -q 'is a checkpoint of the format "dvbf checkpoint 9".*use a newer dvbf' "$work/log" || fail "$(cat "$work/log")"
