// ---- how a check's layers look: what graph.js, table.js and keys.js ask for ----

const look = {
  colour: colourOf,
  // At the right of a node, and whether that is an alarm.
  note: (l) => stateOf(l) || (l.own ? short(l.own, 2) : ""),
  alarms: (l) => stateOf(l) && !l.own,
  tip: (l) => `${l.op}: ${l.verdict}${l.format ? ` in ${l.format}` : ""}${l.own === null ? "" : `, own ${short(l.own)}, total ${stateOf(l) || short(l.total)}`}`,
  legend() {
    const stops = colours.ramp.map(css).join(",");
    return [
      el("span", {title: "RMS of own error over RMS of the values"}, "own error"),
      el("span", {class: "key"}, el("i", {style: `background:${colours.exact}`}), "0"),
      el("span", {class: "key"}, decade(SHADES.low), el("i", {class: "wide", style: `background:linear-gradient(90deg,${stops})`}), decade(SHADES.high)),
      el("span", {class: "key"}, el("i", {style: `background:${colours.warn}`}), "warning"),
      el("span", {class: "key"}, el("i", {style: `background:${colours.bad}`}), "broken")];
  },
  columns: [
    {key: "index", title: "#", hint: "in the order in which they run", get: (l) => l.index, show: (l) => String(l.index), numeric: true},
    {key: "name", title: "layer", get: (l) => l.name, show: (l) => l.name, wide: true},
    {key: "op", title: "op", get: (l) => l.op, show: (l) => l.op},
    {key: "verdict", title: "verdict", get: (l) => (l.exported ? VERDICTS.length : rankOf(l.verdict)), show: (l) => l.verdict, first: "down",
      cell: (l, text) => el("b", {class: `tag ${l.exported ? "bad" : verdictClass(l.verdict)}`}, l.exported ? "export" : text)},
    {key: "format", title: "format", hint: "that its outputs are stored in", get: (l) => l.format, show: (l) => l.format},
    {key: "own", title: "own", hint: "RMS own error over RMS of the values: what the layer did", get: (l) => weight(l.own), show: (l) => (l.own === null ? "" : Number.isNaN(l.own) ? (l.raw.own.nan ? "NaN" : "∞") : short(l.own)), numeric: true, first: "down"},
    {key: "inherited", title: "inherited", hint: "what came in, amplified", get: (l) => weight(l.inherited), show: (l) => (l.inherited === null ? "" : short(l.inherited)), numeric: true, first: "down"},
    {key: "total", title: "total", hint: "engine against truth", get: (l) => weight(l.total), show: (l) => (l.total === null ? "" : stateOf(l) || short(l.total)), numeric: true, first: "down"},
    {key: "bound", title: "of bound", hint: "own error, storing aside, over the probable rounding bound (RMS)", get: (l) => l.ofBound ?? -1, show: (l) => (l.ofBound ? short(l.ofBound, 2) : ""), numeric: true, first: "down"},
    {key: "largest", title: "largest", hint: "largest magnitude in truth", get: (l) => l.largest ?? -1, show: (l) => short(l.largest), numeric: true, first: "down"},
  ],
  sort: {key: data.blame === "export" ? "verdict" : "own", down: true},
  // Chips above the table: [word, class, hint, colour] of those that layers have.
  facet: (l) => l.verdict,
  facets: (counts) => VERDICTS.filter((v) => counts.has(v)).reverse().map((v) => [v, verdictClass(v), MEANING[v], null]),
  // Words of the search: "KEY:REST".
  words: {
    op: (l, rest) => l.op.toLowerCase().includes(rest),
    is: (l, rest) => l.verdict.includes(rest) || (rest === "fixed" && l.fixed) || (rest === "bad" && l.bad),
    in: (l, rest) => l.format.includes(rest),
  },
  isNotable: (l) => l.bad || l.outputs.length > 0,
  first: () => culprit || byOwnError[0] || layers[0],
  said: (l) => `${l.name}, ${l.op}, ${l.verdict}${l.own === null ? "" : `, own error ${short(l.own)}`}`,
  show: (l) => way.show(l),
  keys: [["w", "the error's way from the layer on", () => current && way.set(current)]],
};
if (layers.some((l) => l.share !== null))
  look.columns.push({key: "share", title: "share", hint: "of an output's error", get: (l) => l.share ?? -1, show: (l) => (l.share === null ? "" : `${(100 * l.share).toFixed(1)} %`), numeric: true, first: "down"});
