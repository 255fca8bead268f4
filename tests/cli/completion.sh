#!/usr/bin/env bash
# Completion as bash calls it: words of a command line in, what TAB would offer out.
# Usage: tests/cli/completion.sh DVBF
set -euo pipefail
dvbf=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }
"$dvbf" manual "$work/made"
# shellcheck disable=SC1091
source "$work/made/dvbf.bash"
complete -p dvbf | grep -q -- '-F _dvbf dvbf' || fail "dvbf is not completed by _dvbf"
mkdir -p "$work/here/a folder"
cd "$work/here"
touch data.h5

# tab WORD ...: what is offered for the last word, sorted, on one line.
tab() {
  COMP_WORDS=(dvbf "$@")
  COMP_CWORD=$#
  _dvbf
  printf '%s\n' "${COMPREPLY[@]}" | sort -u | paste -sd' '
}
expect() {
  local wanted=$1 given
  shift
  given=$(tab "$@")
  [ "$given" = "$wanted" ] || fail "dvbf $*: \"$given\" is offered, not \"$wanted\""
}
has() {
  local wanted=$1
  shift
  [[ " $(tab "$@") " == *" $wanted "* ]] || fail "dvbf $*: $wanted is not offered"
}

expect train tr
has --version ""
has reproduce help ""
expect --activation train --activ
expect "relu sigmoid tanh" train --activation ""
expect sigmoid train --activation = sig
expect "relu sigmoid tanh" train --activation =
has paper-pendulum train data.h5 --preset ""
expect "paper-ball paper-dkf-pendulum paper-pendulum paper-two-balls" reproduce ball --preset paper-
expect "--no-feedthrough" train --no-feedth
has on train --feedthrough ""
has data.h5 train --feedthrough ""
expect data.h5 train da
expect data.h5 train -o run da
expect "a folder" train -o ""
expect "" train --latent ""
expect data.h5 train --quiet da
expect data.h5 train --no-feedthrough da
expect "arm ball camera cart-pole dot pendulum planar textured-dot two-balls" simulate ""
expect "all ball pendulum two-balls zoo" reproduce ""
expect "" unknown ""

# Every option that help tells is offered.
commands=$("$dvbf" --help | sed -n '/^Commands/,/^$/s/^  \([a-z][a-z-]*\) .*/\1/p')
[ "$(wc -w <<<"$commands")" -ge 5 ] || fail "the overview lists only: $commands"
for command in $commands; do
  offered=" $(tab "$command" --) "
  options=$("$dvbf" help "$command" --all | sed -n 's/^ *\(-[a-z], \)\?\(--[a-z0-9-]*\) .*/\2/p')
  [ "$options" ] || fail "help of $command lists no option"
  for option in $options; do
    [[ $offered == *" $option "* ]] || fail "dvbf $command --: $option is not offered"
  done
done
