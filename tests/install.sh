#!/usr/bin/env bash
# What is installed serves a program under whatever prefix it is put, and still after it is moved: pkg-config
# finds headers and library there.
# Usage: tests/install.sh CMAKE BUILD_FOLDER COMPILER VERSION
set -euo pipefail
cmake=$1 build=$2 compiler=$3 version=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }

cat >"$work/program.c" <<'END'
#include <dvbf/dvbf.h>
#include <stdio.h>
int main(void) {
  dvbf_settings *settings = NULL;
  dvbf_error error;
  if (dvbf_settings_new(&settings, "train", &error)) return 1;
  dvbf_settings_free(settings);
  puts(DVBF_VERSION);
  return 0;
}
END

"$cmake" --install "$build" --prefix "$work/first" >/dev/null
for prefix in first moved; do
  [ $prefix = first ] || mv "$work/first" "$work/$prefix"
  folder=$(dirname "$(find "$work/$prefix" -name dvbf.pc)")
  export PKG_CONFIG_PATH=$folder
  grep -n "$work\|/usr" "$folder/dvbf.pc" && fail "dvbf.pc names a folder of the machine it was made on"
  "$compiler" "$work/program.c" -o "$work/program" $(pkg-config --cflags --libs dvbf)
  library=$(realpath "$(pkg-config --variable=libdir dvbf)")
  case $library in "$work/$prefix"/*) ;; *) fail "pkg-config finds the library in $library" ;; esac
  [ "$(LD_LIBRARY_PATH=$library "$work/program")" = "$version" ] || fail "the program does not run"
done
[ "$(realpath "$(pkg-config --variable=prefix dvbf)")" = "$work/moved" ] || fail "the prefix is wrong"
