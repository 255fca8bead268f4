#!/usr/bin/env bash
# Runs the commands of README.md and docs/manual.md in their order, on small data of the same shape and with few updates. NPZ
# files come from `dvbf sample`: the Python of the manual is not run here. Then checks that every flag and setting that a
# document names exists.
# Usage: tests/cli/documents.sh DVBF SOURCE
set -euo pipefail
dvbf=$(realpath "$1") source=$(realpath "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
fail() { echo "FAILED: $*" >&2; exit 1; }

# Two tanks: a recording to train on and one to test, as bench/tanks writes them.
awk 'BEGIN {
  print "split,time,voltage [V],level [V]"
  for (i = 0; i < 2; i++) for (t = 0; t < 400; t++) {
    u = i ? 3 + 2 * cos(t / 23) * sin(t / 31) : 3 + 2 * sin(t / 17) * cos(t / 41)
    printf "%s,%d,%.5g,%.5g\n", i ? "test" : "train", 4 * t, u, y[i]
    x[i] += 0.1 * (u - x[i]); y[i] += 0.1 * (x[i] - y[i])
  }
}' >tanks.csv

quick=(--threads 1 --quiet)
"$dvbf" train tanks.csv --outputs level,voltage --inputs none -o maker --search off --updates 5 --gain-updates 5 --no-verdict "${quick[@]}"
for file in mine masked; do "$dvbf" sample maker --count 60 --steps 70 -o $file.npz "${quick[@]}"; done

run_commands() { # those of standard input
  local line words
  while IFS= read -r line; do
    read -ra words <<<"${line%%   *}"
    [ "${words[0]}" = dvbf ] || fail "not a command of ours: $line"
    case "${words[1]}" in
      train)
        words+=(--no-verdict) # so few updates make a useless model
        [[ $line == *--resume* ]] || words+=(--updates 20 --gain-updates 5 --candidates 2) ;;
      smooth) words+=(--particles 10 --samples 5) ;;
    esac
    [ "${words[1]}" = info ] || words+=(--threads 1)
    "$dvbf" "${words[@]:1}" >output 2>&1 || { cat output >&2; fail "$line"; }
    count=$((count + 1))
  done
}

count=0
run_commands < <(sed -n '/^## Quick start/,/^## What/s/^    \(dvbf .*\)/\1/p' "$source/README.md")
[ $count = 3 ] || fail "$count commands were found in README.md"
rm forecast.csv states.csv
run_commands < <(sed -n '/^```sh$/,/^```$/{/^```/d;p}' "$source/docs/manual.md")
[ $count -ge 13 ] || fail "only $count commands were found"
for file in tanks/model.safetensors mine/model.safetensors forecast.csv next.csv states.csv latent.npz smooth.npz samples.npz report.html; do
  [ -s $file ] || fail "$file was not written"
done

# Flags: those of help, recipes, and those of other programs.
other=(bind-to build cpus-per-task map-by mpi nodes ntasks-per-node requeue signal target test-dir                # MPI, CMake
  demo first keep models only processor quick reference row skip study twice)                                     # our scripts
names() {
  local command
  for command in $("$dvbf" help | sed -n '/^Commands/,/^$/s/^  \([a-z][a-z-]*\) .*/\1/p'); do
    "$dvbf" help "$command" --all | grep -oE -- '--[a-z0-9-]+'
  done
  "$dvbf" help | grep -oE -- '--[a-z-]+'
  sed -n 's/^[A-Z_]*([a-z_0-9]*, "\([a-z0-9-]*\)".*/--\1/p' "$source"/src/*/*.def
  printf -- '--%s\n' "${other[@]}" version
}
names | sort -u >known
[ "$(wc -l <known)" -gt 150 ] || fail "only $(wc -l <known) flags were found in help"
documents=("$source"/*.md "$source"/docs/*.md "$source"/bench/SPEED.md)
{
  grep -ohE -- '(^|[ `(|])--[a-z][a-z0-9-]+' "${documents[@]}" | grep -oE -- '--.*'
  grep -ohE '`[a-z][a-z0-9-]+ = [^`]*`' "${documents[@]}" | sed 's/`\([^ ]*\) .*/--\1/' | grep -v -- '^--name$'
} | sort -u | comm -23 - known | while read -r flag; do
  grep -qx -- "--${flag#--no-}" known || echo "$flag"
done >unknown
[ ! -s unknown ] || fail "no command has $(paste -sd ' ' unknown): $(grep -lF -- "$(head -1 unknown)" "${documents[@]}" | head -1)"
