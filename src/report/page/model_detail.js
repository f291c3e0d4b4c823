// ---- all about one layer: what it reads and makes, attributes, bodies ----

const detail = (() => {
  const panel = byId("detail"), MOST = 12;
  let layer = null;

  const fewer = (items) => (items.length > MOST ? [...items.slice(0, MOST), el("small", {}, ` and ${items.length - MOST} more`)] : items);

  // Where a value comes from and goes to.
  function ways(v, reading) {
    if (reading) {
      if (v.constant) return el("span", {class: "chip plain"}, "constant");
      const s = sourceOf(v);
      if (v.source && s !== undefined) return s < 0 ? el("span", {class: "chip plain"}, `handed in: ${data.inputs[-1 - s].name}`) : chip(layers[s], "handed in: ");
      return s === undefined ? el("span", {class: "chip plain"}, layer.inner ? "of the body" : "made by nothing") : s < 0 ? el("span", {class: "chip plain"}, "input") : chip(layers[s], "from ");
    }
    const ends = data.outputs.filter((o) => o.value === v).map(() => el("span", {class: "chip plain"}, "output"));
    return fewer([...ends, ...v.readers.map((l) => chip(l, "to "))]);
  }
  function port(v, place, reading) {
    if (!v) return el("li", {}, el("i", {}, String(place)), el("div", {}, el("small", {}, "left out")));
    return el("li", {}, el("i", {}, String(place)), el("div", {},
      el("p", {}, el("bdi", {class: "mono"}, v.name), " ", el("small", {class: "mono"}, v.type || "type not known"), " ", ways(v, reading)),
      statistics(v), v.elements ? el("details", {open: v.elements.length < 60}, el("summary", {}, "elements"), el("pre", {class: "elements", tabindex: "0"}, v.elements)) : null));
  }
  function ports(title, list, reading) {
    if (!list.length) return "";
    return el("div", {class: "ports"}, el("h3", {}, title), el("ol", {}, list.map((v, k) => port(v, k, reading))));
  }
  function attributes(list) {
    if (!list.length) return "";
    return el("div", {class: "ports"}, el("h3", {}, "Attributes"),
      el("dl", {class: "attrs"}, list.flatMap(([name, text]) => [el("dt", {}, name), el("dd", {}, el("pre", {tabindex: text.length > 200 ? "0" : null}, text))])));
  }
  function bodyOf(body) {
    const names = (what, list) => (list.length ? `, ${what} ${list.map((v) => values[v].name).join(", ")}` : "");
    return el("div", {class: "ports"}, el("h3", {}, body.name, el("small", {}, ` ${many(body.layers.length, "layer")}${names("takes", body.inputs)}${names("gives", body.outputs)}`)),
      el("ul", {class: "body"}, body.layers.map((k) => el("li", {}, chip(layers[k], "", layers[k].op)))));
  }
  function facts(raw) {
    return [raw.domain ? `${raw.domain} ` : "", raw.format ? `in ${raw.format}` : "", raw.ran && raw.ran !== raw.format ? `, computed in ${raw.ran}` : "",
      raw.tactic ? `, tactic ${raw.tactic}` : "", raw.reason ? ` (${raw.reason})` : ""];
  }
  function paint() {
    if (!layer) return;
    const raw = layer.raw, others = (raw.nodes || []).filter((n) => n !== raw.name);
    panel.replaceChildren(
      el("div", {class: "head"}, el("h2", {title: raw.name}, el("bdi", {}, raw.name)),
        el("span", {class: "facts"}, el("b", {class: "tag fine"}, raw.op), " ", facts(raw)),
        el("span", {class: "buttons"}, el("button", {type: "button", onclick: () => graph.show(layer, true)}, "in graph"))),
      layer.inner ? el("p", {}, "within ", chip(layer.inner.layer), ` ${layer.inner.body.name}`) : "",
      raw.doc ? el("p", {class: "notes"}, raw.doc) : "",
      ports("Reads", layer.reads, true), ports("Makes", layer.makes, false), attributes(raw.attrs),
      ...raw.bodies.map(bodyOf),
      others.length ? el("details", {}, el("summary", {}, `stands for ${many(raw.nodes.length, "node")} of the model`), el("p", {class: "names"}, raw.nodes.join(", "))) : "");
    panel.scrollTop = 0;
  }
  return {show(l) { layer = l; paint(); }};
})();

// What a file of tensors says of a value.
function statistics(v) {
  const s = v.stats;
  if (!s) return null;
  if (!s.text) return el("p", {class: "notes"}, `saved ${s.type}[${s.shape.join(", ")}]: no numbers`);
  const saved = s.shape.join("×") === sizesOf(v.type) ? "saved" : `saved ${s.shape.join("×")}`;
  const names = STATISTICS.filter((name) => s[name] !== undefined);
  return el("table", {class: "stats", title: s.text},
    el("thead", {}, el("tr", {}, el("th", {}, saved), names.map((name) => el("th", {}, name)))),
    el("tbody", {}, el("tr", {}, el("th", {}, el("small", {}, s.type)), names.map((name) => {
      const text = short(number(s[name]));
      return el("td", {class: /NaN|∞/.test(text) ? "bad" : null}, text);
    }))));
}
