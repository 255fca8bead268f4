#!/usr/bin/env bash
# Processes that mpirun starts train one model to the bytes of a single one: with other numbers of them and of threads, on
# data that stay in their file and on data with gaps, killed and gone on with by another number, stopped by a signal.
# Failures end all of them with one sentence. Usage: tests/cli/ranks.sh DVBF PLUGIN   (exit status 77: MPI is not there)
set -euo pipefail
dvbf=$1 plugin=${2-} mpirun=${MPIRUN:-mpirun}
skip() { echo "skipped: $*"; exit 77; }
fail() { echo "FAILED: $*" >&2; cat err >&2 2>/dev/null || true; exit 1; }
[ -n "$plugin" ] && [ -f "$plugin" ] || skip "the plug-in for MPI was not built, as MPI is not installed (libopenmpi-dev)"
command -v "$mpirun" >/dev/null || skip "$mpirun is not installed (openmpi-bin)"
folder=$(mktemp -d)
process=
finish() {
  [ -z "$process" ] || kill -KILL $process 2>/dev/null || true
  rm -rf "$folder"
}
trap finish EXIT
cd "$folder"
# For Open MPI in a container: root, more processes than cores, a signal that leaves time for a checkpoint, no banner, and
# no word of hwloc about a missing /sys.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 \
  OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_odls_base_sigkill_timeout=2 OMPI_MCA_orte_execute_quiet=1 \
  OMPI_MCA_hwloc_base_binding_policy=none HWLOC_HIDE_ERRORS=2 DVBF_MPI=$plugin DVBF_MPIRUN=$mpirun DVBF_PATIENCE=60
ranks() { timeout -k 5 200 "$mpirun" -n "$@" 2>err; } # NUMBER COMMAND...
results() { cat "$1/model.safetensors"; cut -d, -f1,2,4- "$1/metrics.csv"; }
same() { cmp <(results "$1") <(results "$2") || fail "$2 differs from $1"; }

"$dvbf" simulate pendulum -o data.h5 --train 60 --valid 60 --test 5 --seed 2 2>/dev/null
# Some readings are missing.
awk 'BEGIN { print "t,u,y"; for (i = 0; i < 600; i++) { x = 0.9 * x + 0.3 * sin(i / 7)
  print i "," sin(i / 7) "," (i % 11 == 3 ? "" : x) } }' >gaps.csv
small=(--hidden 16 --shard-size 4 --validate-every 10 --updates 30 --quiet --no-verdict)
pictures=("$dvbf" train data.h5 "${small[@]}" --batch-size 30 --systems 4 --memory 0)
filter=("$dvbf" train gaps.csv "${small[@]}" --outputs y --inputs u --window 20 --batch-size 18 --model dkf)

"${pictures[@]}" -o alone --threads 2
"${filter[@]}" -o alone-dkf --threads 1
for n in 2 3; do
  ranks "$n" "${pictures[@]}" -o "run$n" --threads $((n - 1)) || fail "$n ranks"
  [ ! -s err ] || fail "something was printed"
  same alone "run$n"
  ranks "$n" "${filter[@]}" -o "dkf$n" --threads $((4 - n)) || fail "$n ranks"
  same alone-dkf "dkf$n"
done
# Data of several chunks, of which each rank measures its share, and which are read in runs.
{ printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "{'descr': '|u1', 'fortran_order': False, 'shape': (11000, 8, 14, 14), }"
  awk 'BEGIN { for (i = 0; i < 300000; i++) print "frames with some text in them" }'; } >chunks.npy
truncate -s $((128 + 11000 * 8 * 14 * 14)) chunks.npy
chunks=("$dvbf" train chunks.npy "${small[@]}" --memory 0 --updates 12 --batch-size 20 --latent 4 --read-run 6)
"${chunks[@]}" -o alone-chunks --threads 2
"${chunks[@]}" -o memory-chunks --threads 1 --memory 200
same alone-chunks memory-chunks
ranks 3 "${chunks[@]}" -o chunks3 --threads 1 || fail "3 ranks on chunks"
same alone-chunks chunks3
# The command starts them itself.
"${pictures[@]}" --ranks 2 --threads 1 -o own 2>err || fail "--ranks"
same alone own

