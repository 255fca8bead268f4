// ---- Rotations, as rows of a 3 x 3 matrix ----

const multiply = (a, b) => a.map(row => [0, 1, 2].map(j => row[0] * b[0][j] + row[1] * b[1][j] + row[2] * b[2][j]));
const aboutUp = t => [[Math.cos(t), 0, Math.sin(t)], [0, 1, 0], [-Math.sin(t), 0, Math.cos(t)]];
const aboutAcross = t => [[1, 0, 0], [0, Math.cos(t), -Math.sin(t)], [0, Math.sin(t), Math.cos(t)]];
const firstTurn = solid => solid ? multiply(aboutAcross(0.42), aboutUp(-0.6)) : aboutUp(0);

// ---- The latent space ----

// Places of the points in the cube [-1, 1]^3. Axes of one kind keep their proportions; axes of different
// kinds have different units, and each takes the whole length.
const placePoints = (axes, count) => {
  const alike = axes.every(axis => !axis || axis.group === 'latent dimensions' || axis.group === 'principal axes');
  const widest = Math.max(...axes.map(axis => axis ? axis.high - axis.low : 0));
  return axes.map(axis => {
    const out = new Float64Array(count);
    if (!axis) return {at: out, half: 0};
    const middle = (axis.low + axis.high) / 2, range = alike ? widest : axis.high - axis.low;
    for (let i = 0; i < count; i++) out[i] = range > 0 ? 2 * (axis.at[i] - middle) / range : 0;
    return {at: out, half: range > 0 ? (axis.high - axis.low) / range : 0};
  });
};

const colourPoints = (column, count) => {
  if (!column) return new Array(count).fill(colours.sequential[40]);
  const map = colours[column.cyclic ? 'cyclic' : 'sequential'], range = column.high - column.low;
  return Array.from(column.at, value => Number.isNaN(value) ? '#b8b8b8' :
    map[Math.round((range > 0 ? (value - column.low) / range : 0.5) * (map.length - 1))]);
};

const showScale = (place, column) => {
  place.replaceChildren();
  if (!column) return;
  const map = colours[column.cyclic ? 'cyclic' : 'sequential'], range = column.high - column.low;
  const ticks = column.cyclic ? ['−π', '−π/2', '0', 'π/2', 'π'] :
    [0, 0.25, 0.5, 0.75, 1].map(t => column.low + t * range).map(v => number(Math.abs(v) < 1e-4 * range ? 0 : v));
  place.append(make('div', {className: 'scale-name', textContent: column.name}),
    make('div', {className: 'scale-map', style: `background: linear-gradient(to right, ${map.join()})`}),
    make('div', {className: 'scale-ticks'}, ...ticks.map(text => make('span', {textContent: text}))));
};

class Space {
  constructor(figure) {
    const data = dataOf(figure);
    this.count = data.points;
    this.axes = data.axes.map(axis => ({...axis, at: valuesOf(axis)}));
    this.columns = data.columns.map(column => ({...column, at: valuesOf(column)}));
    this.axes.push(...this.columns); // they can be axes too
    this.order = Uint32Array.from({length: this.count}, (_, i) => i);
    this.depth = new Float64Array(this.count);
    this.build(figure);
    this.listen();
    this.choose();
    this.reset();
  }

  // Names of sets of three axes that can be chosen together, and the axes.
  sets() {
    const of = group => this.axes.map((axis, i) => axis.group === group ? i : -1).filter(i => i >= 0).slice(0, 3);
    return [...new Set(this.axes.map(axis => axis.group))].map(group => [group, of(group)]);
  }

  build(figure) {
    const sets = this.sets();
    this.setSelect = make('select', {className: 'set'}, ...sets.map(([name], i) => option(i, name)), option('', 'own choice'));
    const byGroup = list => [...new Set(list.map(entry => entry.group))].map(group => make('optgroup', {label: group},
      ...list.map((entry, i) => [entry, i]).filter(([entry]) => entry.group === group).map(([entry, i]) => option(i, entry.name))));
    this.axisSelects = ['across', 'up', 'depth'].map(() => make('select', {className: 'axis'}, option('', 'none'), ...byGroup(this.axes)));
    this.colourSelect = make('select', {className: 'colouring'}, ...byGroup(this.columns), option('', 'one colour'));
    if (this.columns.length) this.colourSelect.value = 0;
    this.canvas = make('canvas', {className: 'view', tabIndex: 0, role: 'application', 'aria-label':
      'Latent space in three dimensions. Arrow keys turn it, plus and minus zoom, Home goes back.'});
    this.scale = make('div', {className: 'scale'});
    this.buttons = [['−', 'Zoom out', 0.8], ['+', 'Zoom in', 1.25], ['Reset', 'Reset the view', 0]].map(
      ([text, label, factor]) => make('button', {type: 'button', textContent: text, title: label,
        'aria-label': label, onclick: () => factor ? this.scaleBy(factor) : this.reset()}));
    const controls = make('div', {className: 'controls'}, labelled('Colour', this.colourSelect),
      labelled('Axes', this.setSelect), ...['Across', 'Up', 'Depth'].map((name, k) => labelled(name, this.axisSelects[k])),
      make('div', {}, ...this.buttons));
    figure.prepend(controls, this.canvas, this.scale);
    figure.querySelector('figcaption').append(make('span', {className: 'hint', textContent:
      ' Drag to turn, pinch or scroll to zoom (after a click); or with the arrow keys, + and −.'}));
    const latent = this.axes.filter(axis => axis.group === 'latent dimensions').length;
    this.setSelect.value = latent > 3 ? sets.findIndex(([name]) => name === 'principal axes') : 0;
    this.takeSet();
    if (latent > 1 || !this.columns.length) return;
    this.setSelect.value = ''; // one dimension alone is set against the truth
    this.axisSelects[1].value = this.axes.length - this.columns.length;
  }

