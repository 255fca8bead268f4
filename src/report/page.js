'use strict';
// What all parts of the page share. The other scripts follow it in one script element.
// ---- Small helpers ----

// An element with properties, attributes (names with a dash, role) and children.
const make = (tag, properties = {}, ...children) => {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(properties)) {
    if (key.includes('-') || key === 'role') element.setAttribute(key, value);
    else element[key] = value;
  }
  element.append(...children);
  return element;
};
const labelled = (text, control) => make('label', {}, text, control);
const option = (value, text) => make('option', {value, textContent: text});
const bytesOf = text => Uint8Array.from(atob(text), letter => letter.charCodeAt(0));
const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
const dataOf = figure => JSON.parse(figure.querySelector('script').textContent);
// Four digits, without the noise of binary fractions.
const number = value => value === 0 ? '0' :
  Math.abs(value) >= 1e5 || Math.abs(value) < 1e-3 ? value.toExponential(2) : String(+value.toPrecision(4));
const still = matchMedia('(prefers-reduced-motion: reduce)');

const colours = {};
for (const [name, digits] of Object.entries(JSON.parse(document.getElementById('colours').textContent)))
  colours[name] = digits.match(/.{6}/g).map(six => '#' + six);

// Values that were written as 16 bits between low and high; 65535 stands for none.
const valuesOf = ({low, high, values}) => {
  const bytes = bytesOf(values), out = new Float64Array(bytes.length / 2);
  for (let i = 0; i < out.length; i++) {
    const code = bytes[2 * i] | bytes[2 * i + 1] << 8;
    out[i] = code === 65535 ? NaN : low + (high - low) * code / 65534;
  }
  return out;
};
