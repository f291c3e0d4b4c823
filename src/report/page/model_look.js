// ---- how a model's layers look: what graph.js, table.js and keys.js ask for ----

// What layers are told apart by, in colours and chips.
const KINDS = [
  ["operator", (l) => l.op],
  ["format", (l) => l.raw.format],
  ["ran in", (l) => l.raw.ran],
  ["tactic", (l) => l.raw.tactic],
  ["type", (l) => (firstMade(l) ? elementOf(firstMade(l).type) : "")],
].filter(([name, get]) => name === "operator" || layers.some(get));

const kinds = (() => {
  const HUES = [212, 28, 145, 275, 0, 185, 50, 322, 95, 245, 165, 12];  // neighbours differ
  let get = KINDS[0][1], places = new Map(), painted = new Map();
  const of = (l) => get(l) || "—";

  // Most frequent first: they get the hues, the rest is grey. Constants, which are not drawn at first, come behind.
  function count() {
    const counts = new Map();
    for (const l of layers) counts.set(of(l), (counts.get(of(l)) || 0) + (l.minor ? 1e-6 : 1));
    const order = [...counts.keys()].sort((a, b) => counts.get(b) - counts.get(a) || (a < b ? -1 : 1));
    places = new Map(order.map((word, k) => [word, k]));
    paint();
  }
  function paint() {
    painted = new Map([...places].map(([word, k]) => [word, css(k < HUES.length ? rgbOf(HUES[k]) : greyOf())]));
  }
  const greyOf = () => (isDark() ? [72, 84, 97] : [205, 212, 220]);
  function rgbOf(hue) {
    const s = isDark() ? 0.42 : 0.62, l = isDark() ? 0.42 : 0.76;
    const part = (n) => {
      const k = (n + hue / 30) % 12;
      return Math.round(255 * (l - s * Math.min(l, 1 - l) * Math.max(-1, Math.min(k - 3, 9 - k, 1))));
    };
    return [part(0), part(8), part(4)];
  }
  return {
    count, paint, of, colour: (l) => painted.get(of(l)) || colours.exact,
    order: () => [...places.keys()], colourOfWord: (word) => painted.get(word),
    choose(name) { get = KINDS.find(([n]) => n === name)[1]; count(); },
  };
})();

const output = (l) => (firstMade(l) ? firstMade(l).type : "");
const textColumn = (key, title, hint, get) => ({key, title, hint, get, show: get});
const numberColumn = (name) => ({key: name, title: name, hint: `${name} of the layer's output in the file of tensors`,
  get: (l) => statOf(l, name) ?? -Infinity, show: (l) => short(statOf(l, name)), numeric: true, first: "down"});

const look = {
  colour: kinds.colour,
  // At the right of a node, where there is room for it.
  note(l, room) {
    const text = isPlan ? l.format : firstMade(l) ? shapeOf(firstMade(l).type) : "";
    return text.length <= room ? text : "";
  },
  alarms: () => false,
  tip: (l) => `${l.op}${l.format ? ` in ${l.format}, ${l.raw.tactic}` : ""} → ${l.makes.filter(Boolean).map((v) => v.type || v.name).join(", ") || "nothing"}`,
  legend: () => [],
  columns: [
    {key: "index", title: "#", hint: "in the order of the file", get: (l) => l.index, show: (l) => String(l.index), numeric: true},
    {key: "name", title: "layer", get: (l) => l.name, show: (l) => l.name, wide: true},
    textColumn("op", "op", null, (l) => l.op),
    {...textColumn("output", "output", "type and shape of its first output", output), wide: true},
    ...(isPlan ? [textColumn("format", "format", "that its outputs are stored in", (l) => l.format), textColumn("tactic", "tactic", "the kernel that ran it", (l) => l.raw.tactic)] : []),
    ...(hasStats ? ["mean", "min", "max"].map(numberColumn) : []),
  ],
  sort: {key: "index", down: false},
  facet: kinds.of,
  facets: () => kinds.order().map((word) => [word, "", null, kinds.colourOfWord(word)]),
  words: {
    op: (l, rest) => l.op.toLowerCase().includes(rest),
    in: (l, rest) => l.format.includes(rest),
    tactic: (l, rest) => (l.raw.tactic || "").toLowerCase().includes(rest),
    reads: (l, rest) => l.reads.some((v) => v && v.name.toLowerCase().includes(rest)),
    makes: (l, rest) => l.makes.some((v) => v && v.name.toLowerCase().includes(rest)),
  },
  isNotable: (l) => l.outputs.length > 0 || l.raw.bodies.length > 0,
  first: () => layers.find((l) => !l.minor) || layers[0],
  said: (l) => `${l.name}, ${l.op}${l.format ? `, ${l.format}` : ""}, ${output(l)}`,
  show: () => {},
  keys: [],
};

function chip(layer, before, after) {
  return el("button", {type: "button", class: "chip", title: `${layer.name} (${layer.op})`, onclick: () => { select(layer, "chip"); graph.show(layer, false); }},
    before ? el("em", {}, before) : null, lastOf(layer.name), after ? el("small", {}, ` ${after}`) : null);
}
