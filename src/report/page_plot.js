// ---- Axes ----

const minus = text => text.replace('-', '−');
const svgNames = make('div', {innerHTML: '<svg></svg>'}).firstChild.namespaceURI;
const svgOf = (tag, attributes = {}, ...children) => {
  const element = document.createElementNS(svgNames, tag);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
};

// 1, 2 or 5 times a power of ten, so that about `count` steps make the range.
const roundStep = (range, count) => {
  const raw = 1.5 * range / count, unit = 10 ** Math.floor(Math.log10(raw));
  return unit * [5, 2, 1].find(k => k * unit <= 1.001 * raw);
};
const linearTicks = (low, high, count, least = 0) => {
  const step = Math.max(least, roundStep(high - low, count)), ticks = [];
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const text = value => Math.abs(value) < step / 1e6 ? '0' : Math.max(Math.abs(low), Math.abs(high)) >= 1e6 || digits > 5 ?
    String(+value.toPrecision(4)) : value.toFixed(digits);
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) ticks.push({at: k * step, text: minus(text(k * step))});
  return ticks;
};
const logTicks = (low, high) => {
  const decades = Math.log10(high / low), factors = decades > 3 ? [1] : decades > 1.2 ? [1, 2, 5] : [1, 1.5, 2, 3, 4, 5, 7], ticks = [];
  const each = Math.ceil(decades / 6);
  for (let e = Math.floor(Math.log10(low)); e <= Math.ceil(Math.log10(high)); e++)
    for (const factor of factors) {
      const at = +(factor * 10 ** e).toPrecision(3);
      if ((each < 2 || e % each === 0) && at >= low * 0.9999 && at <= high * 1.0001) ticks.push({at, text: minus(String(at))});
    }
  return ticks;
};

// Seconds are shown in the unit that gives short numbers.
const timeUnit = span => [['µs', 1e-6, 5e-4], ['ms', 1e-3, 0.5], ['s', 1, 600], ['min', 60, 10800], ['h', 3600, 345600],
  ['days', 86400, Infinity]].find(([, , most]) => span < most);
const timeTicks = (low, high, count) => {
  const [, unit] = timeUnit(high - low);
  return linearTicks(low / unit, high / unit, count).map(({at, text}) => ({at: at * unit, text}));
};
const dateText = (seconds, step) => {
  const text = new Date(seconds * 1000).toISOString();
  return step >= 27 * 86400 ? text.slice(0, step >= 360 * 86400 ? 4 : 7) : step >= 86400 ? text.slice(5, 10) :
    text.slice(11, step >= 60 ? 16 : step >= 1 ? 19 : 23);
};
const dateTicks = (low, high, count) => {
  const raw = (high - low) / count, days = 86400, month = 30.4 * days, ticks = [];
  const step = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, days, 2 * days, 5 * days, 10 * days]
    .find(s => s >= raw);
  if (raw < 1) return linearTicks(low, high, count).map(({at}) => ({at, text: dateText(at, 0.1)}));
  if (step) {
    for (let k = Math.ceil(low / step); k * step <= high; k++) ticks.push({at: k * step, text: dateText(k * step, step)});
    return ticks;
  }
  const months = [1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1200].find(m => m * month >= raw) || 2400;
  const first = new Date(low * 1000), begin = Math.floor((first.getUTCFullYear() * 12 + first.getUTCMonth()) / months) * months;
  for (let k = begin; ; k += months) {
    const at = Date.UTC(Math.floor(k / 12), k % 12) / 1000;
    if (at > high) return ticks;
    if (at >= low) ticks.push({at, text: dateText(at, months * month)});
  }
};
const ticksOf = ({low, high, log, time, least}, count) => log ? logTicks(low, high) :
  time === 'date' ? dateTicks(low, high, count) : time ? timeTicks(low, high, count) : linearTicks(low, high, count, least);

// "time (min)", or the days that the dates are of.
const acrossLabel = ({across, time}, low, high) => {
  if (!time) return across;
  if (time !== 'date') return `${across} (${timeUnit(high - low)[0]})`;
  const day = seconds => new Date(seconds * 1000).toISOString().slice(0, 10);
  return day(low) === day(high) ? `${day(low)}, UTC` : `${day(low)} to ${day(high)}, UTC`;
};
const placeText = (panel, x) => panel.time === 'date' ? new Date(x * 1000).toISOString().slice(0, 19).replace('T', ' ') :
  panel.time ? minus(number(x / timeUnit(panel.to - panel.from)[1])) + ' ' + timeUnit(panel.to - panel.from)[0] : minus(number(x));

