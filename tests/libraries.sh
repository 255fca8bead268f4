#!/usr/bin/env bash
# A library exports what its headers declare and what its list names, and libdvbf-core needs next to nothing.
# Where a change of the lists is meant, DVBF_WRITE_SYMBOLS=1 ctest -R libraries writes them anew.
# Usage: tests/libraries.sh SOURCES CORE_LIBRARY [DVBF_LIBRARY]
set -euo pipefail
export LC_ALL=C
sources=$1 core=$2 dvbf=${3-}
lists=$sources/tests/symbols headers=$sources/include/dvbf
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }

needed=$(readelf -d "$core" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
others=$(echo "$needed" | grep -v -E '^(libc|libm|libpthread|libjansson|ld-linux.*)\.so\.[0-9]+$' || true)
[ -z "$others" ] || fail "libdvbf-core needs $others"

# Whatever DVBF_API stands before, up to the parenthesis.
declared() { sed -n '/^DVBF_API/{s/(.*//;s/.*[ *]//;p}' "$@" | sort; }
exported() { nm -D --defined-only "$1" | awk '{print $3}' | sort; }
same() { diff -u "$1" "$2" || fail "$3"; }
listed() { # LIST FOUND LIBRARY
  [ -z "${DVBF_WRITE_SYMBOLS-}" ] || cp "$2" "$1"
  same "$1" "$2" "$3 does not export what $1 lists; if that is meant: DVBF_WRITE_SYMBOLS=1 ctest -R libraries"
}

declared "$headers"/{core,graph}.h >"$work/core"
exported "$core" >"$work/core.so"
same "$work/core" "$work/core.so" "libdvbf-core does not export what core.h and graph.h declare"
listed "$lists/core.txt" "$work/core.so" libdvbf-core
[ -n "$dvbf" ] || exit 0
declared "$headers"/*.h >"$work/dvbf"
exported "$dvbf" >"$work/dvbf.so"
same "$work/dvbf" "$work/dvbf.so" "libdvbf does not export what the headers declare"
comm -13 "$work/core" "$work/dvbf.so" >"$work/more.so"
listed "$lists/dvbf.txt" "$work/more.so" "libdvbf, besides core,"
