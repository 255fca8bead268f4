#!/usr/bin/env bash
# Two reports as a reader meets them, of pictures and of sensors, in Chromium over the WebDriver protocol: no error, no
# request, the latent space turns and changes its colours, the video plays, stops and follows its slider, signals and
# diagrams follow their lists, everything fits narrow windows and paper.
# Usage: tests/cli/browser.sh DVBF [FOLDER]   (FOLDER receives the reports and screenshots; without it they are thrown away;
# reports that are there are kept: report.html of pictures, sensors.html of sensors)
set -euo pipefail
dvbf=$1
for program in chromedriver chromium curl jq; do
  command -v "$program" >/dev/null || { echo "skipped: $program is not installed"; exit 77; }
done

work=$(mktemp -d)
driver=
session=
finish() {
  if [ -n "$session" ]; then curl -s -m 10 -X DELETE "$server/session/$session" >/dev/null || true; fi
  if [ -n "$driver" ]; then kill "$driver" 2>/dev/null || true; wait "$driver" 2>/dev/null || true; fi
  rm -rf "$work"
}
trap finish EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }
folder=${2:-$work}
mkdir -p "$folder"

# ---- Two small reports ----

tiny="--hidden 8 --systems 4 --updates 20 --batch-size 20 --starts 1 --threads 1 --quiet --no-verdict --search off"
page=$folder/report.html
if [ ! -e "$page" ]; then
  "$dvbf" simulate pendulum -o "$work/data.h5" --train 50 --valid 10 --test 40 --quiet
  # shellcheck disable=SC2086
  "$dvbf" train "$work/data.h5" -o "$work/run" $tiny
  "$dvbf" report "$work/run" "$work/data.h5" -o "$page" --threads 1 --quiet
fi
bytes=$(wc -c <"$page")
[ "$bytes" -lt 5000000 ] || fail "the report has $bytes bytes"

# Six columns, two inputs, recordings of different lengths with gaps, names that try to break out.
sensors=$folder/sensors.html
if [ ! -e "$sensors" ]; then
  awk 'BEGIN { srand(1); print "sequence,</script>,b,c,d,e,f,u0,u1"
    for (i = 0; i < 24; i++) { z = 0
      for (t = 0; t < 60 + i; t++) { u = sin(t / 5 + i); z = 0.9 * z + 0.2 * u; printf "%d", i
        for (k = 0; k < 6; k++) printf (k == 2 && t % 17 == 3 ? ",nan" : ",%.4f"), z * (k + 1) + 0.05 * rand()
        printf ",%.4f,%.4f\n", u, cos(t / 7) } } }' >"$work/sensors.csv"
  # shellcheck disable=SC2086
  "$dvbf" train "$work/sensors.csv" -o "$work/sensors" $tiny --missing nan --inputs u0,u1
  "$dvbf" report "$work/sensors" "$work/sensors.csv" --missing nan --inputs u0,u1 -o "$work/two/sensors.html" --threads 1 --quiet
  cp "$work/two/sensors.html" "$sensors"
fi
more=$(wc -c <"$sensors")
[ "$more" -lt 3000000 ] || fail "the report of sensors has $more bytes"

# ---- WebDriver ----

: >"$work/driver.log" # before the driver has come to it
chromedriver --port=0 >"$work/driver.log" 2>&1 &
driver=$!
for _ in $(seq 100); do
  port=$(sed -n 's/.*started successfully on port \([0-9]*\).*/\1/p' "$work/driver.log")
  [ -z "$port" ] || break
  sleep 0.1
done
[ -n "$port" ] || fail "chromedriver does not start: $(cat "$work/driver.log")"
server=http://127.0.0.1:$port

# call METHOD PATH [JSON]: prints the answer's value.
call() {
  local answer
  answer=$(printf '%s' "${3:-}" | curl -s -m 60 -X "$1" -H 'Content-Type: application/json' ${3:+--data-binary @-} "$server$2") ||
    fail "no answer to $1 $2"
  jq -e '.value | type == "object" and has("error") | not' <<<"$answer" >/dev/null ||
    fail "$1 $2: $(jq -r '.value.message' <<<"$answer" | head -n 3)"
  jq -c '.value' <<<"$answer"
}
# in_page BODY: runs JavaScript after two drawn frames and prints what it returns.
in_page() {
  call POST "/session/$session/execute/async" "$(jq -n --arg body "$1" '{args: [], script:
    ("const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done((() => {" + $body + "})())));")}')"
}
cdp() { call POST "/session/$session/goog/cdp/execute" "$(jq -n --arg cmd "$1" --argjson params "$2" '{cmd: $cmd, params: $params}')" >/dev/null; }
element() { call POST "/session/$session/element" "$(jq -n --arg css "$1" '{using: "css selector", value: $css}')" | jq -r '.[]'; }
click() { call POST "/session/$session/element/$(element "$1")/click" '{}' >/dev/null; }
keys() { call POST "/session/$session/element/$(element "$1")/value" "$(jq -n --arg text "$2" '{text: $text}')" >/dev/null; }
# drag KIND: from the middle of the latent space with a mouse or a finger.
drag() {
  call POST "/session/$session/actions" "$(jq -n --arg id "$(element .view)" --arg kind "$1" '{actions: [{type: "pointer", id: $kind,
    parameters: {pointerType: $kind}, actions: [
      {type: "pointerMove", duration: 0, x: 0, y: 0, origin: {"element-6066-11e4-a52e-4f735466cecf": $id}},
      {type: "pointerDown", button: 0}, {type: "pointerMove", duration: 60, x: 70, y: 30, origin: "pointer"},
      {type: "pointerUp", button: 0}]}]}')" >/dev/null
  call DELETE "/session/$session/actions" >/dev/null
}
# A number that changes with the pixels of a canvas.
picture() {
  in_page "let hash = 0; for (const letter of document.querySelector('$1').toDataURL()) hash = (31 * hash + letter.charCodeAt(0)) | 0; return hash"
}
view() { picture .view; }
screen() { picture '.screen canvas'; }
frame() { in_page "return +document.querySelector('.film input').value"; }
differ() { [ "$1" != "$2" ] || fail "$3"; }