  takeSet() {
    if (this.setSelect.value === '') return;
    const axes = this.sets()[this.setSelect.value][1];
    this.axisSelects.forEach((select, k) => { select.value = k < axes.length ? axes[k] : ''; });
  }

  choose() {
    this.shown = this.axisSelects.map(select => select.value === '' ? null : this.axes[select.value]);
    this.placed = placePoints(this.shown, this.count);
    this.column = this.colourSelect.value === '' ? null : this.columns[this.colourSelect.value];
    this.colour = colourPoints(this.column, this.count);
    showScale(this.scale, this.column);
    this.ask();
  }

  // Three axes are looked at from a corner, fewer from the front.
  reset() { this.turn = firstTurn(this.shown.every(axis => axis)); this.zoom = 1; this.ask(); }
  scaleBy(factor) { this.zoom = clamp(this.zoom * factor, 0.3, 12); this.ask(); }
  turnBy(right, down) {
    this.turn = multiply(multiply(aboutAcross(down), aboutUp(right)), this.turn);
    this.ask();
  }

  // Draws before the next frame, once for however many asked.
  ask() {
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame(() => { this.asked = false; this.draw(); });
  }

  listen() {
    const fingers = new Map(), canvas = this.canvas;
    const spread = () => {
      const [a, b] = [...fingers.values()];
      return Math.hypot(a.x - b.x, a.y - b.y);
    };
    canvas.addEventListener('pointerdown', event => {
      canvas.setPointerCapture(event.pointerId);
      fingers.set(event.pointerId, {x: event.clientX, y: event.clientY});
    });
    canvas.addEventListener('pointermove', event => {
      const before = fingers.get(event.pointerId);
      if (!before) return;
      const apart = fingers.size === 2 ? spread() : 0, now = {x: event.clientX, y: event.clientY};
      fingers.set(event.pointerId, now);
      if (fingers.size === 1) this.turnBy((now.x - before.x) / 150, (now.y - before.y) / 150);
      else if (apart > 0) this.scaleBy(spread() / apart);
    });
    for (const name of ['pointerup', 'pointercancel', 'lostpointercapture'])
      canvas.addEventListener(name, event => fingers.delete(event.pointerId));
    // The wheel scrolls the page until the view has been clicked.
    canvas.addEventListener('wheel', event => {
      if (document.activeElement !== canvas && !event.ctrlKey) return;
      event.preventDefault();
      this.scaleBy(Math.exp(-clamp(event.deltaY, -100, 100) / 500));
    }, {passive: false});
    const keys = {ArrowLeft: () => this.turnBy(-0.1, 0), ArrowRight: () => this.turnBy(0.1, 0),
      ArrowUp: () => this.turnBy(0, -0.1), ArrowDown: () => this.turnBy(0, 0.1), '+': () => this.scaleBy(1.15),
      '=': () => this.scaleBy(1.15), '-': () => this.scaleBy(1 / 1.15), Home: () => this.reset()};
    canvas.addEventListener('keydown', event => {
      if (!keys[event.key] || event.ctrlKey || event.altKey || event.metaKey) return;
      event.preventDefault();
      keys[event.key]();
    });
    this.colourSelect.addEventListener('change', () => this.choose());
    this.setSelect.addEventListener('change', () => { this.takeSet(); this.choose(); });
    for (const select of this.axisSelects)
      select.addEventListener('change', () => { this.setSelect.value = ''; this.choose(); });
    new ResizeObserver(() => this.ask()).observe(canvas);
  }

  // Where a place of the cube is on the canvas, and how near (towards the eye is positive).
  project(x, y, z) {
    const [a, b, c] = this.turn, near = c[0] * x + c[1] * y + c[2] * z, size = this.unit / (1 - near / 6);
    return [this.width / 2 + size * (a[0] * x + a[1] * y + a[2] * z),
      this.height / 2 - size * (b[0] * x + b[1] * y + b[2] * z), near, size / this.unit];
  }

