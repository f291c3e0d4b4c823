// ---- all about one layer ----

const detail = (() => {
  const panel = byId("detail");
  let layer = null;

  const STATISTICS = [
    ["RMS", (s) => short(number(s.rms))], ["largest", (s) => short(number(s.max_abs))], ["largest relative", (s) => short(number(s.max_rel))],
    ["SNR", (s) => (s.mismatched ? "" : decibels(number(s.snr_db)))], ["cosine", (s) => (s.mismatched ? "" : number(s.cosine).toFixed(7).replace(/0+$/, "").replace(/\.$/, ""))],
    ["NaN, Inf", (s) => (s.nan || s.inf ? `${grouped(s.nan)}, ${grouped(s.inf)}` : "")],
  ];
  function statistics(raw) {
    const kinds = [["own", raw.own], ["inherited", raw.inherited], ["total", raw.total]].filter(([, s]) => s);
    if (!kinds.length) return el("p", {class: "empty"}, "no floats leave this layer");
    const rows = STATISTICS.filter(([, get]) => kinds.some(([, s]) => get(s)));
    return el("table", {class: "stats"},
      el("thead", {}, el("tr", {}, el("th", {}, "error"), rows.map(([name]) => el("th", {}, name)))),
      el("tbody", {}, kinds.map(([name, s]) => el("tr", {}, el("th", {}, name), rows.map(([, get]) => {
        const text = get(s);
        return el("td", {class: text === "NaN" ? "bad" : null}, text);
      })))));
  }

  // Elements by how they compare with the bounds, as a bar.
  function judged(raw) {
    const j = raw.judged, parts = [
      ["exact", j.exact, "exact"], ["explained", j.explained, "fine"], ["between", j.between, "warn"], ["flipped", j.flipped, "warn"],
      ["underflowed", raw.underflowed, "warn"], ["overflowed", raw.overflowed, "bad"], ["NaN made here", raw.born_nan, "bad"],
      ["beyond the bound", j.beyond, "bad"], ["without bound", j.unbounded, "none"]];
    const known = parts.reduce((sum, p) => sum + p[1], 0), rest = j.elements - known;
    if (rest > 0) parts.push(["not judged", rest, "none"]);
    if (!j.elements) return null;
    const some = parts.filter((p) => p[1] > 0);
    return el("div", {class: "judged"},
      el("div", {class: "stack", "aria-hidden": "true"}, some.map(([, n, kind]) => el("i", {class: kind, style: `flex-grow:${n / j.elements}`}))),
      el("p", {class: "notes"}, `${many(j.elements, "element")}: `, some.map(([name, n, kind], i) => [i ? ", " : "", el("b", {class: `t-${kind}`}, `${share(n / j.elements)} ${name}`)])));
  }
  const share = (x) => (x === 1 ? "all" : x > 0.9995 ? ">99.9 %" : x < 0.0005 ? "<0.1 %" : `${(100 * x).toFixed(1)} %`);

  function notes(raw) {
    const list = [];
    const culprit = (data.culprits || []).find((c) => c.nodes.some((n) => raw.nodes.includes(n)));
    if (culprit) list.push(el("p", {class: "why"}, culprit.why));
    if (layer.fixed) list.push(el("p", {class: "good"}, "the fix keeps this layer in higher precision"));
    if (raw.at_risk) list.push(el("p", {class: "warn"}, `${many(raw.at_risk.count, "element")} of the hidden value '${raw.at_risk.value}' pass the format's range, up to ${short(number(raw.at_risk.max))}`));
    for (const p of (raw.perturbations || []).slice(0, 3))
      list.push(el("p", {class: "warn"}, `ill-conditioned: an error of ${short(number(p.error_in))} in '${p.input}' leaves as ${short(number(p.error_out))}, ${short(number(p.condition))} times as much`));
    if (raw.gated) list.push(el("p", {}, `run by the gated tactic ${raw.gated.tactic}, own error ${short(number(raw.gated.own_over_plain))} of plain's${raw.gated.holds ? "" : ": it does not keep what was asked"}`));
    if (layer.share !== null) list.push(el("p", {}, `${(100 * layer.share).toFixed(1)} % of an output's error comes from here`));
    return list;
  }
  function neighbours() {
    const most = 8, list = (items) => (items.length > most ? [...items.slice(0, most), el("small", {}, ` and ${items.length - most} more`)] : items);
    const reads = layer.from.map((k) => (k < 0 ? el("span", {class: "chip plain"}, `input ${data.inputs[-1 - k].name}`) : chip(layers[k], "", stateOf(layers[k]))));
    const readers = layer.to.map((k) => chip(layers[k], "", stateOf(layers[k])));
    return el("div", {class: "neighbours"},
      reads.length ? el("p", {}, el("span", {}, "reads "), list(reads)) : null,
      readers.length || layer.outputs.length ? el("p", {}, el("span", {}, "read by "), list([...readers, ...layer.outputs.map((o) => el("span", {class: "chip plain"}, `output ${o}`))])) : null);
  }
  function picture(value) {
    return el("div", {class: "value"},
      el("h3", {class: "name"}, el("bdi", {}, value.name), el("small", {}, ` [${value.shape.join(", ")}]`)),
      el("div", {class: "pair"},
        el("div", {}, el("h3", {}, "Values ", el("small", {}, "of truth, log counts; ", el("span", {class: "t-pos"}, "positive"), " up, ", el("span", {class: "t-neg"}, "negative"), " down")), valueHistogram(value, layer.format)),
        el("div", {}, el("h3", {}, "Errors ", el("small", {}, el("span", {class: "t-own"}, "own"), " before ", el("span", {class: "t-total"}, "total"))), errorHistogram(value))),
      mapsOf(value));
  }
  function paint() {
    if (!layer) return;
    const raw = layer.raw, others = raw.nodes.filter((n) => n !== raw.name);
    panel.replaceChildren(
      el("div", {class: "head"}, el("h2", {title: raw.name}, el("bdi", {}, raw.name)),
        el("span", {class: "facts"}, el("b", {class: `tag ${verdictClass(raw.verdict)}`, title: MEANING[raw.verdict]}, raw.verdict), ` ${raw.op}`, layer.format ? ` in ${layer.format}` : "", raw.runs > 1 ? `, ${many(raw.runs, "run")}` : ""),
        el("span", {class: "buttons"}, el("button", {type: "button", onclick: () => way.set(layer)}, "its way"), el("button", {type: "button", onclick: () => graph.show(layer, true)}, "in graph"))),
      ...notes(raw), neighbours(), statistics(raw), judged(raw) || "",
      others.length ? el("details", {}, el("summary", {}, `stands for ${many(raw.nodes.length, "node")} of the model`), el("p", {class: "names"}, raw.nodes.join(", "))) : "",
      ...layer.values.map(picture));
    panel.scrollTop = 0;
  }
  repaints.push(paint);
  return {show(l) { layer = l; paint(); }};
})();