session=$(call POST /session "$(jq -n --arg profile "$work/profile" '{capabilities: {alwaysMatch: {
  "goog:loggingPrefs": {browser: "ALL", performance: "ALL"}, "goog:chromeOptions": {args: ["--headless=new", "--no-sandbox",
  "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1400,1000", ("--user-data-dir=" + $profile)]}}}}')" | jq -r .sessionId)
# The browser's own first page is no matter of ours: leave it, and drop what the log says about it.
call POST "/session/$session/url" '{"url": "about:blank"}' >/dev/null
call POST "/session/$session/se/log" '{"type": "performance"}' >/dev/null
call POST "/session/$session/url" "$(jq -n --arg url "file://$(realpath "$page")" '{url: $url}')" >/dev/null

# ---- The latent space ----

# Every diagram is drawn, with text of a size that can be read.
drawn() {
  [ "$(in_page "return [...document.querySelectorAll('figure.plot, figure.signals')].every(f => f.querySelector('svg path.series, svg g.series'))")" = true ] ||
    fail "$1: a diagram is empty"
  [ "$(in_page "return [...document.querySelectorAll('.panels svg')].every(s => s.getBoundingClientRect().width >= 0.95 * s.viewBox.baseVal.width)")" = true ] ||
    fail "$1: a diagram is shrunk"
}
paths() { in_page "return [...document.querySelectorAll('$1 .series')].map(s => s.getAttribute('d')).join()"; }
drawn pictures

before=$(view)
[ "$(in_page "const c = document.querySelector('.view'), d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
  const seen = new Set(); for (let i = 0; i < d.length; i += 4) if (d[i + 3]) seen.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]); return seen.size > 50")" = true ] ||
  fail "the latent space shows few colours"
drag mouse; after=$(view); differ "$before" "$after" "a drag does not turn the latent space"
before=$after; drag touch; after=$(view); differ "$before" "$after" "a finger does not turn the latent space"
before=$after; keys .view $'\ue012'; after=$(view); differ "$before" "$after" "an arrow key does not turn the latent space"
before=$after; keys .view '+'; after=$(view); differ "$before" "$after" "+ does not zoom"
before=$after; click '.colouring option:nth-child(2)'; after=$(view); differ "$before" "$after" "another column gives the same colours"
before=$after; click '.set option:nth-child(3)'; after=$(view); differ "$before" "$after" "other axes give the same picture"
in_page "return document.querySelector('.scale-ticks').textContent" | grep -q '[0-9]' || fail "the colour bar has no values"

# ---- The video ----

[ "$(frame)" = 0 ] || fail "the video does not begin at its first frame"
before=$(screen)
click .play
for _ in $(seq 100); do # a busy machine takes its time
  at=$(frame)
  [ "$at" = 0 ] || break
done
[ "$at" -gt 0 ] || fail "the video does not play"
click .play; at=$(frame); after=$(screen); sleep 0.4
[ "$(frame)" = "$at" ] || fail "the video does not stop"
[ "$at" = 0 ] || differ "$before" "$after" "the video plays without its images"
keys '.film input' $'\ue011'; [ "$(frame)" = 0 ] || fail "the slider does not move to the first frame"
keys '.film input' $'\ue014\ue014\ue014'; [ "$(frame)" = 3 ] || fail "the slider does not move by frames"
differ "$before" "$(screen)" "the images do not follow the slider"
in_page "return document.querySelector('.frame').textContent" | grep -q '"frame 4 of [0-9]*"' || fail "the number of the frame is wrong"
before=$(screen); strip=$(picture '.strips canvas'); click '.film .sequence option:nth-child(2)'
differ "$before" "$(screen)" "another sequence shows the same images"
differ "$strip" "$(picture '.strips canvas')" "another sequence shows the same strips"
before=$(paths 'figure.plot'); click 'figure.plot .choice option:nth-child(2)'; differ "$before" "$(paths 'figure.plot')" "another sequence has the same tracks"

