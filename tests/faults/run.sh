#!/bin/sh
# A sample of what scripts/faults tries in full; 77: there is no Python, or the kernel does not ask about calls.
# Usage: run.sh DVBF SUPERVISE MEMORY
set -eu
here=$(dirname "$0")
command -v python3 >/dev/null || { echo "skipped: python3 is not installed"; exit 77; }
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
# A compiler that cannot be started now is not taken for none.
python3 "$here/sweep.py" "$@" --classes child --first 1 export-fmu
# Arrays that libzip and libhdf5 have no memory for are not called another format, nor left out.
python3 "$here/sweep.py" "$@" --classes foreign --judge-foreign info-data info-h5
python3 "$here/sweep.py" "$@" --classes space --most 5 train
# A rank that ends before it could meet the others says why.
if [ -e "$(dirname "$1")/libdvbf-mpi.so" ] && mpirun --version 2>/dev/null | grep -q 'Open MPI'; then
  python3 "$here/sweep.py" "$@" --classes own --first 1 ranks-second
fi
# With little address space the command ends; OpenBLAS, which it once called, waited for more.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
awk 'BEGIN { print "t,u,x"; for (i = 0; i < 90; i++) { u = sin(i * i); x = 0.8 * x + u; print i "," u "," x } }' >"$work/data.csv"
for megabytes in 20 30 40 60 100 150 200; do
  (ulimit -v $((megabytes * 1024)) && timeout 60 "$1" train "$work/data.csv" -o "$work/run" --force --search off --updates 6 \
    --hidden 4 --latent 2 --start linear --threads 2 --quiet --no-verdict 2>"$work/err") && status=0 || status=$?
  case $status in 0 | 1 | 3 | 127) ;; *) echo "$megabytes MB of addresses: exit status $status"; cat "$work/err"; exit 1 ;; esac
done
python3 "$here/power.py" "$@" --most 12 train search
python3 "$here/kills.py" "$@" --kills 12 train search report
