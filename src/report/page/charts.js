// ---- histograms and maps of one value ----

const LOG2 = Math.log10(2);
const power = (exponent) => exponent * LOG2;  // of two, as decades

// [first, counts ...] as [[exponent, count] ...].
const bins = (list) => list.slice(1).map((n, i) => [list[0] + i, n]);

// A histogram over powers of two. series: {bars: [[exponent, count]], colour, down, name}; marks: {at, text} in log2.
function histogram(series, marks, notes, label) {
  const width = 440, height = 132, left = 8, right = 8, bottom = 18, top = 6;
  const all = series.flatMap((s) => s.bars).filter((b) => b[1]);
  if (!all.length) return el("p", {class: "empty"}, notes.length ? notes.join(", ") : "nothing that is finite");
  let low = Math.min(...all.map((b) => b[0])) - 1, high = Math.max(...all.map((b) => b[0])) + 2;
  for (const m of marks) if (m.at > low - 8 && m.at < high + 8) { low = Math.min(low, m.at - 1); high = Math.max(high, m.at + 1); }
  if (high - low < 10) { const more = (10 - (high - low)) / 2; low -= more; high += more; }
  const most = Math.max(...all.map((b) => b[1])), twoWays = series.some((s) => s.down && s.bars.some((b) => b[1]));
  const zero = twoWays ? (top + height - bottom) / 2 : height - bottom, room = zero - top;
  const x = (e) => left + (e - low) / (high - low) * (width - left - right);
  const tall = (n) => (n ? Math.max(1.5, room * Math.log1p(n) / Math.log1p(most)) : 0);
  const parts = [], words = [];
  for (const m of marks) {
    if (m.at < low || m.at > high) continue;
    if (m.past) parts.push(svg("rect", {class: "past", x: m.past > 0 ? x(m.at) : left, y: top, width: m.past > 0 ? width - right - x(m.at) : x(m.at) - left, height: height - bottom - top}));
    parts.push(svg("line", {class: "mark", x1: x(m.at), x2: x(m.at), y1: top, y2: height - bottom}));
    words.push(svg("text", {class: "mark", x: x(m.at) + (m.past > 0 ? -3 : 3), y: top + 9, "text-anchor": m.past > 0 ? "end" : "start"}, m.text));
  }
  for (const s of series)
    for (const [e, n] of s.bars) {
      if (!n) continue;
      const h = tall(n);
      parts.push(svg("rect", {class: s.style, x: x(e) + 0.4, width: Math.max(0.8, x(e + 1) - x(e) - 0.8), y: s.down ? zero : zero - h, height: h},
        svg("title", {}, `${s.name}: ${grouped(n)} in [${s.down ? "−" : ""}${short(2 ** e)}, ${s.down ? "−" : ""}${short(2 ** (e + 1))})`)));
    }
  parts.push(svg("line", {class: "axis", x1: left, x2: width - right, y1: zero, y2: zero}));
  const span = power(high) - power(low), every = [1, 2, 3, 4, 5, 10, 20, 50].find((k) => span / k <= 8) || 100;
  for (let d = Math.ceil(power(low) / every) * every; d <= power(high); d += every)
    parts.push(svg("text", {x: clamp(x(d / LOG2), 14, width - 14), y: height - 5, "text-anchor": "middle"}, decade(d)));
  parts.push(...words);  // over the bars
  const chart = svg("svg", {viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label}, parts);
  return el("div", {class: "histogram"}, chart, notes.length ? el("p", {class: "notes"}, notes.join(", ")) : null);
}

function valueHistogram(value, format) {
  const f = data.formats[format], marks = [];
  if (f) {
    marks.push({at: Math.log2(f.max), text: `${format} ends, ${short(f.max, 5)}`, past: 1});
    marks.push({at: Math.log2(f.min_normal), text: "subnormal", past: -1});
  }
  const notes = [];
  if (value.zero) notes.push(`${grouped(value.zero)} zeros`);
  if (value.nan) notes.push(`engine: ${grouped(value.nan)} NaN`);
  if (value.inf) notes.push(`engine: ${grouped(value.inf)} infinite`);
  if (value.truth_unfinite) notes.push(`truth: ${grouped(value.truth_unfinite)} not finite`);
  return histogram([{bars: bins(value.positive), style: "pos", name: "positive"}, {bars: bins(value.negative), style: "neg", name: "negative", down: true}],
    marks, notes, "Histogram of values: magnitudes of truth, positive above the axis, negative below");
}
function errorHistogram(value) {
  const notes = [];
  if (value.own.zero) notes.push(`own error 0 in ${grouped(value.own.zero)}`);
  if (value.total.zero) notes.push(`total error 0 in ${grouped(value.total.zero)}`);
  return histogram([{bars: bins(value.total.at), style: "total", name: "total error"}, {bars: bins(value.own.at), style: "own", name: "own error"}],
    [], notes, "Histogram of magnitudes of own and total errors");
}

// ---- maps ----

const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const UNFINITE = 63, TOP = 62, STEPS = 4;

function paintMap(canvas, map, errors) {
  const plain = map.cells.length === 1;
  canvas.width = plain ? 1 : map.columns;
  canvas.height = plain ? 1 : map.rows;
  const context = canvas.getContext("2d"), image = context.createImageData(canvas.width, canvas.height);
  const bad = parseColour(colours.bad), none = parseColour(colours.exact), dark = isDark();
  for (let i = 0; i < map.cells.length; i++) {
    const code = DIGITS.indexOf(map.cells[i]);
    const grey = dark ? 24 + code / TOP * 220 : 235 - (1 - code / TOP) * 215;
    const rgb = code === UNFINITE ? bad : !errors ? [grey, grey, grey] : code === 0 ? none : ramp(0.1 + 0.9 * (code - 22) / 40);
    image.data.set([...rgb, 255], 4 * i);
  }
  context.putImageData(image, 0, 0);
}
function mapFigure(map, errors, title, value) {
  const canvas = el("canvas", {role: "img", "aria-label": `${title}: map over the last two dimensions`});
  const h = value.shape[value.shape.length - 2], w = value.shape[value.shape.length - 1], aspect = clamp(w / h, 0.4, 2.5);
  canvas.style.aspectRatio = String(aspect);
  paintMap(canvas, map, errors);
  const first = map.cells.length === 1 && errors && map.cells === "A";
  const text = first ? "exact" : map.cells === "_" ? "not finite everywhere" : errors ? `RMS up to ${short(number(map.top))}` : `${short(number(map.bottom))} … ${short(number(map.top))}`;
  return el("figure", {}, canvas, el("figcaption", {}, el("b", {}, title), ` ${text}`));
}
function mapsOf(value) {
  if (!value.maps) return null;
  const leading = value.shape.slice(0, -2).reduce((a, b) => a * b, 1);
  return el("div", {},
    el("h3", {}, "Where ", el("small", {}, `${value.shape.slice(-2).join(" × ")} of the first sample${leading > 1 ? `, ${grouped(leading)} planes taken together` : ""}`)),
    el("div", {class: "maps"}, mapFigure(value.maps.truth, false, "truth", value), mapFigure(value.maps.own, true, "own error", value), mapFigure(value.maps.total, true, "total error", value)));
}
