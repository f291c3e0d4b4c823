// ---- the data, in the form in which the parts use it ----

const data = JSON.parse(byId("data").textContent);

// Verdicts from harmless to worst, and how each is shown.
const VERDICTS = ["exact", "rounding", "truth uncertain", "less accurate", "unclassified", "amplified", "flipped", "underflow", "overflow",
  "invalid", "defect"];
const rankOf = (verdict) => VERDICTS.indexOf(verdict);
const MEANING = {
  exact: "truth rounded once to the storage format",
  rounding: "what rounding in the layer's formats explains",
  "truth uncertain": "truth's own rounding leaves it open",
  "less accurate": "a few units of the value's full scale, as approximations are; no output shows it",
  unclassified: "an operator without a bound",
  amplified: "ill-conditioned: a small error that came in left as a large one",
  flipped: "a discrete choice that differs because of what came in",
  underflow: "nonzero values became zero",
  overflow: "values past the format's range",
  invalid: "NaN arises here",
  defect: "more error than rounding can do",
};

// An error relative to what it is an error of; null: no floats; NaN: not finite.
function relative(sums) {
  if (!sums) return null;
  if (sums.mismatched) return NaN;
  const db = number(sums.snr_db);
  return db === Infinity ? 0 : Math.pow(10, -db / 20);
}

// Of large errors the one that sorts last: NaN, then infinity.
const weight = (x) => (x === null ? -1 : Number.isNaN(x) ? Infinity : x);

// The end of a name: "sca.0/CumSum_1".
const lastOf = (name) => name.split("/").filter(Boolean).slice(-2).join("/") || name;

// What a name adds to the operator: "dense" of "/layer.7/dense/MatMul".
function partOf(name, op) {
  const parts = name.split("/").filter(Boolean);
  while (parts.length > 1 && parts[parts.length - 1].replace(/_\d+$/, "") === op) parts.pop();
  const part = parts.pop() || "";
  return part.replace(/_\d+$/, "") === op ? "" : part;
}

function makeLayer(raw, index) {
  const values = raw.values || [];
  return {
    index, raw, values,
    name: raw.name, op: raw.op, verdict: raw.verdict, format: raw.storage || "",
    own: relative(raw.own), inherited: relative(raw.inherited), total: relative(raw.total),
    ownMax: raw.own ? number(raw.own.max_abs) : null,
    largest: raw.total ? number(raw.truth_max) : null,
    ofBound: raw.own && raw.judged.elements ? number(raw.judged.error_over_probable_rms) : null,
    from: raw.from || [],  // layers, and inputs as -1 - k
    to: [],
    outputs: [],           // of the graph
    share: null,
    bad: rankOf(raw.verdict) >= rankOf("amplified"),
    // What the graph leaves out at first: what reads nothing, and what has no floats.
    minor: rankOf(raw.verdict) < rankOf("amplified") && (!(raw.from || []).length || (!raw.own && !values.length)),
    text: `${raw.name} ${raw.op} ${raw.nodes.join(" ")}`.toLowerCase(),
  };
}

const layers = data.layers.map(makeLayer);
for (const layer of layers)
  for (const from of layer.from) if (from >= 0) layers[from].to.push(layer.index);
for (const output of data.outputs)
  if (Number.isInteger(output.layer) && output.layer >= 0) layers[output.layer].outputs.push(output.name);
for (const range of data.shares || []) {
  if (range.layers.length !== 1) continue;
  const layer = layers.find((l) => l.name === range.layers[0]);
  if (layer) layer.share = Math.max(...Object.values(range.share).map((x) => Math.abs(number(x))));
}
const byName = new Map(layers.map((l) => [l.name, l]));
const byNode = new Map(layers.flatMap((l) => l.raw.nodes.map((n) => [n, l])));
const fixed = new Set(data.fix ? data.fix.nodes : []);
for (const layer of layers) layer.fixed = layer.raw.nodes.some((n) => fixed.has(n));

// The state of a layer's outputs in the engine where truth is finite.
function stateOf(layer) {
  const sums = layer.raw.total;
  if (!sums || !sums.mismatched) return "";
  return sums.nan ? "NaN" : "Inf";
}

// Whole decades that hold these errors, but for so large a part of the smallest ones; at most so many.
function decadesOf(errors, leftOut, most) {
  const all = errors.filter((x) => x > 0 && Number.isFinite(x)).map(Math.log10).sort((a, b) => a - b);
  if (!all.length) return {low: -8, high: 0};
  const high = Math.ceil(all[all.length - 1]), low = Math.floor(all[Math.floor(all.length * leftOut)]);
  return {low: clamp(low, high - most, high - 1), high};
}
// The place of an error among decades, [0, 1] for those within.
const placeIn = (decades, error) => (Math.log10(error) - decades.low) / (decades.high - decades.low);
const DECADES = decadesOf(layers.flatMap((l) => [l.own, l.total]), 0, 9);                    // of charts
const SHADES = decadesOf(layers.filter((l) => !l.minor).map((l) => l.own), 0.25, 4);         // of colours

// The colour of a layer: by own error, but for verdicts that speak for themselves.
function colourOf(layer) {
  if (layer.exported || rankOf(layer.verdict) >= rankOf("overflow") || Number.isNaN(layer.own)) return colours.bad;
  if (layer.bad) return colours.warn;
  if (!layer.own) return colours.exact;
  return css(ramp(placeIn(SHADES, layer.own)));
}
function verdictClass(verdict) {
  const rank = rankOf(verdict);
  if (rank >= rankOf("overflow")) return "bad";
  if (rank >= rankOf("amplified")) return "warn";
  return rank === 0 ? "exact" : "fine";
}

const layerOf = (culprit) => culprit.nodes.map((n) => byNode.get(n) || byName.get(n)).find(Boolean);
// Layers that read something, those that err most first.
const byOwnError = layers.filter((l) => l.own > 0 && l.from.length).sort((a, b) => (b.share ?? -1) - (a.share ?? -1) || b.own - a.own);
// The first culprit, if there is one.
for (const c of data.culprits || []) {
  const layer = layerOf(c);
  if (layer && c.verdict === "export") layer.exported = layer.bad = true;  // differs from golden by itself
}
const culprit = (data.culprits || []).map(layerOf).find(Boolean) || null;
