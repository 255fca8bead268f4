#!/usr/bin/env bash
# Manual pages: one for each command, with all that its help tells, the same bytes every time, and roff that groff
# takes without a warning. Without groff the last is left out and the test counts as skipped.
# docs/settings.md is the page of settings that the program writes.
# Usage: tests/cli/manual.sh DVBF
set -euo pipefail
dvbf=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }

"$dvbf" manual "$work/pages"
"$dvbf" manual "$work/again"
diff -r "$work/pages" "$work/again" || fail "two runs differ"
LC_ALL=C grep -P '[^\x00-\x7f]' "$work"/pages/* && fail "a page is not ASCII"
grep -n "$(date +%Y)" "$work"/pages/*.1 && fail "a page tells when it was made"

commands=$("$dvbf" --help | sed -n '/^Commands/,/^$/s/^  \([a-z][a-z-]*\) .*/\1/p')
[ "$(wc -w <<<"$commands")" -ge 5 ] || fail "the overview lists only: $commands"
[ "$(wc -w <<<"$commands")" -eq "$(find "$work/pages" -name 'dvbf-*.1' | wc -l)" ] || fail "pages do not match commands"

# Every option of the help stands on the page, with its explanation.
for command in $commands; do
  page=$work/pages/dvbf-$command.1
  plain=$(sed -e 's/\\f[BIR]//g' -e 's/\\-/-/g' -e 's/\\(aq/'"'"'/g' -e 's/\\(ti/~/g' -e 's/\\(ha/^/g' "$page")
  grep -qF "dvbf-$command(1)" <<<"$(sed -e 's/\\f[BIR]//g' -e 's/\\-/-/g' "$work/pages/dvbf.1")" ||
    fail "dvbf.1 does not name dvbf-$command"
  options=$("$dvbf" help "$command" --all | sed -n 's/^ *\(-[a-z], \)\?--\([a-z0-9-]*\) .*/\2/p')
  [ "$options" ] || fail "help of $command lists no option"
  for option in $options; do
    grep -qE -- "^(-[a-z], )?--$option( [A-Za-z]+)?$" <<<"$plain" || fail "$page does not explain --$option"
  done
done
grep -qF '[1, 1024]; default 3' "$work/pages/dvbf-train.1" || fail "no range and default of --latent"
grep -qxF ".SH EXAMPLES" "$work/pages/dvbf-train.1" || fail "no examples"
grep -qF 'paper\-pendulum' "$work/pages/dvbf-train.1" || fail "no preset"
for section in NAME SYNOPSIS DESCRIPTION COMMANDS "EXIT STATUS" FILES ENVIRONMENT EXAMPLES "SEE ALSO"; do
  grep -qxF ".SH $section" "$work/pages/dvbf.1" || fail "dvbf.1 lacks $section"
done

diff "$work/pages/settings.md" "$(dirname "$0")/../../docs/settings.md" ||
  fail "docs/settings.md is not what dvbf manual writes; copy that"

[ "$("$dvbf" manual 2>&1)" = "dvbf: usage: dvbf manual FOLDER" ] || fail "usage"

command -v groff >/dev/null || { echo "skipped: groff is not installed"; exit 77; }
for page in "$work"/pages/*.1; do
  groff -man -ww -rCHECKSTYLE=10 -Tascii -z "$page" 2>"$work/warnings" || fail "groff refuses $page"
  if [ -s "$work/warnings" ]; then cat "$work/warnings" >&2; fail "groff warns of $page"; fi
done