# ---- Wide and narrow, light and dark ----

# looks PREFIX: the open page in all of them; with a folder, screenshots.
looks() {
  local scheme width height
  for scheme in light dark; do
    cdp Emulation.setEmulatedMedia "{\"features\": [{\"name\": \"prefers-color-scheme\", \"value\": \"$scheme\"}]}"
    for width in 1400 420; do
      cdp Emulation.setDeviceMetricsOverride "{\"width\": $width, \"height\": 900, \"deviceScaleFactor\": 1, \"mobile\": false}"
      [ "$(in_page 'return document.documentElement.scrollWidth')" -le "$width" ] || fail "$1: the page is wider than a window of $width"
      drawn "$1, $width"
      [ -n "$shots" ] || continue
      height=$(in_page 'return document.documentElement.scrollHeight')
      call POST "/session/$session/goog/cdp/execute" "{\"cmd\": \"Page.captureScreenshot\", \"params\": {\"captureBeyondViewport\": true,
        \"clip\": {\"x\": 0, \"y\": 0, \"width\": $width, \"height\": $height, \"scale\": 1}}}" | jq -r .data | base64 -d >"$folder/$1$scheme-$width.png"
    done
  done
  cdp Emulation.setDeviceMetricsOverride '{"width": 1400, "height": 900, "deviceScaleFactor": 1, "mobile": false}'
}
shots=${2:-}
looks ''

# ---- Sensors ----

call POST "/session/$session/url" "$(jq -n --arg url "file://$(realpath "$sensors")" '{url: $url}')" >/dev/null
drawn sensors
in_page "return document.querySelector('main p').className" | grep -q verdict || fail "the verdict does not come first"
[ "$(in_page "return document.querySelectorAll('main script:not([type])').length")" = 0 ] || fail "a name has become a script"
in_page "return document.querySelector('.signals .readout').textContent" | grep -q 'RMSE [0-9]' || fail "a column has no error"
for list in column sequence use input; do
  before=$(paths .signals); click ".signals .$list option:last-child"; differ "$before" "$(paths .signals)" "the list of signals \"$list\" changes nothing"
done
before=$(paths .signals); click '.signals .zoom button:first-child'; after=$(paths .signals); differ "$before" "$after" "+ does not zoom into signals"
click '.signals .zoom button:nth-child(4)'; differ "$after" "$(paths .signals)" "signals do not move on"
click '.signals .zoom button:last-child'; [ "$(paths .signals)" = "$before" ] || fail "the whole sequence is not shown again"
for part in $(seq "$(in_page "return document.querySelectorAll('figure.plot .choice').length")"); do
  [ "$(in_page "const f = [...document.querySelectorAll('figure.plot')].filter(f => f.querySelector('.choice'))[$part - 1];
    const d = () => f.querySelector('.panels').innerHTML.replace(/clip-[0-9]*/g, ''), before = d(), s = f.querySelector('.choice');
    s.value = s.options.length - 1; s.onchange(); return d() !== before")" = true ] || fail "diagram $part does not follow its list"
done
before=$(view); click '.colouring optgroup[label=inputs] option'; differ "$before" "$(view)" "an input gives the same colours"
[ "$(in_page "const svg = document.querySelector('.signals svg'), box = svg.getBoundingClientRect();
  svg.dispatchEvent(new PointerEvent('pointermove', {clientX: box.left + box.width / 2, clientY: box.top + 50}));
  return /measured .*predicted/.test(document.querySelector('.signals .readout').textContent)")" = true ] || fail "a pointer reads no values"
looks sensors-

# ---- Paper ----

[ "$(in_page "dispatchEvent(new Event('beforeprint')); return [...document.querySelectorAll('details')].every(d => d.open) &&
  [...document.querySelectorAll('.panels svg')].every(s => s.viewBox.baseVal.width <= 680)")" = true ] || fail "the page is not ready for paper"
[ "$(in_page "dispatchEvent(new Event('afterprint')); return [...document.querySelectorAll('details')].every(d => !d.open)")" = true ] ||
  fail "the page is not as it was after printing"
pdf=$(call POST "/session/$session/print" '{"shrinkToFit": false}' | jq -r . | base64 -d | grep -a -c '/Type */Page\b' || true)
[ "$pdf" -ge 2 ] || fail "nothing is printed"

# ---- What the browser has to say ----

log=$(call POST "/session/$session/se/log" '{"type": "browser"}')
[ "$(jq length <<<"$log")" = 0 ] || fail "the console has messages: $log"
requests=$(call POST "/session/$session/se/log" '{"type": "performance"}' | jq -r '.[].message | fromjson | .message |
  select(.method == "Network.requestWillBeSent") | .params.request.url | .[0:200] | select(startswith("data:") | not)')
grep -q '^file:' <<<"$requests" || fail "the log of requests does not even name the page"
! grep -v -F -x -e "file://$(realpath "$page")" -e "file://$(realpath "$sensors")" <<<"$requests" || fail "a page asks for something else than itself"
echo "passed: $bytes and $more bytes, no message, no request"