# What is made of a model, and a search. Frames stay in their file, values are missing.
alike() { # NAME RANKS COMMAND...: prints and writes the same as alone
  "${@:3}" -o "$1-1.npz" --threads 2 --quiet >"$1-1" 2>err || fail "$1"
  ranks "$2" "${@:3}" -o "$1-$2.npz" --threads 1 --quiet >"$1-$2" || fail "$1 by $2 ranks"
  [ ! -s err ] || fail "something was printed by $1"
  cmp "$1-1" "$1-$2" && cmp "$1-1.npz" "$1-$2.npz" || fail "$1 by $2 ranks differs"
}
alike predicted 3 "$dvbf" predict alone data.h5 --observe 5 --memory 0 --verdict
alike smoothed 2 "$dvbf" smooth alone-dkf gaps.csv --split all --particles 20 --samples 5
"$dvbf" evaluate alone data.h5 --split valid --samples 2 --particles 5 --threads 1 >evaluated
ranks 2 "$dvbf" evaluate alone data.h5 --split valid --samples 2 --particles 5 --memory 0 >evaluated-2 || fail "evaluate"
cmp evaluated evaluated-2 || fail "evaluation by 2 ranks differs"
searching=("$dvbf" train gaps.csv "${small[@]}" --outputs y --inputs u --window 20 --batch-size 16 --search on --candidates 3
  --members 2)
"${searching[@]}" -o searched --threads 2
ranks 2 "${searching[@]}" -o searched-2 --threads 1 || fail "a search by 2 ranks"
"$mpirun" -n 3 "${searching[@]}" -o searched-3 --threads 1 2>err &
process=$!
for i in $(seq 400); do [ -d searched-3/search ] && break; sleep 0.05; done
kill -TERM $process 2>/dev/null || true
wait $process || true
process=
ranks 2 "${searching[@]}" -o searched-3 --threads 1 --resume || fail "going on with a search"
for n in 2 3; do
  cmp searched/search.csv "searched-$n/search.csv" && cmp searched/model.safetensors "searched-$n/model.safetensors" ||
    fail "a search by ranks differs"
done

# A search in which a learned candidate wins, as the input changes the sign of y.
awk 'BEGIN { print "u,y"; y = 1; for (i = 0; i < 600; i++) { u = i * 7919 % 101 % 2 ? 1 : -1; print u "," y; y = 0.95 * u * y + 0.3 } }' >product.csv
learning=("$dvbf" train product.csv "${small[@]}" --outputs y --inputs u --window 12 --batch-size 32 --learning-rate 0.01 --latent 3
  --systems 4 --updates 120 --validate-every 60 --search on --candidates 2)
"${learning[@]}" -o learned --threads 2
awk -F, '$9 == 1 && $2 != "linear" { won = 1 } END { exit !won }' learned/search.csv || fail "no learned candidate wins"
ranks 2 "${learning[@]}" -o learned-2 --threads 1 || fail "a search by 2 ranks in which a learned candidate wins"
cmp learned/search.csv learned-2/search.csv && cmp learned/model.safetensors learned-2/model.safetensors || fail "a search by ranks differs"

# A signal: a checkpoint, from which another number goes on.
long=("${pictures[@]}" --updates 4000 --validate-every 1000)
"$mpirun" -n 3 "${long[@]}" -o stopped --threads 1 2>err &
process=$!
for i in $(seq 200); do [ -s stopped/metrics.csv ] && break; sleep 0.05; done
sleep 0.3
kill -TERM $process
status=0
wait $process || status=$?
process=
[ $status != 0 ] && grep -q "stopped by SIGTERM after" err || fail "SIGTERM gave exit status $status"
[ -s stopped/checkpoint.safetensors ] || fail "no checkpoint after SIGTERM"

