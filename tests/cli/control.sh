#!/usr/bin/env bash
# dvbf control --follow: a control for every line, within limits and at once; lost observations; goals in files and as
# numbers; and a sentence for what cannot work.
# Usage: tests/cli/control.sh COMMAND
set -euo pipefail
dvbf=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }
cd "$work"

# A tank that a pump fills.
awk 'BEGIN { srand(3); print "level,flow,pump"; for (t = 0; t < 300; t++) { u = int(2 * rand()); a += 0.1 * (u - a); b = a * a;
  printf "%.4f,%.4f,%d\n", a + 0.01 * rand(), b + 0.01 * rand(), u } }' >data.csv
"$dvbf" train data.csv -o run --outputs level,flow --inputs pump --feedthrough off --search off --updates 30 --threads 1 --quiet --no-verdict
cut -d, -f1,2 data.csv | sed -n 2,41p >rows.csv
limits="--low 0 --high 1"

"$dvbf" control run --goal 0.5,0.25 $limits --follow --plan 8 <rows.csv >csv.out
[ "$(wc -l <csv.out)" = 41 ] || fail "not a line for each, and a header"
head -1 csv.out | grep -q '^step,u0,ready,cost,iterations,z0,' || fail "the header is $(head -1 csv.out)"
sed -n 2p csv.out | grep -q '^0,0,0,,0,,' || fail "there is a plan before the model has its frames: $(sed -n 2p csv.out)"
awk -F, 'NR > 1 && ($2 < 0 || $2 > 1) { exit 1 }' csv.out || fail "a control outside of its limits"
[ "$(awk -F, 'NR > 1 { n += $3 } END { print n }' csv.out)" -gt 5 ] || fail "no plans"
"$dvbf" control run --goal 0.5,0.25 $limits --follow --plan 8 <rows.csv | cmp - csv.out

# JSON has the plan; what is missing is survived.
awk -F, '{ printf "{\"x\": [%s, %s]}\n", $1, $2 }' rows.csv >rows.json
(cat rows.json; printf '{"x": null}\n{"x": [null, null]}\n{"x": [0.2, null]}\n') >gaps.json
"$dvbf" control run --goal 0.5,0.25 $limits --follow --plan 8 <gaps.json >json.out
[ "$(wc -l <json.out)" = 43 ] || fail "not a line of JSON for each"
tail -1 json.out | grep -q '"ready":true.*"plan":{"cost":.*"u":\[\[.*"z":\[\[' || fail "$(tail -1 json.out)"
grep -q -i nan json.out && fail "NaN in an answer"
printf '{"x": null}\n' | "$dvbf" control run --goal 0.5,0.25 $limits --follow | grep -q '"reason":"' || fail "no reason"
(sed 's/}/, "u": [1]}/' rows.json) | "$dvbf" control run --goal 0.5,0.25 $limits --follow --applied >applied.out
! cmp -s applied.out json.out || fail "the control that acted does not matter"

# Every line is answered before the next one comes.
mkfifo in out
"$dvbf" control run --goal 0.5,0.25 $limits --follow <in >out &
exec 3>in 4<out
for i in 1 2 3; do
  echo "0.1,0.1" >&3
  read -r -t 20 line <&4 || fail "no answer to line $i"
done
exec 3>&- 4<&-
wait

# A known state as the goal: the regression is that of the data. Of the velocity nothing is asked.
"$dvbf" simulate pendulum -o swing.h5 --train 30 --valid 10 --test 10 --steps 20 --size 6 --quiet
"$dvbf" train swing.h5 -o swing --preset pendulum --hidden 8 --updates 20 --gain-updates 0 --starts 1 --threads 1 --quiet --no-verdict || [ $? = 3 ]
printf '{"x": [%s]}\n' "$(seq -s, 0.01 0.01 0.36)" >frame.json
for i in 1 2 3 4 5 6 7 8; do cat frame.json; done >frames.json
state="--goal-space state --data swing.h5 --low -2 --high 2 --plan 4"
"$dvbf" control swing --goal 0,1,nan $state --follow <frames.json >state.out
tail -1 state.out | grep -q '"ready":true' || fail "no plan for a state: $(tail -1 state.out)"
"$dvbf" control swing --goal 1,0,nan $state --follow <frames.json | cmp -s - state.out && fail "another state is the same goal"

# learn-control takes the preset of its system, for data and training; flags win, and another system's preset is for training alone.
short="--quiet --force --train 40 --size 8 --updates 2 --hidden 8 --projection 0 --episodes 1 --horizon 4 --plan 2 --random-plans 0 --max-trainings 1"
"$dvbf" learn-control cart-pole -o held $short >held.out
grep -q 'trained on 40 sequences of 10 frames' held.out || fail "not the data of the preset: $(head -1 held.out)"
grep -q '^latent = 16$' held/settings.txt || fail "not the settings of the preset"
"$dvbf" learn-control cart-pole -o other --preset innovation-pendulum --steps 12 $short >other.out
grep -q 'trained on 40 sequences of 12 frames' other.out || fail "$(head -1 other.out)"
grep -q '^latent = 3$' other/settings.txt || fail "not the settings of another system's preset"
"$dvbf" learn-control cart-pole -o kept --keep-data on --trainings 2 --collect 3 $short --horizon 20 >kept.out
kept=$("$dvbf" info kept/data.h5 --json | sed -n 's/.*"sequences": *\([0-9]*\).*/\1/p' | head -1)
[ "$kept" -gt 40 ] || fail "closed loops are not among the data that are kept: $kept sequences"

# The controller as C, which gives the same controls.
"$dvbf" export run -o tank.c --goal 0.5,0.25 $limits --plan 6 --check 2>err || fail "$(cat err)"
grep -q 'int tank_control_step(' tank_control.h || fail "no controller was exported"
"$dvbf" export swing -o state.c --goal 0,1,nan $state --samples 0 --check 2>err || fail "$(cat err)"
! "$dvbf" export run -o tank.fmu --goal 0.5,0.25 $limits 2>err || fail "a controller as an FMU"
grep -q 'must end in .c' err || fail "$(cat err)"

# Refusals.
says() { # WORDS ARGUMENTS...
  words=$1
  shift
  ! "$dvbf" control "$@" <rows.csv >/dev/null 2>err || fail "taken: $*"
  grep -q -- "$words" err || fail "\"$words\" is not said: $(cat err)"
}
says "3 numbers" run --goal 1,2,3 $limits --follow
says "known states" run --goal 0.5 --goal-space state --data data.csv $limits --follow
says "regression" run --goal 0.5,0.25 --goal-space state $limits --follow
says "no such file" run --goal none.npz $limits --follow
says "swap or correct" run --goal 0.5,0.25 --low 1 --high 0 --follow
says "low and high" run --goal 0.5,0.25 --follow
says "--follow" run --goal 0.5,0.25 $limits
says "--goal" run $limits --follow
cut -d, -f1 data.csv >noinput.csv
"$dvbf" train noinput.csv -o blind --search off --updates 5 --threads 1 --quiet --no-verdict || [ $? = 3 ]
says "no controls" blind --goal 0.5 $limits --follow
