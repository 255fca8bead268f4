#!/usr/bin/env bash
# The benchmark with twins that are played: it asks them and reports what they answer, leaves out who does not start or
# dies, and says so. Usage: tests/cli/bench.sh BENCH
set -euo pipefail
bench=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

fail() {
  echo "bench.sh: $1" >&2
  cat "$folder/out" "$folder/log" >&2
  exit 1
}

# Stands for an interpreter: SCRIPT [--variant compile] --serve. The eager PyTorch twin answers, the compiled one does not
# start, and JAX dies at its second question.
cat >"$folder/python" <<'END'
#!/usr/bin/env bash
case $* in *"--variant compile"*) exit 3 ;; esac
echo "played"
asked=0
while read -r what one _; do
  asked=$((asked + 1))
  case $*,$asked in *jax_twin*,2) exit 4 ;; esac
  case $what in
  update) echo 0.5 ;;
  memory) echo 900.0 ;;
  filter) for ((i = 0; i < one; i++)); do printf '1000 '; done && echo ;;
  esac
done
END
chmod +x "$folder/python"

"$bench" --quick --rounds 1 --only memory,filter --json "$folder/all.json" --peers /peers \
  --torch "$folder/python" --jax "$folder/python" >"$folder/out" 2>"$folder/log" || fail "status $?"
grep -Eq '^PyTorch eager +birnn +900 ' "$folder/out" || fail "the memory of the twin is not reported"
grep -Eq '^PyTorch script +1000\.00 +1000\.00 +1000\.00 ' "$folder/out" || fail "the filter of the twin is not reported"
grep -Eq '^dvbf +[0-9]' "$folder/out" || fail "the filter of ours is not reported"
[[ $(grep -c 'PyTorch compiled did not start' "$folder/log") == 1 ]] || fail "who did not start is not named once"
[[ $(grep -c 'JAX gave no answer to "memory"' "$folder/log") == 1 ]] || fail "who died is not named once"
grep -Eq '^(PyTorch compiled|JAX) ' "$folder/out" && fail "a twin that is not there is reported"
grep -q '"peak_mib": 900.0' "$folder/all.json" || fail "the JSON file lacks the twin's memory"

if "$bench" --only nothing >"$folder/out" 2>"$folder/log"; then fail "an unknown section was accepted"; fi
grep -q 'no section "nothing"' "$folder/log" || fail "an unknown section is not named"