# A rank that is killed: the others end within seconds.
killed=("${pictures[@]}" --updates 300 --checkpoint-every 0.05 -o killed --resume)
"${pictures[@]}" --updates 300 -o long --threads 2
for n in 2 3; do
  rm -f pid*
  before=$(stat -c %Y.%i killed/checkpoint.safetensors 2>/dev/null || true)
  "$mpirun" -n "$n" sh -c 'echo $$ >"pid${OMPI_COMM_WORLD_RANK:-$PMI_RANK}"; exec "$@"' sh "${killed[@]}" --threads 1 2>err &
  process=$!
  for i in $(seq 400); do
    [ "$(stat -c %Y.%i killed/checkpoint.safetensors 2>/dev/null || true)" = "$before" ] || break
    sleep 0.05
  done
  kill -KILL "$(cat "pid$((n - 2))")" 2>/dev/null || true
  timeout 30 tail --pid=$process -f /dev/null || fail "ranks live on after one was killed"
  wait $process || true
  process=
done
# A full disk: one sentence, and the checkpoint stays as it was. (No file may grow beyond some kilobytes, not even those by
# which UCX shares memory.)
cp killed/checkpoint.safetensors checkpoint-before
UCX_TLS=tcp,self ranks 3 sh -c "trap '' XFSZ; ulimit -f 32; exec \"\$@\"" sh "${killed[@]}" --threads 1 && fail "a full disk goes unnoticed"
[ "$(grep -c '^dvbf: .*killed/' err)" = 1 ] || fail "a full disk is told of $(grep -c '^dvbf: ' err) times"
cmp checkpoint-before killed/checkpoint.safetensors || fail "a full disk has changed the checkpoint"
ranks 2 "${killed[@]}" --threads 2 || fail "going on after kills"
same long killed

# A file that one rank cannot read any more ends all of them.
cp chunks.npy chunks-1.npy
"$mpirun" -n 2 sh -c 'd=chunks.npy; [ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 0 ] || d=chunks-1.npy; cmd=$1; shift 3; exec "$cmd" train $d "$@"' \
  sh "${chunks[@]}" --updates 100000 --checkpoint-every 0 -o cut --threads 1 2>err &
process=$!
for i in $(seq 400); do [ -s cut/checkpoint.safetensors ] && break; sleep 0.05; done
truncate -s 1000000 chunks-1.npy
timeout 60 tail --pid=$process -f /dev/null || fail "ranks go on without their data"
status=0
wait $process || status=$?
process=
[ $status != 0 ] && [ "$(grep -c '^dvbf: .*chunks-1.npy' err)" = 1 ] || fail "data that were cut off are told of $(grep -c '^dvbf: ' err) times"

# Failures: one sentence, an exit status, no rank that waits for ever.
ranks 2 "$dvbf" train data.h5 -o bad --hidden nothing && fail "a bad value is accepted"
[ "$(grep -c '^dvbf: ' err)" = 1 ] || fail "a bad value is told $(grep -c '^dvbf: ' err) times"
ranks 2 "${pictures[@]}" -o alone && fail "an existing run is replaced"
[ "$(grep -c '^dvbf: ' err)" = 1 ] || fail "an existing run is told of $(grep -c '^dvbf: ' err) times"
status=0
ranks 2 sh -c 'd=data.h5; [ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 0 ] || d=none.h5; cmd=$1; shift 3; exec "$cmd" train $d "$@"' \
  sh "${pictures[@]}" -o unread || status=$?
[ $status != 0 ] && [ "$(grep -c '^dvbf: rank 1 on .*none.h5' err)" = 1 ] || fail "a rank cannot read its data: $status"
ranks 2 sh -c 'd=data.h5; [ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 0 ] || d=none.h5; exec "$1" evaluate alone $d' sh "$dvbf" &&
  fail "a rank without data evaluates"
[ "$(grep -c '^dvbf: rank 1 on .*none.h5' err)" = 1 ] || fail "a rank that cannot read is not told of"
ranks 2 "$dvbf" predict alone data.h5 --quiet -o nowhere/out.npz >/dev/null && fail "a file in no folder is written"
[ "$(grep -c '^dvbf: .*nowhere' err)" = 1 ] || fail "a file that cannot be written is told of $(grep -c '^dvbf: ' err) times"
echo "1, 2 and 3 ranks: the same bytes"
