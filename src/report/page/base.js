// ---- small things that all parts use ----

const byId = (id) => document.getElementById(id);

// An element: attributes by name, "on..." are listeners; children are elements or text, never HTML.
function el(tag, attributes, ...children) {
  const e = document.createElement(tag);
  fill(e, attributes, children);
  return e;
}
function svg(tag, attributes, ...children) {
  const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
  fill(e, attributes, children);
  return e;
}
function fill(e, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) e.addEventListener(name.slice(2), value);
    else e.setAttribute(name, value === true ? "" : value);
  }
  e.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== ""));
}

// JSON's numbers: those that JSON does not have are text.
function number(x) {
  if (typeof x === "number") return x;
  return x === "inf" ? Infinity : x === "-inf" ? -Infinity : NaN;
}

const grouped = (n) => n.toLocaleString("en-US");
// 3 digits, as short as they can be: 0.00123, 1.2e-7, 65504.
function short(x, digits = 3) {
  if (x === null || x === undefined) return "";
  if (Number.isNaN(x)) return "NaN";
  if (!Number.isFinite(x)) return x > 0 ? "∞" : "−∞";
  if (x === 0) return "0";
  const m = Math.abs(x);
  const text = m >= 1e-3 && m < 1e6 ? String(Number(x.toPrecision(digits))) : x.toExponential(digits - 1);
  return text.replace("e+", "e").replace("-", "−").replace("e-", "e−");
}
const decade = (d) => (d === 0 ? "1" : `1e${d}`.replace("-", "−"));
const decibels = (db) => (db === Infinity ? "exact" : `${db.toFixed(1)} dB`);
const many = (n, one, more) => `${grouped(n)} ${n === 1 ? one : more || one + "s"}`;
const clamp = (x, low, high) => Math.min(high, Math.max(low, x));

// A word for a shell, as assay_shell_word() has it: in quotes where it needs them, with escapes where it has control characters.
function quoted(s) {
  if (/^(?!=)[\w@%+=:,./-]+$/.test(s)) return s;
  if (!/[\x00-\x1f\x7f-\x9f]/.test(s)) return `'${s.replace(/'/g, "'\\''")}'`;
  const escaped = s.replace(/[\\']/g, "\\$&").replace(/[\x00-\x1f\x7f-\x9f]/g, (c) => (c < "\x80" ? "\\x" : "\\u00") + c.charCodeAt(0).toString(16).padStart(2, "0"));
  return `$'${escaped}'`;
}

function say(text) {
  byId("said").textContent = text;
}

// Copies text; pages from a file may not have the clipboard's interface.
async function copy(text, button) {
  let done = true;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = el("textarea", {class: "hidden"});
    area.value = text;
    document.body.append(area);
    area.select();
    done = document.execCommand("copy");
    area.remove();
  }
  button.textContent = done ? "copied" : "failed";
  setTimeout(() => { button.textContent = "copy"; }, 1200);
}

// ---- light and dark ----

let colours = {};
const repaints = [];  // called when colours change

function readColours() {
  const style = getComputedStyle(document.documentElement);
  const get = (name) => style.getPropertyValue(`--${name}`).trim();
  colours = {};
  for (const name of ["bg", "card", "line", "text", "dim", "edge", "accent", "bad", "warn", "good", "exact", "select", "own", "total"])
    colours[name] = get(name);
  colours.ramp = [0, 1, 2, 3, 4].map((k) => parseColour(get(`ramp${k}`)));
  colours.font = get("mono");
}
function parseColour(hex) {
  return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
}
// A colour of the ramp, place in [0, 1].
function ramp(place) {
  const at = clamp(place, 0, 1) * (colours.ramp.length - 1);
  const k = Math.min(Math.floor(at), colours.ramp.length - 2);
  return colours.ramp[k].map((c, i) => Math.round(c + (colours.ramp[k + 1][i] - c) * (at - k)));
}
const css = (rgb) => `rgb(${rgb[0]},${rgb[1]},${rgb[2]})`;

function isDark() {
  const forced = document.documentElement.dataset.theme;
  return forced ? forced === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}
function toggleTheme() {
  document.documentElement.dataset.theme = isDark() ? "light" : "dark";
  repaint();
}
function repaint() {
  readColours();
  for (const f of repaints) f();
}

// A canvas at the screen's resolution; returns its context, in CSS pixels, or null if it is not shown.
function sharpen(canvas) {
  const ratio = window.devicePixelRatio || 1;
  const width = canvas.clientWidth, height = canvas.clientHeight;
  if (!width || !height) return null;
  const w = Math.round(width * ratio), h = Math.round(height * ratio);
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return {context, width, height, ratio};
}
