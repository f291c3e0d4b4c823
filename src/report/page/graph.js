// ---- the graph: what is in sight, and moving about in it ----

const graph = (() => {
  const canvas = byId("graph-view"), overview = byId("graph-map"), tip = byId("graph-tip");
  const view = {scale: 1, x: 0, y: 0, chosen: null, matches: null};  // the point x, y of the graph is the canvas's corner
  let nodes = [], layout = null, bands = new Map(), waiting = false, painted = null;
  let marked = [], ink = null;   // layers of a way through the graph, in order, and what gives its colour
  let wanted = null;  // layers that the search leaves; null: all

  // Nodes in an order in which each stands behind those it reads: inputs, layers, outputs.
  function build() {
    const all = byId("graph-all").checked, place = new Map(), from = [];
    nodes = [];
    const add = (key, node, sources) => {
      place.set(key, nodes.length);
      node.id = nodes.length;
      nodes.push(node);
      from.push([...new Set(sources.map((s) => place.get(s)).filter((s) => s !== undefined))]);
    };
    data.inputs.forEach((input, k) => {
      const used = layers.some((l) => l.from.includes(-1 - k) && (all || !l.minor));
      if (used) add(-1 - k, {title: input.name, input}, []);
    });
    for (const layer of layers) if (all || !layer.minor || layer.outputs.length) add(layer.index, {title: layer.op, part: partOf(layer.name, layer.op), layer}, layer.from);
    data.outputs.forEach((output, k) => {
      if (Number.isInteger(output.layer)) add(`out${k}`, {title: output.name, output}, [output.layer]);
    });
    layout = layoutGraph(from);
    layout.to = from.map(() => []);
    from.forEach((list, v) => list.forEach((u) => layout.to[u].push(v)));
    bands = edgeBands(layout);
    painted = null;
    nodes.byLayer = new Map(nodes.filter((n) => n.layer).map((n) => [n.layer, n]));
    filter(wanted);
  }

  // ---- drawing ----

  function paint() {
    waiting = false;
    const s = sharpen(canvas);
    if (!s || !layout) return;
    const c = s.context;
    keepInside(s);
    c.save();
    c.scale(view.scale, view.scale);
    c.translate(-view.x, -view.y);
    const first = Math.floor(view.y / layout.step) - 1, last = Math.ceil((view.y + s.height / view.scale) / layout.step) + 1;
    c.strokeStyle = colours.edge;
    c.lineWidth = clamp(1 / view.scale, 1, 2.5);
    for (let k = Math.floor(first / BAND); k <= Math.floor(last / BAND); k++) if (bands.has(k)) c.stroke(bands.get(k));
    paintMarked(c);
    paintChosen(c);
    for (let r = Math.max(0, first); r <= last && r < layout.rows.length; r++)
      for (const v of layout.rows[r]) drawNode(c, nodes[v], layout.x[v], layout.y[v], view);
    c.restore();
    paintOverview(s);
    canvas.dataset.zoom = view.scale.toFixed(4);
    canvas.dataset.place = `${Math.round(view.x)},${Math.round(view.y)}`;
  }
  function redraw() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(paint);
  }
  function strokePairs(c, pairs, colour, width) {
    const path = new Path2D();
    for (const [u, v] of pairs) if (layout.from[v].includes(u)) tracePath(path, layout.path(u, v));
    c.strokeStyle = colour;
    c.lineWidth = Math.max(width, width * 0.6 / view.scale);
    c.stroke(path);
  }
  function paintMarked(c) {
    const ids = marked.map((l) => nodes.byLayer.get(l)).filter(Boolean).map((n) => n.id);
    if (ids.length > 1) strokePairs(c, ids.slice(1).map((v, i) => [ids[i], v]), ink(), 3);
  }
  function paintChosen(c) {
    if (!view.chosen) return;
    const v = view.chosen.id;
    strokePairs(c, [...layout.from[v].map((u) => [u, v]), ...layout.to[v].map((w) => [v, w])], colours.select, 2.5);
  }

  // The whole, at the side: rows and columns have scales of their own, so that tall graphs can be seen.
  function overviewScale() {
    const box = layout.box;
    const most = 0.2;
    return {x: Math.min(most, (overview.clientWidth - 8) / (box.right - box.left)), y: Math.min(most, (overview.clientHeight - 4) / (box.bottom - box.top))};
  }
  function paintOverview(s) {
    const o = sharpen(overview);
    if (!o) return;
    const k = overviewScale(), box = layout.box;
    if (!painted || painted.width !== overview.width || painted.height !== overview.height || painted.ink !== colours.bg) {
      painted = el("canvas");
      painted.width = overview.width;
      painted.height = overview.height;
      painted.ink = colours.bg;
      const c = painted.getContext("2d");
      c.scale(o.ratio, o.ratio);
      const draw = (node) => {
        c.fillStyle = node.layer ? look.colour(node.layer) : colours.dim;
        const w = Math.max(3, NODE.width * k.x), h = Math.max(1.2, NODE.height * k.y);
        c.fillRect(4 + (layout.x[node.id] - box.left) * k.x - w / 2, 2 + (layout.y[node.id] - box.top) * k.y, w, h);
      };
      nodes.filter((n) => !n.layer || !n.layer.bad).forEach(draw);
      nodes.filter((n) => n.layer && n.layer.bad).forEach(draw);
    }
    o.context.setTransform(1, 0, 0, 1, 0, 0);
    o.context.drawImage(painted, 0, 0);
    o.context.setTransform(o.ratio, 0, 0, o.ratio, 0, 0);
    o.context.strokeStyle = colours.select;
    o.context.lineWidth = 1.5;
    const x = 4 + (view.x - box.left) * k.x, y = 2 + (view.y - box.top) * k.y;
    const left = Math.max(1, x), top = Math.max(1, y);
    o.context.strokeRect(left, top, Math.max(4, Math.min(o.width - 1, x + s.width / view.scale * k.x) - left),
      Math.max(4, Math.min(o.height - 1, y + s.height / view.scale * k.y) - top));
  }

  // ---- moving ----

  // Some of the graph stays in sight; one that fits is centred, and begins at the top.
  function keepInside(s) {
    const box = layout.box, w = s.width / view.scale, h = s.height / view.scale, margin = 60;
    const keep = (at, size, low, high, fits) => (high - low + 2 * margin < size ? fits : clamp(at, low - margin, high + margin - size));
    view.x = keep(view.x, w, box.left, box.right, (box.left + box.right - w) / 2);
    view.y = keep(view.y, h, box.top, box.bottom, box.top - margin / 2);
  }
  function pan(dx, dy) {
    const before = view.y;
    view.x += dx / view.scale;
    view.y += dy / view.scale;
    keepInside({width: canvas.clientWidth, height: canvas.clientHeight});
    redraw();
    return view.y !== before;
  }
  function zoom(factor, at) {
    const px = at ? at[0] : canvas.clientWidth / 2, py = at ? at[1] : canvas.clientHeight / 2;
    const scale = clamp(view.scale * factor, fitScale() * 0.9, 3);
    view.x += px / view.scale - px / scale;
    view.y += py / view.scale - py / scale;
    view.scale = scale;
    redraw();
  }
  function fitScale() {
    const box = layout.box;
    return Math.min(1.2, (canvas.clientWidth - 20) / (box.right - box.left), (canvas.clientHeight - 20) / (box.bottom - box.top));
  }
  function fit() {
    view.scale = fitScale();
    view.x = (layout.box.left + layout.box.right - canvas.clientWidth / view.scale) / 2;
    view.y = (layout.box.top + layout.box.bottom - canvas.clientHeight / view.scale) / 2;
    redraw();
  }
  function centre(node, scale) {
    if (scale) view.scale = scale;
    view.x = layout.x[node.id] - canvas.clientWidth / view.scale / 2;
    view.y = layout.y[node.id] + NODE.height / 2 - canvas.clientHeight / view.scale / 2;
    redraw();
  }

  // ---- what others ask for ----

  function show(layer, far) {
    if (layer && !nodes.byLayer.has(layer)) {
      byId("graph-all").checked = true;
      build();
    }
    view.chosen = layer ? nodes.byLayer.get(layer) : null;
    if (view.chosen && (far || !inSight(view.chosen))) centre(view.chosen, Math.max(view.scale, 0.75));
    redraw();
  }
  function inSight(node) {
    const x = (layout.x[node.id] - view.x) * view.scale, y = (layout.y[node.id] - view.y) * view.scale;
    return view.scale > 0.42 && x > 60 && x < canvas.clientWidth - 60 && y > 30 && y < canvas.clientHeight - 50;
  }
  function filter(set) {
    wanted = set;
    view.matches = set ? new Set(nodes.filter((n) => n.layer && set.has(n.layer))) : null;
    redraw();
  }
  function mark(path, colour) {
    marked = path;
    ink = colour;
    redraw();
  }

  // ---- pointer and keys ----

  function nodeAt(px, py) {
    const x = px / view.scale + view.x, y = py / view.scale + view.y, row = layout.rows[Math.floor(y / layout.step)];
    if (!row || y % layout.step > NODE.height) return null;
    const v = row.find((u) => Math.abs(layout.x[u] - x) <= NODE.width / 2);
    return v === undefined ? null : nodes[v];
  }
  const pointers = new Map();
  let moved = 0, apart = 0;
  const local = (e) => {
    const box = canvas.getBoundingClientRect();
    return [e.clientX - box.left, e.clientY - box.top];
  };
  const spread = () => {
    const [a, b] = [...pointers.values()];
    return {d: Math.hypot(a[0] - b[0], a[1] - b[1]), at: [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2]};
  };
  canvas.addEventListener("pointerdown", (e) => {
    canvas.setPointerCapture(e.pointerId);
    pointers.set(e.pointerId, local(e));
    moved = 0;
    if (pointers.size === 2) apart = spread().d;
  });
  canvas.addEventListener("pointermove", (e) => {
    const at = local(e), was = pointers.get(e.pointerId);
    if (!was) return hover(e, at);
    pointers.set(e.pointerId, at);
    if (pointers.size === 2) {
      const s = spread();
      zoom(s.d / apart, s.at);
      apart = s.d;
      moved = 99;
    } else {
      moved += Math.abs(at[0] - was[0]) + Math.abs(at[1] - was[1]);
      if (moved > 4) pan(was[0] - at[0], was[1] - at[1]);
    }
  });
  const lift = (e) => {
    const at = pointers.get(e.pointerId);
    pointers.delete(e.pointerId);
    const node = at && moved <= 4 ? nodeAt(...at) : null;
    if (node && e.type === "pointerup") choose(node);
  };
  canvas.addEventListener("pointerup", lift);
  canvas.addEventListener("pointercancel", lift);
  canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
  canvas.addEventListener("dblclick", (e) => zoom(1.6, local(e)));
  canvas.addEventListener("wheel", (e) => {
    const unit = e.deltaMode === 1 ? 18 : 1;
    if (e.ctrlKey || e.metaKey) zoom(Math.exp(-e.deltaY * unit * 0.004), local(e));
    else if (!pan(e.deltaX * unit, e.deltaY * unit)) return;  // at its end the page goes on
    e.preventDefault();
  }, {passive: false});
  function hover(e, at) {
    const node = nodeAt(...at);
    canvas.style.cursor = node ? "pointer" : "grab";
    tip.hidden = !node;
    if (!node) return;
    const l = node.layer;
    tip.replaceChildren(el("b", {}, l ? l.name : node.title), el("div", {}, l ? look.tip(l) : node.input ? `input ${node.input.type}` : `output ${node.output.type || ""}`));
    tip.style.left = `${clamp(at[0] + 14, 0, Math.max(0, canvas.clientWidth - tip.offsetWidth - 8))}px`;
    tip.style.top = `${at[1] + 18 + tip.offsetHeight > canvas.clientHeight ? at[1] - tip.offsetHeight - 10 : at[1] + 18}px`;
  }
  const choose = (node) => {
    if (node.layer) select(node.layer, "graph");
    else if (node.output) select(layers[node.output.layer], "graph");
    else select(layers.find((l) => l.from.includes(-1 - data.inputs.indexOf(node.input))), "graph");
  };
  // Along the edges, or to the neighbour in the row.
  function step(key) {
    if (!view.chosen) return view.chosen || select(look.first(), "keys");
    const v = view.chosen.id, near = (list) => list.reduce((best, u) => (best === null || Math.abs(layout.x[u] - layout.x[v]) < Math.abs(layout.x[best] - layout.x[v]) ? u : best), null);
    const row = layout.rows[layout.rank[v]].filter((u) => nodes[u].layer), at = row.indexOf(v);
    const next = key === "ArrowUp" ? near(layout.from[v].filter((u) => nodes[u].layer))
      : key === "ArrowDown" ? near(layout.to[v].filter((u) => nodes[u].layer))
      : row[at + (key === "ArrowLeft" ? -1 : 1)];
    if (next !== null && next !== undefined) select(nodes[next].layer, "keys");
  }
  canvas.addEventListener("keydown", (e) => {
    const arrows = {ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0]}[e.key];
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    if (arrows && e.shiftKey) pan(arrows[0] * 80, arrows[1] * 80);
    else if (arrows) step(e.key);
    else if (e.key === "+" || e.key === "=") zoom(1.3);
    else if (e.key === "-") zoom(1 / 1.3);
    else if (e.key === "0") fit();
    else if (e.key === "PageDown" || e.key === "PageUp") pan(0, (e.key === "PageDown" ? 0.8 : -0.8) * canvas.clientHeight);
    else if (e.key === "Home" || e.key === "End") pan(0, e.key === "Home" ? -1e9 : 1e9);
    else if (e.key === "Enter") byId("detail").focus();
    else return;
    e.preventDefault();
  });
  const jump = (e) => {
    if (!e.buttons) return;
    const box = overview.getBoundingClientRect(), k = overviewScale();
    view.x = (e.clientX - box.left - 4) / k.x + layout.box.left - canvas.clientWidth / view.scale / 2;
    view.y = (e.clientY - box.top - 2) / k.y + layout.box.top - canvas.clientHeight / view.scale / 2;
    redraw();
  };
  overview.addEventListener("pointerdown", (e) => { overview.setPointerCapture(e.pointerId); jump(e); });
  overview.addEventListener("pointermove", jump);
  byId("zoom-in").addEventListener("click", () => zoom(1.3));
  byId("zoom-out").addEventListener("click", () => zoom(1 / 1.3));
  byId("zoom-fit").addEventListener("click", fit);
  byId("graph-all").addEventListener("change", () => {
    const layer = view.chosen && view.chosen.layer;
    build();
    if (layer && nodes.byLayer.has(layer)) show(layer, true);
    else view.chosen = null;
    redraw();
  });
  new ResizeObserver(redraw).observe(canvas);
  repaints.push(redraw);

  const recolour = () => { painted = null; redraw(); };
  // The whole where it can be read, else around a layer.
  const startAt = (layer) => (fitScale() > 0.6 ? fit() : nodes.byLayer.has(layer) && centre(nodes.byLayer.get(layer), 0.85));
  return {build, paint, recolour, startAt, show, filter, mark, fit, centreOn: (layer) => nodes.byLayer.has(layer) && centre(nodes.byLayer.get(layer), 0.85), legend};

  function legend() {
    byId("graph-legend").replaceChildren(...look.legend());
  }
})();
