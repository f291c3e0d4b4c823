// ---- the table: rows in sight only, sorted and filtered ----

const table = (() => {
  const ROW = 24, body = byId("tbody"), space = byId("tspace"), search = byId("search");
  let rows = layers, sort = {column: look.columns.find((c) => c.key === look.sort.key), down: look.sort.down}, chosen = null, wanted = new Set();  // of the chips
  const drawn = new Map();  // row -> element

  // ---- which rows ----

  // Words of the search: "op:Conv" and what else look.words has, or part of a name; all have to hold.
  function matcher(text) {
    const tests = text.trim().toLowerCase().split(/\s+/).filter(Boolean).map((word) => {
      const [, key, rest] = word.match(/^(\w+):(.*)$/) || [];
      const test = key && Object.hasOwn(look.words, key) ? look.words[key] : null;
      return test ? (l) => test(l, rest) : (l) => l.text.includes(word);
    });
    return (layer) => tests.every((t) => t(layer));
  }
  function refresh() {
    const match = matcher(search.value), {column, down} = sort;
    rows = layers.filter((l) => match(l) && (!wanted.size || wanted.has(look.facet(l))));
    const sign = down ? -1 : 1;
    rows.sort((a, b) => {
      const x = column.get(a), y = column.get(b);
      return (x < y ? -1 : x > y ? 1 : 0) * sign || a.index - b.index;
    });
    const some = search.value.trim() !== "" || wanted.size > 0;
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
      look.columns.map((column) => {
        const text = column.show(layer), broken = text === "NaN" || text === "∞" || text === "Inf";
        return el("span", {role: "gridcell", class: `c-${column.key}${column.numeric ? " num" : ""}${broken ? " bad" : ""}`, title: column.wide ? text : null},
          column.cell ? column.cell(layer, text)
            : column.key === "name" ? [el("i", {class: "swatch", style: `background:${look.colour(layer)}`}), el("bdi", {}, text)] : text);
      }));
  }
  function head() {
    byId("thead").replaceChildren(...look.columns.map((column) => {
      const on = sort.column === column;
      return el("button", {type: "button", role: "columnheader", class: `c-${column.key}${column.numeric ? " num" : ""}`, title: column.hint,
        "aria-sort": on ? (sort.down ? "descending" : "ascending") : "none", onclick: () => sortBy(column)},
        column.title, on ? el("i", {"aria-hidden": "true"}, sort.down ? " ▾" : " ▴") : null);
    }));
  }
  function sortBy(column) {
    sort = {column, down: sort.column === column ? !sort.down : column.first === "down"};
    head();
    byId("thead").children[look.columns.indexOf(column)].focus();
    body.scrollTop = 0;
    refresh();
    say(`sorted by ${column.title}, ${sort.down ? "largest" : "smallest"} first`);
  }
  function chips() {
    const counts = new Map();
    for (const l of layers) counts.set(look.facet(l), (counts.get(look.facet(l)) || 0) + 1);
    byId("chips").replaceChildren(...look.facets(counts).map(([v, kind, hint, swatch]) =>
      el("button", {type: "button", class: `chip ${kind}`, "aria-pressed": wanted.has(v) ? "true" : "false", title: hint, onclick: (e) => {
        if (!wanted.delete(v)) wanted.add(v);
        e.currentTarget.setAttribute("aria-pressed", wanted.has(v));
        body.scrollTop = 0;
        refresh();
      }}, swatch ? el("i", {class: "swatch", style: `background:${swatch}`}) : null, v, el("small", {}, ` ${grouped(counts.get(v))}`))));
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
    clear() { search.value = ""; wanted.clear(); chips(); refresh(); if (chosen) reveal(chosen); },
    filtered: () => search.value !== "" || wanted.size > 0,
    // Other chips, without any chosen; the same in other colours.
    regroup() { wanted.clear(); chips(); refresh(); },
    chips,
    // The next layer that is worth looking at, in the order in which they run.
    problem(step) {
      const bad = layers.filter(look.isNotable);
      const at = chosen ? chosen.index : step > 0 ? -1 : layers.length;
      const next = step > 0 ? bad.find((l) => l.index > at) : bad.reverse().find((l) => l.index < at);
      return next || null;
    },
  };
})();
