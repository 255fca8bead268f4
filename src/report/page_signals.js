// ---- Signals: measured and predicted, a sequence and a column at a time ----

class Signals extends Plot {
  build() {
    const {columns, inputs, sequences, uses} = this.data;
    this.data.stack = true;
    const choice = (name, label, entries) => {
      const select = make('select', {className: name, onchange: () => { if (name === 'sequence') this.range = null; this.draw(); }},
        ...entries.map(([value, text]) => option(value, text)));
      if (entries.length > 1) this.controls.append(labelled(label, select));
      return select;
    };
    const few = columns.length <= 4;
    this.column = choice('column', 'Column', [...few && columns.length > 1 ? [['', 'all']] : [], ...columns.map((c, i) => [i, c.label])]);
    this.sequence = choice('sequence', 'Sequence', sequences.map((s, i) => [i, s.name]));
    this.use = choice('use', 'Prediction', uses.map((text, i) => [i, text]));
    this.input = choice('input', 'Input', [...inputs.length > 1 && inputs.length <= 3 ? [['', 'all']] : [], ...inputs.map((c, i) => [i, c.label])]);
    const button = (text, title, act) => make('button', {type: 'button', textContent: text, title, 'aria-label': title, onclick: () => { act(); this.draw(); }});
    this.controls.append(make('div', {className: 'zoom'}, button('+', 'Zoom in', () => this.zoom(0.5)), button('−', 'Zoom out', () => this.zoom(2)),
      button('←', 'Earlier', () => this.move(-0.4)), button('→', 'Later', () => this.move(0.4)),
      button('Whole', 'Show the whole sequence', () => { this.range = null; })));
    this.range = null;
    this.decoded = new Map();
  }

  values(coded) {
    if (!this.decoded.has(coded)) this.decoded.set(coded, valuesOf(coded));
    return this.decoded.get(coded);
  }

  get chosen() { return this.data.sequences[this.sequence.value || 0]; }
  get step() { return this.data.sample_time || 1; }
  get whole() {
    const {start, steps} = this.chosen;
    return [start, start + Math.max(1, steps - 1) * this.step];
  }

  zoom(factor) {
    const [from, to] = this.range || this.whole, middle = (from + to) / 2, half = (to - from) / 2 * factor;
    this.range = half < 2 * this.step ? this.range : [middle - half, middle + half];
    this.move(0);
  }

  // Stays inside the sequence.
  move(share) {
    const [first, last] = this.whole;
    if (!this.range) return;
    const wide = Math.min(this.range[1] - this.range[0], last - first);
    const from = clamp(this.range[0] + share * wide, first, last - wide);
    this.range = wide < last - first ? [from, from + wide] : null;
  }

  // The measured values give the scale; predictions that leave it far behind are cut off.
  scale(measured, others) {
    let low = Infinity, high = -Infinity;
    for (const y of measured) if (Number.isFinite(y)) { low = Math.min(low, y); high = Math.max(high, y); }
    if (!(low <= high)) return {};
    const span = high - low || Math.abs(high) || 1, least = low - 0.6 * span, most = high + 0.6 * span;
    for (const list of others) for (const y of list) if (Number.isFinite(y)) { low = Math.min(low, Math.max(y, least)); high = Math.max(high, Math.min(y, most)); }
    return {low: low - 0.05 * span, high: high + 0.05 * span};
  }

  panel(k, narrow) {
    const s = this.chosen, use = s.uses[this.use.value || 0], step = this.step, measured = this.values(s.x[k]);
    const begin = s.start + use.first * step, mean = this.values(use.mean[k]);
    const band = use.low ? [this.values(use.low[k]), this.values(use.high[k])] : [];
    const series = [...band.length ? [{kind: 'band', colour: 1, name: '90 % interval', first: begin, step, y: band[0], upper: band[1]}] : [],
      {kind: 'line', colour: 0, name: 'measured', first: s.start, step, y: measured},
      {kind: 'line', colour: 1, name: 'predicted', first: begin, step, y: mean}];
    return {...this.axis, ...this.scale(measured, [mean, ...band]), up: this.data.columns[k].label, series, height: narrow ? 190 : 240,
      marks: [{at: begin - step / 2, name: use.mark, colour: 5}]};
  }

  inputPanel(k) {
    const s = this.chosen;
    return {...this.axis, up: this.data.inputs[k].label, height: 80, marks: [],
      series: [{kind: 'line', colour: 2, name: 'input', first: s.start, step: this.step, y: this.values(s.u[k])}]};
  }

  view() {
    const {columns, inputs} = this.data, [from, to] = this.range || this.whole, all = list => list.map((_, k) => k);
    this.axis = {across: this.data.sample_time ? 'time' : 'step', time: this.data.dates ? 'date' : this.data.sample_time ? 's' : '', from, to};
    const shown = this.column.value === '' ? all(columns) : [+this.column.value];
    const below = this.input.value === '' ? all(inputs) : [+this.input.value].filter(k => k < inputs.length);
    const use = this.chosen.uses[this.use.value || 0], words = shown.filter(k => use.rmse[k] !== null).map(k => {
      const fit = use.fit[k] === null ? '' : `, fit ${minus(use.fit[k].toFixed(1))} %`;
      return `${shown.length > 1 ? columns[k].name + ': ' : ''}RMSE ${number(use.rmse[k])}${columns[k].unit ? ' ' + columns[k].unit : ''}${fit}`;
    });
    return {panels: [...shown.map(k => this.panel(k, this.box.clientWidth < 500)), ...below.map(k => this.inputPanel(k))],
      text: words.length ? `This sequence: ${words.join('; ')}` : ''};
  }
}

for (const figure of document.querySelectorAll('figure.signals')) new Signals(figure);
