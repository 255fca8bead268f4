// ---- The video ----

class Film {
  constructor(figure) {
    Object.assign(this, dataOf(figure));
    this.rows = this.rows.map(row => ({...row, pixels: bytesOf(row.pixels)}));
    this.sequence = 0;
    this.frame = 0;
    this.timer = 0;
    this.build(figure);
    this.show();
  }

  get last() { return this.length[this.sequence] - 1; }

  build(figure) {
    this.button = make('button', {type: 'button', className: 'play', onclick: () => this.timer ? this.pause() : this.play()});
    this.select = make('select', {className: 'sequence', onchange: () => {
      this.sequence = +this.select.value;
      this.frame = Math.min(this.frame, this.last);
      this.slider.max = this.last;
      this.placeMarks();
      this.showStrips();
      this.show();
    }}, ...this.length.map((_, i) => option(i, this.names[i] || i + 1)));
    this.speed = make('select', {onchange: () => { if (this.timer) { this.pause(); this.play(); } }},
      ...[2, 5, 10, 20].map(rate => option(rate, `${rate} frames/s`)));
    this.speed.value = still.matches ? 2 : 10;
    this.output = make('output', {className: 'frame'});
    this.slider = make('input', {type: 'range', min: 0, max: this.last, step: 1, value: 0, 'aria-label': 'Frame',
      oninput: () => { this.pause(); this.frame = +this.slider.value; this.show(); }});
    this.marks = make('div', {className: 'marks', 'aria-hidden': 'true'});
    this.screens = this.rows.map(row => {
      const canvas = make('canvas', {width: this.width, height: this.height, role: 'img', 'aria-label': row.label});
      const state = make('div', {className: 'screen-state'});
      const screen = make('div', {className: 'screen'}, canvas, make('div', {className: 'screen-label', textContent: row.label}), state);
      return {screen, state, context: canvas.getContext('2d')};
    });
    figure.prepend(make('div', {className: 'controls'}, this.button, labelled('Sequence', this.select),
      labelled('Speed', this.speed), this.output), make('div', {className: 'screens'}, ...this.screens.map(s => s.screen)),
    make('div', {className: 'time'}, this.slider, this.marks), this.strips = make('div', {className: 'strips'}));
    this.pause();
    this.placeMarks();
    new ResizeObserver(() => this.showStrips()).observe(this.strips);
  }

  // All frames of the sequence, as many in a line as there is room for; of many frames every second, third, ...
  showStrips() {
    const wide = this.strips.clientWidth, side = clamp(wide / 15, 44, 72), each = Math.max(1, Math.floor(wide / side));
    const count = this.last + 1, every = Math.ceil(count / 60), shown = Array.from({length: Math.ceil(count / every)}, (_, i) => i * every);
    const key = `${this.sequence} ${each}`, gap = Math.max(1, Math.round(this.width / 16));
    if (!(wide > 0) || key === this.stripKey) return;
    this.stripKey = key;
    const lines = [];
    for (let from = 0; from < shown.length; from += each) lines.push(shown.slice(from, from + each));
    this.strips.replaceChildren(...lines.map(line => {
      const canvas = make('canvas', {width: each * (this.width + gap), height: this.rows.length * (this.height + gap), role: 'img',
        'aria-label': `frames ${line[0] + 1} to ${line[line.length - 1] + 1}: ${this.rows.map(row => row.label).join(', ')}`});
      const context = canvas.getContext('2d');
      this.rows.forEach((row, r) => line.forEach((frame, k) => {
        context.putImageData(this.image(row, frame), k * (this.width + gap), r * (this.height + gap));
        if (row.observed && frame >= row.observed) {
          context.fillStyle = '#1a6bd9';
          context.fillRect(k * (this.width + gap), (r + 1) * (this.height + gap) - gap, this.width, gap);
        }
      }));
      const one = line[0] === line[line.length - 1] ? `Frame ${line[0] + 1}` : `Frames ${line[0] + 1} to ${line[line.length - 1] + 1}`;
      return make('div', {}, make('p', {textContent: one + (every > 1 ? `, every ${every}th` : '')}), canvas);
    }), make('p', {textContent: `Each line from above: ${this.rows.map(row => row.label).join(', ')}. Blue below: predicted.`}));
  }

  image(row, frame) {
    const size = this.width * this.height, channels = this.channels, image = new ImageData(this.width, this.height);
    const start = (this.sequence * this.frames + frame) * size * channels;
    for (let i = 0; i < size; i++) {
      for (let c = 0; c < 3; c++) image.data[4 * i + c] = row.pixels[start + i * channels + (channels === 3 ? c : 0)];
      image.data[4 * i + 3] = 255;
    }
    return image;
  }

  // A mark stands between the last frame before it and the first after.
  placeMarks() {
    this.marks.replaceChildren();
    const mark = (after, kind, text) => {
      const share = (after - 0.5) / this.last;
      if (!after || after > this.last) return;
      this.marks.append(make('div', {className: `mark ${kind}${share > 0.5 ? ' leftward' : ''}`, style: `left: ${100 * share}%`},
        make('span', {textContent: text})));
    };
    for (const observed of new Set(this.rows.map(row => row.observed)))
      mark(observed, 'observe', `${observed} frames observed`);
    mark(this.training, 'training lower', `training length ${this.training}`);
  }

  play() {
    if (this.frame >= this.last) this.frame = -1;
    this.button.textContent = 'Pause';
    this.timer = setInterval(() => this.step(), 1000 / this.speed.value);
  }

  pause() {
    clearInterval(this.timer);
    this.timer = 0;
    this.button.textContent = 'Play';
  }

  // It goes round, unless the reader asked for less motion.
  step() {
    if (this.frame >= this.last && still.matches) { this.pause(); return; }
    this.frame = this.frame >= this.last ? 0 : this.frame + 1;
    this.show();
  }

  show() {
    this.screens.forEach(({screen, state, context}, r) => {
      context.putImageData(this.image(this.rows[r], this.frame), 0, 0);
      const observed = this.rows[r].observed, seen = this.frame < observed;
      if (!observed) return;
      state.textContent = seen ? 'frame observed' : `${this.frame - observed + 1} ahead`;
      screen.classList.toggle('predicted', !seen);
    });
    this.slider.value = this.frame;
    this.slider.setAttribute('aria-valuetext', `frame ${this.frame + 1} of ${this.last + 1}`);
    this.output.textContent = `frame ${this.frame + 1} of ${this.last + 1}`;
  }
}

for (const figure of document.querySelectorAll('figure.film')) new Film(figure);
