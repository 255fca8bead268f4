#!/usr/bin/env bash
# The benchmark of unattended training on tiny data: every system is made, trained on and judged, and so is a recording.
# Usage: tests/cli/unattended.sh SOURCE DVBF
set -euo pipefail
source=$1 build=$(dirname "$2")
/usr/bin/python3 -c 'import numpy' 2>/dev/null || { echo "skipped: python3-numpy is not installed"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

fail() {
  echo "unattended.sh: $1" >&2
  cat "$folder/out" "$folder/log" >&2
  exit 1
}

mkdir "$folder/recordings"
/usr/bin/python3 - "$folder/recordings/drive.npz" <<'END'
import sys
import numpy as np
random = np.random.default_rng(1)
u, y = random.standard_normal((330, 1)), np.zeros((330, 1))
for t in range(329):
    y[t + 1] = 0.8 * y[t] + u[t]
np.savez(sys.argv[1], u_train=u[:250], y_train=y[:250], u_test=u[250:], y_test=y[250:])
END

"$source/bench/unattended" --quick --seeds 1 --build "$build" --data "$folder/recordings" --json "$folder/all.json" \
  >"$folder/out" 2>"$folder/log" || fail "status $?"
for name in duffing wiener-hammerstein tanks two-link-arm six-joint-arm string linear switching drive; do
  [[ $(grep -c "^| $name |" "$folder/out") == 2 ]] || fail "$name is not in both tables"
done
for name in chords noisy-chords; do
  grep -Eq "^\| $name \| 1 \|" "$folder/out" || fail "$name is not reported"
done
grep -q 'gas-furnace: left out' "$folder/log" || fail "a recording that is not there is not named"
/usr/bin/python3 - "$folder/all.json" <<'END' || fail "the numbers are not those of the systems"
import json
import sys
of = {r["data"]: r for r in json.load(open(sys.argv[1]))["results"]}
assert len(of) == 11 and not any("failed" in r for r in of.values())
# The true model is better than the mean everywhere, and on noise-free chords the entropy is below a chain for each column.
for r in of.values():
    assert 0 < r["range"], r
    if "free_run" in r and "true" in r["free_run"]:
        assert r["free_run"]["true"]["rmse"] < r["free_run"]["mean"]["rmse"], r
        assert r["one_step"]["true"]["rmse"] < r["one_step"]["last"]["rmse"], r
# The recording has no noise, and the linear model finds that.
assert of["drive"]["one_step"]["linear"]["over_deviation"] < 0.01, of["drive"]
assert 0 < of["chords"]["nats"]["true"] < of["chords"]["nats"]["last"] < of["chords"]["nats"]["mean"], of["chords"]
END

if "$source/bench/unattended" --only nothing >"$folder/out" 2>"$folder/log"; then fail "an unknown system was accepted"; fi
grep -q 'there is no "nothing"' "$folder/log" || fail "an unknown system is not named"
