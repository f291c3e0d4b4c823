// ---- the table: rows in sight only, sorted and filtered ----

const COLUMNS = [
  {key: "index", title: "#", hint: "in the order in which they run", get: (l) => l.index, show: (l) => String(l.index), numeric: true},
  {key: "name", title: "layer", get: (l) => l.name, show: (l) => l.name, wide: true},
  {key: "op", title: "op", get: (l) => l.op, show: (l) => l.op},
  {key: "verdict", title: "verdict", get: (l) => (l.exported ? VERDICTS.length : rankOf(l.verdict)), show: (l) => l.verdict, first: "down"},
  {key: "format", title: "format", hint: "that its outputs are stored in", get: (l) => l.format, show: (l) => l.format},
  {key: "own", title: "own", hint: "RMS own error over RMS of the values: what the layer did", get: (l) => weight(l.own), show: (l) => (l.own === null ? "" : Number.isNaN(l.own) ? (l.raw.own.nan ? "NaN" : "∞") : short(l.own)), numeric: true, first: "down"},
  {key: "inherited", title: "inherited", hint: "what came in, amplified", get: (l) => weight(l.inherited), show: (l) => (l.inherited === null ? "" : short(l.inherited)), numeric: true, first: "down"},
  {key: "total", title: "total", hint: "engine against truth", get: (l) => weight(l.total), show: (l) => (l.total === null ? "" : stateOf(l) || short(l.total)), numeric: true, first: "down"},
  {key: "bound", title: "of bound", hint: "own error, storing aside, over the probable rounding bound (RMS)", get: (l) => l.ofBound ?? -1, show: (l) => (l.ofBound ? short(l.ofBound, 2) : ""), numeric: true, first: "down"},
  {key: "largest", title: "largest", hint: "largest magnitude in truth", get: (l) => l.largest ?? -1, show: (l) => short(l.largest), numeric: true, first: "down"},
];
if (layers.some((l) => l.share !== null))
  COLUMNS.push({key: "share", title: "share", hint: "of an output's error", get: (l) => l.share ?? -1, show: (l) => (l.share === null ? "" : `${(100 * l.share).toFixed(1)} %`), numeric: true, first: "down"});

