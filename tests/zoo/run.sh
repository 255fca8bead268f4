#!/bin/sh
# Makes the files of the zoo in a folder of its own and reads each: run.sh DVBF ZOO_HDF5 [--no-matio]
set -eu
command -v python3 >/dev/null || { echo "skipped: python3 is not installed"; exit 77; }
here=$(dirname "$0")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 "$here/make.py" "$folder"
(cd "$folder" && "$2")
python3 "$here/check.py" "$1" "$folder" ${3:+"$3"}
