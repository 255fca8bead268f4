#!/bin/sh
# The tests of the Python package, against the library that was built; skipped where NumPy or pytest is missing.
# Usage: tests/cli/python.sh LIBRARY COMMAND
set -eu
sources=$(cd "$(dirname "$0")/../.." && pwd)
# Debian's Python has Debian's packages, whatever else is on the path.
for python in ${DVBF_PYTHON-} /usr/bin/python3 python3; do
  if "$python" -c 'import numpy, pytest' 2>/dev/null; then break; fi
  python=
done
[ -n "$python" ] || { echo "skipped: NumPy or pytest is not installed"; exit 77; }
export PYTHONPATH="$sources/python" PYTHONDONTWRITEBYTECODE=1 DVBF_LIBRARY="$1" DVBF_COMMAND="$2"
cd "$sources"
exec "$python" -m pytest -q -p no:cacheprovider --durations=5 tests/python