const table = (() => {
  const ROW = 24, body = byId("tbody"), space = byId("tspace"), search = byId("search");
  let rows = layers, sort = {column: COLUMNS.find((c) => c.key === (data.blame === "export" ? "verdict" : "own")), down: true}, shown = null, chosen = null, verdicts = new Set();
  const drawn = new Map();  // row -> element

  // ---- which rows ----

  // Words of the search: "op:Conv", "is:overflow", "in:fp16", or part of a name; all have to hold.
  function matcher(text) {
    const tests = text.trim().toLowerCase().split(/\s+/).filter(Boolean).map((word) => {
      const [, key, rest] = word.match(/^(op|is|in):(.*)$/) || [null, null, word];
      if (key === "op") return (l) => l.op.toLowerCase().includes(rest);
      if (key === "is") return (l) => l.verdict.includes(rest) || (rest === "fixed" && l.fixed) || (rest === "bad" && l.bad);
      if (key === "in") return (l) => l.format.includes(rest);
      return (l) => l.text.includes(rest);
    });
    return (layer) => tests.every((t) => t(layer));
  }
  function refresh() {
    const match = matcher(search.value), {column, down} = sort;
    rows = layers.filter((l) => match(l) && (!verdicts.size || verdicts.has(l.verdict)));
    const sign = down ? -1 : 1;
    rows.sort((a, b) => {
      const x = column.get(a), y = column.get(b);
      return (x < y ? -1 : x > y ? 1 : 0) * sign || a.index - b.index;
    });
    const some = search.value.trim() !== "" || verdicts.size > 0;
    graph.filter(some ? new Set(rows) : null);
    byId("count").textContent = some ? `${grouped(rows.length)} of ${grouped(layers.length)}` : grouped(layers.length);
    space.style.height = `${rows.length * ROW}px`;
    for (const e of drawn.values()) e.remove();
    drawn.clear();
    byId("table").setAttribute("aria-rowcount", rows.length + 1);
    draw();
  }

  // ---- drawing ----

  function draw() {
    const first = Math.max(0, Math.floor(body.scrollTop / ROW) - 6);
    const last = Math.min(rows.length - 1, Math.ceil((body.scrollTop + body.clientHeight) / ROW) + 6);
    for (const [k, e] of drawn)
      if (k < first || k > last) {
        e.remove();
        drawn.delete(k);
      }
    for (let k = first; k <= last; k++)
      if (!drawn.has(k)) {
        const e = rowOf(rows[k], k);
        drawn.set(k, e);
        space.append(e);
      }
    const active = rows.indexOf(chosen);
    for (const [k, e] of drawn) e.setAttribute("aria-selected", k === active);
    if (active >= 0 && drawn.has(active)) body.setAttribute("aria-activedescendant", `row-${chosen.index}`);
    else body.removeAttribute("aria-activedescendant");
  }
  function rowOf(layer, k) {
    return el("div", {class: `row${layer.fixed ? " fixed" : ""}`, role: "row", id: `row-${layer.index}`, "aria-rowindex": k + 2, style: `top:${k * ROW}px`, onclick: () => select(layer, "table")},
      COLUMNS.map((column) => {
        const text = column.show(layer), broken = text === "NaN" || text === "∞" || text === "Inf";
        return el("span", {role: "gridcell", class: `c-${column.key}${column.numeric ? " num" : ""}${broken ? " bad" : ""}`, title: column.wide ? text : null},
          column.key === "verdict" ? el("b", {class: `tag ${layer.exported ? "bad" : verdictClass(layer.verdict)}`}, layer.exported ? "export" : text)
            : column.key === "name" ? [el("i", {class: "swatch", style: `background:${colourOf(layer)}`}), el("bdi", {}, text)] : text);
      }));
  }
  function head() {
    byId("thead").replaceChildren(...COLUMNS.map((column) => {
      const on = sort.column === column;
      return el("button", {type: "button", role: "columnheader", class: `c-${column.key}${column.numeric ? " num" : ""}`, title: column.hint,
        "aria-sort": on ? (sort.down ? "descending" : "ascending") : "none", onclick: () => sortBy(column)},
        column.title, on ? el("i", {"aria-hidden": "true"}, sort.down ? " ▾" : " ▴") : null);
    }));
  }
  function sortBy(column) {
    sort = {column, down: sort.column === column ? !sort.down : column.first === "down"};
    head();
    byId("thead").children[COLUMNS.indexOf(column)].focus();
    body.scrollTop = 0;
    refresh();
    say(`sorted by ${column.title}, ${sort.down ? "largest" : "smallest"} first`);
  }
  function chips() {
    const counts = new Map();
    for (const l of layers) counts.set(l.verdict, (counts.get(l.verdict) || 0) + 1);
    const present = VERDICTS.filter((v) => counts.has(v)).reverse();
    byId("chips").replaceChildren(...present.map((v) =>
      el("button", {type: "button", class: `chip ${verdictClass(v)}`, "aria-pressed": "false", title: MEANING[v], onclick: (e) => {
        if (!verdicts.delete(v)) verdicts.add(v);
        e.currentTarget.setAttribute("aria-pressed", verdicts.has(v));
        body.scrollTop = 0;
        refresh();
      }}, v, el("small", {}, ` ${grouped(counts.get(v))}`))));
  }

  // ---- moving ----

  function reveal(layer) {
    const k = rows.indexOf(layer);
    if (k < 0) return;
    const top = k * ROW;
    if (top < body.scrollTop) body.scrollTop = top;
    else if (top + ROW > body.scrollTop + body.clientHeight) body.scrollTop = top + ROW - body.clientHeight;
  }
  function move(to) {
    if (rows.length) select(rows[clamp(to, 0, rows.length - 1)], "table");
  }
  body.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const at = rows.indexOf(chosen), page = Math.max(1, Math.floor(body.clientHeight / ROW) - 1);
    const to = {ArrowDown: at + 1, ArrowUp: Math.max(0, at - 1), j: at + 1, k: Math.max(0, at - 1), PageDown: at + page, PageUp: Math.max(0, at - page), Home: 0, End: rows.length - 1}[e.key];
    if (to !== undefined) move(to);
    else if (e.key === "Enter" && chosen) byId("detail").focus();
    else return;
    e.preventDefault();
  });
  body.addEventListener("scroll", () => {
    byId("thead").scrollLeft = body.scrollLeft;
    requestAnimationFrame(draw);
  }, {passive: true});
  search.addEventListener("input", () => { body.scrollTop = 0; refresh(); });
  search.addEventListener("keydown", (e) => {
    if (e.key !== "Enter" && e.key !== "ArrowDown") return;
    if (rows.length) move(rows.includes(chosen) && e.key === "Enter" ? (rows.indexOf(chosen) + 1) % rows.length : 0);
    if (e.key === "ArrowDown") body.focus();
    e.preventDefault();
  });
  new ResizeObserver(draw).observe(body);
  repaints.push(refresh);

  return {
    start() { head(); chips(); refresh(); },
    focus: () => body.focus(),
    show(layer) { chosen = layer; reveal(layer); draw(); },
    clear() { search.value = ""; verdicts.clear(); chips(); refresh(); if (chosen) reveal(chosen); },
    filtered: () => search.value !== "" || verdicts.size > 0,
    // The next layer that is worth looking at, in the order in which they run.
    problem(step) {
      const bad = layers.filter((l) => l.bad || l.outputs.length);
      const at = chosen ? chosen.index : step > 0 ? -1 : layers.length;
      const next = step > 0 ? bad.find((l) => l.index > at) : bad.reverse().find((l) => l.index < at);
      return next || null;
    },
  };
})();
