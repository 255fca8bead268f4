#!/bin/sh
# A sample of what scripts/faults tries in full; 77: there is no Python, or the kernel does not ask about calls.
# Usage: run.sh DVBF SUPERVISE MEMORY
set -eu
here=$(dirname "$0")
command -v python3 >/dev/null || exit 77
export PYTHONDONTWRITEBYTECODE=1
python3 "$here/sweep.py" "$@" --sample 2
# A search that ended when its settings were written goes on with the same candidates.
python3 "$here/sweep.py" "$@" --classes rename --first 3 search
# Metrics that cannot be read now are not taken for none.
python3 "$here/sweep.py" "$@" --classes open,read info-run
# What the disk does not give of an HDF5 file is not taken for what is not there.
python3 "$here/sweep.py" "$@" --classes read --most 12 info-h5
# Lines that cannot be read for want of memory are not taken for the end.
python3 "$here/sweep.py" "$@" --classes libc control
# A folder that cannot be opened at the end leaves no temporary file.
python3 "$here/sweep.py" "$@" --classes open filter-npz
# A checkpoint that cannot be read now is not one that knows no data.
python3 "$here/sweep.py" "$@" --classes libc export-py
# What has no place in memory is not left out of what is told.
python3 "$here/sweep.py" "$@" --classes own --depth 2 --sample 60 info-data info-run
python3 "$here/sweep.py" "$@" --classes space --most 5 train
python3 "$here/power.py" "$@" --most 12 train search
python3 "$here/kills.py" "$@" --kills 12 train search report
