#!/usr/bin/env bash
# From five CSV files as people have them to a forecast as CSV, each in two commands as README and --help show them.
# Usage: tables.sh DVBF
set -euo pipefail
dvbf=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
fail() { echo "tables: $1" >&2; exit 1; }

# A tank with a pump: the level follows the voltage. $1: a format of awk for a row of t, voltage, level; $2: rows; $3: the
# first t, 0 if it is not given
tank() {
  awk -v form="$1" -v rows="$2" -v first="${3:-0}" 'BEGIN {
    srand(3); u = 0; y = 0
    for (t = 0; t < rows; t++) {
      if (t % 15 == 0) u = int(100 * rand()) / 100
      printf form "\n", first + t, u, y
      y = 0.8 * y + 0.4 * u + 0.01 * (rand() - 0.5)
    }
  }'
}

# Names of columns, inputs by their names.
{ echo time,pump,level; tank '%d,%.2f,%.4f' 240; } >plain.csv
# Semicolons and decimal commas, as a spreadsheet exports them in many countries.
{ echo 'Zeit;Spannung;Pegel'; tank '%d;%.2f;%.4f' 240 | tr . ,; } >excel.csv
# No header: columns by number.
tank '%d,%.2f,%.4f' 240 >bare.csv
# Planned inputs behind the last output.
{ echo time,pump,level; tank '%d,%.2f,%.4f' 240; tank '%d,%.2f,' 20 240 | sed 's/,[0-9.-]*$/,/'; } >planned.csv
# Several runs, told apart by a column.
{ echo sequence,pump,level
  for run in 1 2 3 4 5 6 7 8 9 10 11 12; do tank '%d,%.2f,%.4f' 40 | sed "s/^[0-9]*/$run/"; done
} >runs.csv

train="--updates 20 --search off --hidden 8 --latent 2 --starts 1 --no-verdict --quiet"
# Columns of forecast $1, its rows, first step and the names in its first line.
check() { # FILE ROWS FIRST NAMES
  [ "$(head -1 "$1")" = "$4" ] || fail "$1 begins with $(head -1 "$1"), not $4"
  [ "$(($(wc -l <"$1") - 1))" = "$2" ] || fail "$1 has $(($(wc -l <"$1") - 1)) rows, not $2"
  [ "$(sed -n 2p "$1" | cut -d, -f4)" = "$3" ] || fail "$1 begins at step $(sed -n 2p "$1" | cut -d, -f4), not $3"
  sed 1d "$1" | grep -q nan && fail "$1 holds nan"
  return 0
}
heads() { # OUTPUT INPUT
  echo "sequence,name,split,step,time,$1,$1_std,$1_q05,$1_q50,$1_q95,$1_true,$2"
}

# shellcheck disable=SC2086 # several words
{
  "$dvbf" train plain.csv -o plain --outputs level --inputs pump $train
  "$dvbf" predict plain plain.csv --from end --steps 30 --controls hold -o plain-forecast.csv --quiet
  check plain-forecast.csv 30 240 "$(heads level pump)"

  "$dvbf" train excel.csv -o excel --outputs Pegel --inputs Spannung $train
  "$dvbf" predict excel excel.csv --from end --steps 30 --controls hold -o excel-forecast.csv --quiet
  check excel-forecast.csv 30 240 "$(heads Pegel Spannung)"

  "$dvbf" train bare.csv -o bare --outputs 3 --inputs 2 $train
  "$dvbf" predict bare bare.csv --from end --steps 30 --controls hold -o bare-forecast.csv --quiet
  check bare-forecast.csv 30 240 "$(head -1 bare-forecast.csv)"
  [ "$(head -1 bare-forecast.csv | tr , '\n' | wc -l)" = 12 ] || fail "bare-forecast.csv has other columns"

  "$dvbf" train planned.csv -o planned --outputs level --inputs pump --missing nan $train
  "$dvbf" predict planned planned.csv --from end -o planned-forecast.csv --quiet
  check planned-forecast.csv 20 240 "$(heads level pump)"
  paste -d' ' <(sed 1d planned-forecast.csv | cut -d, -f12) <(tail -20 planned.csv | cut -d, -f2) |
    awk '$1 != $2 + 0 { exit 1 }' || fail "the planned inputs are others"

  "$dvbf" train runs.csv -o runs --outputs level --inputs pump $train
  "$dvbf" predict runs runs.csv --from end --steps 5 --controls zero -o runs-forecast.csv --quiet
  check runs-forecast.csv 60 40 "$(heads level pump)"
  [ "$(sed 1d runs-forecast.csv | cut -d, -f1 | sort -u | wc -l)" = 12 ] || fail "not every run has a forecast"
}
# The forecast knows the level: it goes on near where the recording ends.
awk -F, 'NR == 2 { exit !($6 > -1 && $6 < 3) }' plain-forecast.csv || fail "the forecast begins far away"
echo "five tables, ten commands"