  draw() {
    const canvas = this.canvas, pixels = Math.min(devicePixelRatio || 1, 3);
    this.width = canvas.clientWidth;
    this.height = canvas.clientHeight;
    canvas.width = Math.round(this.width * pixels);
    canvas.height = Math.round(this.height * pixels);
    this.unit = this.zoom * Math.min(this.width, this.height) * 0.31;
    const context = canvas.getContext('2d');
    context.scale(pixels, pixels);
    this.drawBox(context, false);
    this.drawPoints(context);
    this.drawBox(context, true);
    this.drawLabels(context);
  }

  // Edges of the box: those that meet the corner nearest to the eye are drawn over the points.
  drawBox(context, front) {
    const half = this.placed.map(place => place.half), depth = k => this.turn[2][k];
    const nearest = [0, 1, 2].map(k => depth(k) >= 0 ? half[k] : -half[k]);
    context.strokeStyle = front ? 'rgba(33, 33, 38, 0.16)' : 'rgba(33, 33, 38, 0.32)';
    context.lineWidth = 1;
    for (let k = 0; k < 3; k++) {
      if (!half[k]) continue;
      const others = [0, 1, 2].filter(j => j !== k), seen = new Set();
      for (const [s, t] of [[-1, -1], [-1, 1], [1, -1], [1, 1]]) {
        const from = [0, 0, 0], to = [0, 0, 0];
        from[k] = -half[k];
        to[k] = half[k];
        from[others[0]] = to[others[0]] = s * half[others[0]];
        from[others[1]] = to[others[1]] = t * half[others[1]];
        const touches = others.every(j => from[j] === nearest[j]);
        if (touches !== front || seen.has(String(from))) continue;
        seen.add(String(from));
        context.beginPath();
        context.moveTo(...this.project(...from));
        context.lineTo(...this.project(...to));
        context.stroke();
      }
    }
  }

  drawPoints(context) {
    const [across, up, deep] = this.placed.map(place => place.at), c = this.turn[2];
    for (let i = 0; i < this.count; i++) this.depth[i] = c[0] * across[i] + c[1] * up[i] + c[2] * deep[i];
    this.order.sort((i, j) => this.depth[i] - this.depth[j]);
    const radius = clamp(0.75 * this.unit / Math.sqrt(this.count * this.zoom), 1.2, 6);
    context.globalAlpha = 0.85;
    for (const i of this.order) {
      const [x, y, , size] = this.project(across[i], up[i], deep[i]);
      context.fillStyle = this.colour[i];
      context.beginPath();
      context.arc(x, y, radius * size, 0, 2 * Math.PI);
      context.fill();
    }
    context.globalAlpha = 1;
  }

  // Each axis is named beside that of its four edges which is farthest from the middle of the picture.
  drawLabels(context) {
    const half = this.placed.map(place => place.half);
    const [middleX, middleY] = this.project(0, 0, 0);
    context.font = '13px system-ui, sans-serif';
    context.textAlign = 'center';
    context.textBaseline = 'middle';
    for (let k = 0; k < 3; k++) {
      if (!half[k]) continue;
      const others = [0, 1, 2].filter(j => j !== k);
      let best = null;
      for (const [s, t] of [[-1, -1], [1, -1], [-1, 1], [1, 1]]) {
        const place = [0, 0, 0];
        place[others[0]] = s * half[others[0]];
        place[others[1]] = t * half[others[1]];
        const [x, y] = this.project(...place), score = Math.hypot(x - middleX, y - middleY) + (y - middleY) * 0.3;
        if (!best || score > best.score) best = {score, place, x, y};
      }
      const away = Math.hypot(best.x - middleX, best.y - middleY) || 1;
      const put = (along, text, gap) => {
        const place = [...best.place];
        place[k] = along * half[k];
        const [x, y] = this.project(...place), room = context.measureText(text).width / 2 + 4;
        const left = clamp(x + gap * (best.x - middleX) / away * 1.3, room, this.width - room);
        const top = clamp(y + gap * (best.y - middleY) / away, 9, this.height - 9);
        context.strokeStyle = 'rgba(255, 255, 255, 0.85)';
        context.lineWidth = 4;
        context.lineJoin = 'round';
        context.strokeText(text, left, top);
        context.fillStyle = '#212126';
        context.fillText(text, left, top);
      };
      put(0, this.shown[k].name, 26);
      context.font = '11px system-ui, sans-serif';
      put(-0.86, number(this.shown[k].low), 15);
      put(0.86, number(this.shown[k].high), 15);
      context.font = '13px system-ui, sans-serif';
    }
  }
}

for (const figure of document.querySelectorAll('figure.space')) new Space(figure);