// ---- One panel ----

// x of entry i of a series.
const xOf = (series, i) => series.x ? series.x[i] : series.first + i * series.step;
const isBand = series => series.kind === 'band';

// The range without a few values that are far from the others and would flatten them.
const usualRange = (panel, low, high) => {
  const all = panel.series.flatMap(series => [...series.y]).filter(y => y !== null).sort((a, b) => a - b);
  if (all.length < 8) return [low, high];
  const first = all[Math.floor(all.length / 8)], last = all[Math.floor(7 * all.length / 8)], room = 2 * (last - first);
  return room > 0 ? [Math.max(low, first - room), Math.min(high, last + room)] : [low, high];
};

// The range of a panel from its series. What a panel fixes itself stays.
const rangeOf = panel => {
  let low = Infinity, high = -Infinity, from = Infinity, to = -Infinity;
  for (const series of panel.series)
    for (let i = 0; i < series.y.length; i++) {
      const x = xOf(series, i);
      if (!Number.isFinite(x)) continue;
      from = Math.min(from, x);
      to = Math.max(to, x);
      for (const y of isBand(series) ? [series.y[i], series.upper[i]] : [series.y[i]])
        if (y !== null && Number.isFinite(y) && !(panel.log && y <= 0)) { low = Math.min(low, y); high = Math.max(high, y); }
    }
  for (const mark of panel.marks || []) if (mark.level && !(panel.log && mark.at <= 0)) { low = Math.min(low, mark.at); high = Math.max(high, mark.at); }
  if (panel.series.some(series => series.kind === 'bars')) {
    low = Math.min(low, 0);
    const bars = panel.series.find(series => series.kind === 'bars');
    from -= bars.step / 2;
    to += bars.step / 2;
  }
  if (panel.robust) [low, high] = usualRange(panel, low, high);
  if (!(low <= high)) [low, high] = panel.log ? [0.1, 1] : [0, 1];
  if (!(from < to)) to = from + 1;
  if ((panel.marks || []).some(mark => !mark.level)) [from, to] = [from - 0.015 * (to - from), to + 0.015 * (to - from)];
  if (!(low < high)) [low, high] = panel.log ? [low / 2, low * 2] : [low - (Math.abs(low) || 1) * 0.1, high + (Math.abs(high) || 1) * 0.1];
  const room = panel.log ? (high / low) ** 0.05 : (high - low) * 0.05;
  return {from: panel.from ?? from, to: panel.to ?? to,
    low: panel.low ?? (panel.log ? low / room : panel.zero && low >= 0 ? 0 : low - (low === 0 ? 0 : room)), high: panel.high ?? (panel.log ? high * room : high + room)};
};

let clips = 0;
const textAt = (x, y, text, name, anchor) => {
  const element = svgOf('text', {x, y, class: name, 'text-anchor': anchor || 'start'});
  element.textContent = text;
  return element;
};
const widthOf = text => 7 * text.length;

class Panel {
  // `left` is the room for labels beside the axis, the same for panels above each other.
  constructor(panel, width, height, left, withAcross) {
    Object.assign(this, panel, rangeOf(panel));
    this.left = left;
    this.right = width - 14;
    this.top = this.up ? 24 : 8;
    this.bottom = this.top + height;
    this.withAcross = withAcross;
    this.height = this.bottom + (withAcross ? 42 : 10);
    this.width = width;
  }

  static room(panel) {
    const {low, high} = rangeOf(panel);
    return 12 + Math.max(14, ...ticksOf({low, high, log: panel.log}, 4).map(tick => widthOf(tick.text)));
  }

  placeX(x) { return this.left + (x - this.from) / (this.to - this.from) * (this.right - this.left); }
  placeY(y) {
    const share = this.log ? Math.log(Math.max(y, 1e-300) / this.low) / Math.log(this.high / this.low) : (y - this.low) / (this.high - this.low);
    return this.bottom - clamp(share, -3, 4) * (this.bottom - this.top); // far outside is cut off
  }

  // Pieces of a series without gaps, as lists of entries.
  static pieces(series) {
    const known = i => series.y[i] !== null && Number.isFinite(series.y[i]), pieces = [];
    let piece = [];
    for (let i = 0; i <= series.y.length; i++) {
      if (i < series.y.length && known(i)) { piece.push(i); continue; }
      if (piece.length) pieces.push(piece);
      piece = [];
    }
    return pieces;
  }

