#!/usr/bin/env bash
# A library exports what its headers declare and what its list names, and libdvbf-core needs next to nothing. The lists are
# those of the Debian packages. Where a change is meant, DVBF_WRITE_SYMBOLS=1 ctest -R libraries writes them anew.
# Usage: tests/cli/libraries.sh SOURCES CORE_LIBRARY [DVBF_LIBRARY]
set -euo pipefail
export LC_ALL=C
sources=$1 core=$2 dvbf=${3-}
lists=$sources/debian/symbols headers=$sources/include/dvbf
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }

needed=$(readelf -d "$core" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
others=$(echo "$needed" | grep -v -E '^(libc|libm|libpthread|libjansson|ld-linux.*)\.so\.[0-9]+$' || true)
[ -z "$others" ] || fail "libdvbf-core needs $others"
# OpenBLAS waits for memory for ever where little address space is left, already when it is loaded.
for library; do
  case $library in *.so*) ! ldd "$library" | grep -E 'lib(blas|openblas|lapack)' || fail "$library loads a BLAS" ;; esac
done

# Whatever DVBF_API stands before, up to the parenthesis.
declared() { sed -n '/^DVBF_API/{s/(.*//;s/.*[ *]//;p}' "$@" | sort; }
exported() { nm -D --defined-only "$1" | awk '{print $3}' | sort; }
same() { diff -u "$1" "$2" || fail "$3"; }
# A line of a list is a function and the version that it came with. Lines that are there keep their version.
renew() { # LIST FOUND
  version=$(sed -n 's/^#define DVBF_VERSION "\(.*\)"/\1/p' "$headers/core.h")
  awk -v version="$version" 'NR == FNR { split($1, name, "@"); since[name[1]] = $2; next }
    { print " " $1 "@Base " ($1 in since ? since[$1] : version) }' "$1" "$2" >"$work/renewed"
  cp "$work/renewed" "$1"
}
listed() { # LIST FOUND LIBRARY
  [ -z "${DVBF_WRITE_SYMBOLS-}" ] || renew "$1" "$2"
  sed 's/^ \(.*\)@Base .*/\1/' "$1" >"$work/listed"
  same "$work/listed" "$2" "$3 does not export what $1 lists; if that is meant: DVBF_WRITE_SYMBOLS=1 ctest -R libraries"
}

declared "$headers"/{core,control,graph}.h >"$work/core"
exported "$core" >"$work/core.so"
same "$work/core" "$work/core.so" "libdvbf-core does not export what core.h, control.h and graph.h declare"
listed "$lists/core" "$work/core.so" libdvbf-core
[ -n "$dvbf" ] || exit 0
declared "$headers"/*.h >"$work/dvbf"
exported "$dvbf" >"$work/dvbf.so"
same "$work/dvbf" "$work/dvbf.so" "libdvbf does not export what the headers declare"
comm -13 "$work/core" "$work/dvbf.so" >"$work/more.so"
listed "$lists/dvbf" "$work/more.so" "libdvbf, besides core,"
