#!/usr/bin/env bash
# What is installed serves programs in C and C++ under whatever prefix it is put, and still after it is moved, by
# pkg-config and by CMake. examples/robot.c links core alone, shared and static, and always finds the same beliefs.
# Usage: tests/cli/install.sh CMAKE BUILD SOURCES COMPILER VERSION
set -euo pipefail
cmake=$1 build=$2 sources=$3 compiler=$4 version=$5
work=$(mktemp -d)
# The list of what the user has installed from this build stays as it was.
list=$build/install_manifest.txt
[ ! -e "$list" ] || cp -p "$list" "$work/list"
trap 'rm -f "$list"; [ ! -e "$work/list" ] || cp -p "$work/list" "$list"; rm -rf "$work"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }
cd "$work"

"$cmake" --install "$build" --prefix "$work/first" >/dev/null
mv first moved
packages=$(dirname "$(find "$work/moved" -name dvbf-core.pc)")
export PKG_CONFIG_PATH=$packages
# CMake itself names /usr where that is the prefix, as /lib may be a link to /usr/lib.
prefix=$(sed -n 's/^CMAKE_INSTALL_PREFIX:PATH=//p' "$build/CMakeCache.txt")
folders=(-e "$work/first" -e "$build")
[ "$prefix" = /usr ] || folders+=(-e /usr)
grep -r -n "${folders[@]}" "$packages" "$packages/../cmake" &&
  fail "these files name a folder of the machine that they were made on"
case $(realpath "$(pkg-config --variable=libdir dvbf-core)") in
  "$work"/moved/*) ;; *) fail "pkg-config finds the library elsewhere" ;;
esac
[ "$(realpath "$(pkg-config --variable=prefix dvbf-core)")" = "$work/moved" ] || fail "the prefix is wrong"
[ "$(pkg-config --modversion dvbf-core)" = "$version" ] || fail "the version is wrong"
export LD_LIBRARY_PATH=$(realpath "$packages/..")

# Programs that use one header each, in both languages, and the program that a header begins with.
parts=core
[ ! -f "$packages/dvbf.pc" ] || parts="core dvbf"
languages=c
! command -v c++ >/dev/null || languages="c c++"
strict="-Wall -Wextra -pedantic -Werror"
for header in moved/include/dvbf/*.h; do
  package=dvbf
  case ${header##*/} in core.h | control.h | graph.h) package=dvbf-core ;; esac
  printf '#include <dvbf/%s>\n#include <stdio.h>\nint main(void) { return puts(dvbf_version()) < 0; }\n' \
    "${header##*/}" >one.c
  for language in $languages; do
    command=$compiler
    [ $language = c ] || command=c++
    $command -x $language $strict one.c -o one $(pkg-config --cflags --libs $package)
    [ "$(./one)" = "$version" ] || fail "a program in $language with $header does not run"
  done
  sed -n '/^ \*   #include/,/^ \*   }$/s/^ \*   //p' "$header" >top.c
  [ ! -s top.c ] || "$compiler" $strict top.c -o top $(pkg-config --cflags --libs $package)
done

# The robot by pkg-config, shared and static, and both parts by CMake.
"$compiler" $strict "$sources/examples/robot.c" -o robot-shared $(pkg-config --cflags --libs dvbf-core)
"$compiler" $strict "$sources/examples/robot.c" -o robot-static $(pkg-config --cflags dvbf-core) \
  "$LD_LIBRARY_PATH/libdvbf-core.a" $(pkg-config --static --libs-only-l dvbf-core | sed s/-ldvbf-core//)
mkdir cmake
cat >cmake/CMakeLists.txt <<END
cmake_minimum_required(VERSION 3.22)
project(program LANGUAGES C)
find_package(dvbf ${version%.*} REQUIRED COMPONENTS ${parts// /;})
add_executable(robot-cmake $sources/examples/robot.c)
target_link_libraries(robot-cmake dvbf::core)
add_executable(whole $work/one.c)
target_link_libraries(whole dvbf::${parts##* })
find_package(dvbf COMPONENTS legs)
if(dvbf_FOUND)
  message(FATAL_ERROR "There is no such part")
endif()
END
"$cmake" -S cmake -B cmake/build -DCMAKE_PREFIX_PATH="$work/moved" -DCMAKE_C_COMPILER="$compiler" >cmake.log 2>&1 ||
  { cat cmake.log; fail "find_package"; }
"$cmake" --build cmake/build >cmake.log 2>&1 || { cat cmake.log; fail "a program that CMake builds"; }
[ "$(cmake/build/whole)" = "$version" ] || fail "dvbf::${parts##* }"
cp cmake/build/robot-cmake .
for robot in robot-shared robot-static robot-cmake; do
  ! readelf -d $robot | grep -E 'hdf5|zip|lapack|cairo' || fail "$robot links more than core"
  ! ./$robot nowhere </dev/null 2>message || fail "$robot loads a model that is not there"
  grep -q '^nowhere: ' message || fail "$robot fails with: $(cat message)"
done

# Below DESTDIR, and gone again, but for what is not ours. The build is as it is (-o build).
make() { env -u MAKEFLAGS make -s -C "$sources" BUILD="$build" DESTDIR="$work/staged" "$@"; }
make -o build install >/dev/null
[ -e "staged$prefix/include/dvbf/core.h" ] || fail "DESTDIR is not heeded"
touch "staged$prefix/include/other.h"
make uninstall
left=$(find staged -not -type d -o -name 'dvbf*')
[ "$left" = "staged$prefix/include/other.h" ] || fail "uninstall leaves $left"
! make uninstall 2>message || fail "uninstalls twice"
grep -q 'install_manifest.txt is missing' message || fail "uninstalling twice fails with: $(cat message)"
[ "$parts" != core ] || exit 0

moved/bin/dvbf simulate pendulum -o data.h5 --train 20 --valid 4 --test 4 --steps 8 --size 4 2>/dev/null
moved/bin/dvbf train data.h5 -o run --preset pendulum --updates 4 --threads 1 >/dev/null 2>&1 || [ $? = 3 ]
for robot in robot-shared robot-static robot-cmake; do
  seq 0.01 0.01 1.7 | sed 's/^0.2/nan/' | ./$robot run/model.safetensors 3 >$robot.txt # ten steps of 16 + 1 numbers
  [ "$(wc -l <$robot.txt)" -gt 3 ] || fail "$robot has no beliefs"
  cmp robot-shared.txt $robot.txt
done
