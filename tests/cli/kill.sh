#!/usr/bin/env bash
# Kills runs at random moments and goes on with --resume: the result must be that of a run left in peace.
# Usage: tests/cli/kill.sh DVBF KILLS UPDATES
set -euo pipefail
dvbf=$1 kills=$2 updates=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
RANDOM=1

milliseconds() { echo $(($(date +%s%N) / 1000000)); }
results() { cat "$1/model.safetensors"; cut -d, -f1,2,4- "$1/metrics.csv"; }

"$dvbf" simulate pendulum -o data.h5 --train 40 --valid 10 --test 10 --seed 2 2>/dev/null
train=("$dvbf" train data.h5 --hidden 16 --systems 4 --batch-size 20 --shard-size 5 --validate-every 40 --updates "$updates"
  --starts 2 --restart-above 0 --checkpoint-every 0.02 --quiet --no-verdict)
"${train[@]}" -o peace --threads 2
begin=$(milliseconds)
"${train[@]}" -o nothing --updates 0
start_up=$(($(milliseconds) - begin))

done=0 runs=0
while ((done < kills)); do
  # From the middle of start-up to a few checkpoints later.
  wait_for=$((start_up / 2 + RANDOM % (start_up + 100)))
  "${train[@]}" -o "run$runs" --resume --threads $((1 + RANDOM % 2)) 2>>errors.txt &
  process=$!
  sleep "$((wait_for / 1000)).$(printf %03d $((wait_for % 1000)))"
  kill -KILL $process 2>/dev/null || true
  status=0
  wait $process 2>/dev/null || status=$?
  case $status in
  137) done=$((done + 1)) ;;
  0) # it came to its end first: on with another one
    cmp <(results peace) <(results "run$runs") || { echo "run$runs differs"; exit 1; }
    runs=$((runs + 1)) ;;
  *)
    echo "after $done kills: exit status $status"
    cat errors.txt
    exit 1 ;;
  esac
done
"${train[@]}" -o "run$runs" --resume --threads 1
cmp <(results peace) <(results "run$runs") || { echo "run$runs differs"; exit 1; }
[ "$(ls "run$runs" | sort | tr '\n' ' ')" = "checkpoint.safetensors data.json metrics.csv model.safetensors settings.txt " ] ||
  { echo "files are left:"; ls "run$runs"; exit 1; }
echo "$done kills in $((runs + 1)) runs, start-up $start_up ms: the same bytes"