  point(series, i, values) { return `${this.placeX(xOf(series, i)).toFixed(1)} ${this.placeY(values[i]).toFixed(1)}`; }

  draw(series) {
    const name = `series ${series.kind} c${series.colour}`;
    if (series.kind === 'bars') {
      const wide = Math.max(1, Math.abs(this.placeX(series.step) - this.placeX(0)) * (series.thin ? 0.35 : 0.92)), zero = this.placeY(Math.max(0, this.low));
      return svgOf('g', {class: name}, ...series.y.map((y, i) => {
        const at = this.placeY(y ?? 0);
        return svgOf('rect', {x: (this.placeX(xOf(series, i)) - wide / 2).toFixed(1), width: wide.toFixed(1),
          y: Math.min(at, zero).toFixed(1), height: Math.max(0.5, Math.abs(at - zero)).toFixed(1)});
      }));
    }
    const path = Panel.pieces(series).map(piece => {
      const there = piece.map(i => this.point(series, i, series.y));
      if (!isBand(series)) return `M${there.join('L')}${piece.length === 1 ? 'h0.01' : ''}`;
      return `M${there.concat(piece.map(i => this.point(series, i, series.upper)).reverse()).join('L')}Z`;
    }).join('');
    return svgOf('path', {class: name, d: path});
  }

  ticks(svg) {
    const many = clamp(Math.floor((this.right - this.left) / 70), 3, 12), wide = this.right - this.left;
    for (const {at, text} of ticksOf({low: this.low, high: this.high, log: this.log}, clamp(Math.floor((this.bottom - this.top) / 36), 2, 6))) {
      const y = this.placeY(at);
      svg.append(svgOf('line', {x1: this.left, x2: this.right, y1: y, y2: y, class: 'grid'}), textAt(this.left - 6, y + 4, text, 'tick', 'end'));
    }
    let last = -Infinity;
    for (const {at, text} of ticksOf({low: this.from, high: this.to, time: this.time, least: 1}, many)) {
      const x = this.placeX(at), half = widthOf(text) / 2;
      svg.append(svgOf('line', {x1: x, x2: x, y1: this.bottom, y2: this.bottom + 4, class: 'frame-line'}));
      if (!this.withAcross || x - half < last + 6) continue;
      svg.append(textAt(clamp(x, this.left, this.width - half), this.bottom + 18, text, 'tick', 'middle'));
      last = x + half;
    }
    if (this.withAcross) svg.append(textAt(this.left + wide / 2, this.bottom + 36, acrossLabel(this, this.from, this.to), 'label', 'middle'));
    if (this.up) svg.append(textAt(Math.min(8, this.left), 15, this.up, 'label strong'));
  }

  mark(svg, {at, level, colour}) {
    const place = level ? {x1: this.left, x2: this.right, y1: this.placeY(at), y2: this.placeY(at)} :
      {x1: this.placeX(at), x2: this.placeX(at), y1: this.top, y2: this.bottom};
    if (level || (at >= this.from && at <= this.to)) svg.append(svgOf('line', {...place, class: `mark-line c${colour} ${level ? 'level' : ''}`}));
  }

  build(description) {
    const svg = svgOf('svg', {viewBox: `0 0 ${this.width} ${this.height}`, width: this.width, height: this.height, role: 'img', 'aria-label': description});
    const clip = `clip-${++clips}`, inside = {x: this.left, y: this.top, width: this.right - this.left, height: this.bottom - this.top};
    svg.append(svgOf('clipPath', {id: clip}, svgOf('rect', inside)));
    this.ticks(svg);
    const group = svgOf('g', {'clip-path': `url(#${clip})`});
    for (const series of this.series) if (isBand(series)) group.append(this.draw(series));
    for (const mark of this.marks || []) this.mark(group, mark);
    for (const series of this.series) if (!isBand(series)) group.append(this.draw(series));
    this.cursor = svgOf('line', {y1: this.top, y2: this.bottom, class: 'cursor', visibility: 'hidden'});
    svg.append(group, svgOf('rect', {...inside, class: 'frame-line'}), this.cursor);
    return svg;
  }

