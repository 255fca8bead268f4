#!/usr/bin/env bash
# dvbf filter --follow: CSV and JSON lines say the same, a missing value is survived, every line is answered at once, and
# what is wrong is said with the number of its line.
# Usage: tests/cli/follow.sh COMMAND
set -euo pipefail
dvbf=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }
cd "$work"

# A recording of two sensors and a control.
awk 'BEGIN { srand(3); print "level,flow,pump"; for (t = 0; t < 300; t++) { u = int(2 * rand()); a += 0.1 * (u - a); b = a * a;
  printf "%.4f,%.4f,%d\n", a + 0.01 * rand(), b + 0.01 * rand(), u } }' >data.csv
"$dvbf" train data.csv -o run --outputs level,flow --inputs pump --search off --updates 30 --threads 1 --quiet --no-verdict
sed -n 2,41p data.csv >rows.csv

"$dvbf" filter run --follow --ahead 2 --samples 20 --quantiles 0.1,0.9 <rows.csv >csv.out
[ "$(wc -l <csv.out)" = 41 ] || fail "not a line for each, and a header"
head -1 csv.out | grep -q '^step,z0,.*z0_std,.*,x0+1,x1+1,x0+1_std,x1+1_std,x0+1_q0.1,x1+1_q0.1,x0+1_q0.9,x1+1_q0.9,x0+2,' ||
  fail "the header is $(head -1 csv.out)"
tail -1 csv.out | grep -q ',,' && fail "the last line has gaps: $(tail -1 csv.out)"
sed -n 2p csv.out | grep -q '^0,,' || fail "there is a belief before the model has its frames"

# The header names the columns, in any order, and others beside them.
awk -F, '{ print NR "," $3 "," $2 "," $1 }' rows.csv | sed '1i time,pump,flow,level' >named.csv
"$dvbf" filter run --follow --ahead 2 --samples 20 --quantiles 0.1,0.9 <named.csv >named.out
head -1 named.out | grep -q ',level+1,flow+1,' || fail "names are lost: $(head -1 named.out)"
cmp <(sed 1d csv.out) <(sed 1d named.out)

# JSON lines, the same numbers. JSON has the digits of CSV.
awk -F, '{ printf "{\"x\": [%s, %s], \"u\": [%s]}\n", $1, $2, $3 }' rows.csv >rows.json
"$dvbf" filter run --follow --ahead 2 --samples 20 --quantiles 0.1,0.9 <rows.json >json.out
[ "$(wc -l <json.out)" = 40 ] || fail "not a line of JSON for each"
head -1 json.out | grep -q '"ready":false' || fail "$(head -1 json.out)"
x=$(tail -1 csv.out | cut -d, -f "$(($(head -1 csv.out | tr , '\n' | grep -n '^x0+2$' | cut -d: -f1)))")
tail -1 json.out | grep -q "${x%?????}" || fail "JSON and CSV differ: $x is not in $(tail -1 json.out)"
"$dvbf" filter run --follow --json <rows.csv >mixed.out
head -1 mixed.out | grep -q '^{"step":0' || fail "--json"

# Announced controls change what is forecast; what is held does not.
(cat rows.json; echo '{"x": [0.1, 0.1], "u": [1]}') >held.json
(cat rows.json; echo '{"x": [0.1, 0.1], "u": [1], "future": [[1], [1]]}') >same.json
(cat rows.json; echo '{"x": [0.1, 0.1], "u": [1], "future": [[0], [0]]}') >other.json
for name in held same other; do "$dvbf" filter run --follow --ahead 3 <$name.json | tail -1 >$name.out; done
cmp held.out same.out
! cmp -s held.out other.out || fail "future controls do not matter"

# Missing values, whole frames and controls.
(head -30 rows.csv; printf ',0.2,1\nnan,NA,\n\n,,0\n0.3,0.1,1\n') | "$dvbf" filter run --follow >gaps.out
[ "$(wc -l <gaps.out)" = 35 ] || fail "gaps: $(wc -l <gaps.out) lines"
grep -q -i nan gaps.out && fail "a gap shows in the answers"
echo '{"x": null}' | "$dvbf" filter run --follow | grep -q '"ready":false' || fail "a frame that is missing in JSON"

# Every line is answered before the next one comes.
mkfifo in out
"$dvbf" filter run --follow <in >out &
exec 3>in 4<out
read -r -t 1 line <&4 && fail "an answer to nothing: $line"
for i in 1 2 3; do
  sed -n "${i}p" rows.csv >&3
  [ $i != 1 ] || read -r -t 20 line <&4 || fail "no header"
  read -r -t 20 line <&4 || fail "line $i is not answered"
  [ "${line%%,*}" = $((i - 1)) ] || fail "line $i: $line"
done
exec 3>&-
wait $! || fail "it does not end with its input"
exec 4<&-

refused() { # STATUS SENTENCE ARGUMENTS...
  local status=$1 sentence=$2
  shift 2
  set +e
  "$dvbf" filter "$@" >/dev/null 2>message
  local got=$?
  set -e
  [ $got = "$status" ] || fail "$*: status $got"
  grep -q -e "$sentence" message || fail "$*: $(cat message)"
}
refused 1 'standard input, line 2: "a" is not a number' run --follow < <(printf '1,2,3\n1,a,3\n')
refused 1 'line 1: has 2 fields instead of 3' run --follow < <(printf '1,2\n')
refused 1 'line 1: is not an object such as' run --follow < <(printf '{"x": \n')
refused 1 'line 2: "x" has 1 numbers instead of 2' run --follow < <(printf '{"x": [1, 2]}\n{"x": 1}\n')
refused 1 '"future" contains a value' run --follow < <(printf '{"x": [1, 2], "future": [null]}\n')
refused 2 '--ahead -1: must be' run --follow --ahead=-1 </dev/null
refused 2 '--quantiles 2: must be' run --follow --quantiles 2 </dev/null
refused 2 'replaces DATA' run data.csv --follow </dev/null
refused 2 'DATA is missing' run </dev/null
refused 1 'contains no model' . --follow </dev/null
"$dvbf" filter run --follow </dev/null >empty.out && [ ! -s empty.out ] || fail "no input, no output"