  // What the series have nearest to a place on the screen, in words.
  read(across) {
    const x = this.from + (across - this.left) / (this.right - this.left) * (this.to - this.from), words = [];
    let nearest = null;
    for (const series of this.series) {
      let best = -1;
      for (let i = 0; i < series.y.length; i++)
        if (series.y[i] !== null && Number.isFinite(series.y[i]) && (best < 0 || Math.abs(xOf(series, i) - x) < Math.abs(xOf(series, best) - x))) best = i;
      if (best < 0) continue;
      const at = xOf(series, best);
      if (nearest === null || Math.abs(at - x) < Math.abs(nearest - x)) nearest = at;
      words.push([at, isBand(series) ? `${series.name} ${minus(number(series.y[best]))} to ${minus(number(series.upper[best]))}` :
        `${series.name || this.up} ${minus(number(series.y[best]))}`]);
    }
    if (nearest === null) return '';
    this.cursor.setAttribute('x1', this.placeX(nearest));
    this.cursor.setAttribute('x2', this.placeX(nearest));
    this.cursor.setAttribute('visibility', 'visible');
    return `${placeText(this, nearest)}: ${words.filter(([at]) => Math.abs(at - nearest) < 1e-9 + Math.abs(nearest) * 1e-9).map(([, text]) => text).join(', ')}`;
  }
}

// ---- Several panels, with a choice of what they show ----

const plots = [];

class Plot {
  constructor(figure) {
    this.figure = figure;
    this.data = dataOf(figure);
    this.box = make('div', {className: 'panels'});
    this.legend = make('div', {className: 'legend'});
    this.output = make('output', {className: 'readout'});
    this.controls = make('div', {className: 'controls'});
    figure.prepend(this.controls, this.legend, this.box, this.output);
    this.build();
    this.controls.hidden = !this.controls.childElementCount;
    plots.push(this);
    new ResizeObserver(() => { if (this.box.clientWidth !== this.drawn) this.draw(); }).observe(this.box);
  }

  build() {
    if (this.data.views.length < 2) return;
    this.select = make('select', {className: 'choice', onchange: () => this.draw()}, ...this.data.views.map((view, i) => option(i, view.name)));
    this.controls.append(labelled(this.data.chooser, this.select));
  }

  view() { return this.data.views[this.select ? this.select.value : 0]; }

  // Panels stand side by side where there is room.
  draw(width = this.box.clientWidth, least = 330) {
    if (!(width > 0)) return;
    this.drawn = width;
    const {panels, text} = this.view();
    const beside = this.data.stack ? 1 : clamp(Math.floor(width / least), 1, panels.length);
    const each = Math.floor((width - 16 * (beside - 1)) / beside), left = Math.max(...panels.map(Panel.room));
    this.panels = panels.map((panel, i) => new Panel(panel, each, panel.height || (width < 500 ? 190 : 230), left,
      !this.data.stack || i === panels.length - 1));
    const words = this.figure.dataset.about || '';
    this.box.replaceChildren(...this.panels.map(panel => panel.build(`${panel.up || ''} ${words}`)));
    this.listen();
    this.showLegend(panels);
    this.output.textContent = this.rest = text || '';
  }

  showLegend(panels) {
    const entries = new Map();
    for (const panel of panels) {
      for (const series of panel.series) if (series.name && !entries.has(series.name)) entries.set(series.name, `swatch ${series.kind} c${series.colour}`);
      for (const mark of panel.marks || []) if (mark.name && !entries.has(mark.name)) entries.set(mark.name, `swatch mark-line ${mark.level ? 'level' : ''} c${mark.colour}`);
    }
    this.legend.replaceChildren(...[...entries].map(([name, look]) => make('span', {}, make('i', {className: look}), name)));
  }

  listen() {
    [...this.box.children].forEach((svg, k) => {
      svg.addEventListener('pointermove', event => {
        const box = svg.getBoundingClientRect(), panel = this.panels[k];
        const words = panel.read((event.clientX - box.left) * panel.width / box.width);
        if (words) this.output.textContent = words;
      });
      svg.addEventListener('pointerleave', () => {
        this.panels[k].cursor.setAttribute('visibility', 'hidden');
        this.output.textContent = this.rest;
      });
    });
  }
}

for (const figure of document.querySelectorAll('figure.plot')) new Plot(figure);

// Paper has another width. What is folded away is printed too.
addEventListener('beforeprint', () => {
  for (const plot of plots) plot.draw(660, 200);
  for (const part of document.querySelectorAll('details:not([open])')) { part.open = true; part.dataset.printed = ''; }
});
addEventListener('afterprint', () => {
  for (const plot of plots) plot.draw();
  for (const part of document.querySelectorAll('details[data-printed]')) { part.open = false; delete part.dataset.printed; }
});
