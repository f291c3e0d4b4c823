// ---- the error's way: from its origin to an output ----

// Whether an error can only be its own, such as a constant's.
const isConstant = (l) => !l.from.length;

const way = (() => {
  const canvas = byId("way-chart"), tip = byId("way-tip");
  // Layers that have errors, in the order in which they run; their places are the chart's columns.
  const columns = layers.filter((l) => l.total !== null && !(l.minor || isConstant(l)));
  const columnOf = new Map(columns.map((l, i) => [l, i]));
  const edge = {left: 52, right: 12, top: 20, bottom: 20};
  let path = [], chosen = null;  // the way's layers; the one that is shown everywhere

  // By error, then by verdict, then the later one.
  function worse(a, b) {
    if (!b || weight(a.total) !== weight(b.total)) return !b || weight(a.total) > weight(b.total);
    return rankOf(a.verdict) !== rankOf(b.verdict) ? rankOf(a.verdict) > rankOf(b.verdict) : a.index > b.index;
  }
  // Of all ways from a layer to an output the one along the largest errors, found backwards. Without a layer to start
  // from: from wherever they came.
  function from(start) {
    const reached = new Uint8Array(layers.length).fill(start ? 0 : 1);
    if (start) reached[start.index] = 1;
    for (const layer of layers) if (reached[layer.index]) for (const to of layer.to) reached[to] = 1;
    let at = null;
    for (const layer of layers)
      if (reached[layer.index] && layer.outputs.length && worse(layer, at)) at = layer;
    const list = [];
    const seen = new Set();
    while (at && !seen.has(at)) {
      seen.add(at);
      list.unshift(at);
      if (at === start) break;
      let next = null;
      for (const k of at.from)
        if (k >= 0 && reached[k] && worse(layers[k], next)) next = layers[k];
      at = start || (next && next.from.length && next.total) ? next : null;
    }
    return list;
  }

  function set(start) {
    path = from(start);
    if (!path.length && start) path = [start];
    graph.mark(path, colour);
    title();
    steps();
    draw();
  }
  const colour = () => (data.verdict === "faithful" ? colours.own : colours.bad);
  function title() {
    const start = path[0], end = path[path.length - 1];
    byId("way-title").textContent = "The error’s way";
    byId("way-legend").replaceChildren(...[
      el("span", {}, !path.length ? "" : end.outputs.length ? `${lastOf(start.name)} → ${end.outputs[0]}, ${many(path.length, "layer")}` : "no output depends on this layer"),
      el("span", {class: "key"}, el("i", {class: "dot", style: `background:${colours.own}`}), "own"),
      el("span", {class: "key"}, el("i", {class: "line", style: `background:${colours.total}`}), "total error"),
      el("span", {class: "key"}, el("i", {class: "line", style: `background:${colour()}`}), "its way"),
      data.blame === "export" ? el("span", {class: "warn"}, "of the engine against truth of the model as it was exported, not against golden") : null].filter(Boolean));
  }

  // The places where something happens: the birth, other states, errors that grow, the end.
  function events() {
    const list = [];
    let before = null;
    path.forEach((layer, i) => {
      const state = stateOf(layer), grew = before && before.total > 0 && layer.total > 2.5 * before.total;
      const bad = rankOf(layer.verdict) >= rankOf("amplified");
      const changed = before && stateOf(before) !== state;
      if (i === 0 || i === path.length - 1 || changed || bad || grew)
        list.push({layer, i, why: i === 0 ? "origin" : changed || state ? state || "finite" : grew ? `×${short(layer.total / before.total, 2)}` : ""});
      before = layer;
    });
    return list;
  }
  function steps() {
    const most = 9;
    let list = events();
    if (list.length > most) {
      const strong = (e) => (e.i === 0 || e.i === path.length - 1 ? 1e9 : rankOf(e.layer.verdict) * 10 + (e.layer.total > 0 ? placeIn(DECADES, e.layer.total) : 5));
      const kept = new Set([...list].sort((a, b) => strong(b) - strong(a)).slice(0, most));
      list = list.filter((e) => kept.has(e));
    }
    const items = [];
    list.forEach((e, k) => {
      const between = k ? e.i - list[k - 1].i - 1 : 0;
      if (between > 0) items.push(el("li", {class: "gap"}, `${grouped(between)} more`));
      items.push(el("li", {}, chip(e.layer, `${e.why ? `${e.why} ` : ""}`, e.why === stateOf(e.layer) ? "" : stateOf(e.layer) || short(e.layer.total, 2))));
    });
    const end = path[path.length - 1];
    if (end && end.outputs.length) items.push(el("li", {class: "end"}, end.outputs.join(", ")));
    byId("way-steps").replaceChildren(...items);
  }

  // ---- the chart ----

  const xOf = (i, w) => edge.left + (columns.length > 1 ? i / (columns.length - 1) : 0.5) * (w - edge.left - edge.right);
  function yOf(error, h) {
    const low = h - edge.bottom, high = edge.top + 14;
    if (Number.isNaN(error)) return edge.top - 4;  // a line of its own above the scale
    if (!error) return low;
    return low - clamp(placeIn(DECADES, error), 0, 1) * (low - high);
  }
  function draw() {
    const s = sharpen(canvas);
    if (!s || !columns.length) return;
    const c = s.context, {width: w, height: h} = s;
    scale(c, w, h);
    const erring = columns.map((l, i) => [l, i]).filter(([l]) => l.total !== 0);
    line(c, erring.map(([l, i]) => [xOf(i, w), yOf(l.total, h)]), colours.total, 1.2, 0.75);
    c.globalAlpha = 0.8;
    columns.forEach((l, i) => {
      if (!l.own && !Number.isNaN(l.own)) return;
      c.fillStyle = l.bad ? colourOf(l) : colours.own;
      const r = l.bad ? 4 : columns.length > 600 ? 1.4 : 2;
      c.beginPath();
      c.arc(xOf(i, w), yOf(l.own, h), r, 0, 7);
      c.fill();
    });
    c.globalAlpha = 1;
    const points = path.filter((l) => columnOf.has(l)).map((l) => [xOf(columnOf.get(l), w), yOf(l.total, h)]);
    line(c, points, colour(), 2, 1);
    if (points.length) {
      c.fillStyle = colour();
      c.beginPath();
      c.arc(...points[0], 4.5, 0, 7);
      c.fill();
    }
    if (chosen && columnOf.has(chosen)) {
      c.strokeStyle = colours.select;
      c.lineWidth = 1;
      c.setLineDash([3, 3]);
      c.strokeRect(xOf(columnOf.get(chosen), w), 4, 0, h - edge.bottom - 4);
      c.setLineDash([]);
    }
  }
  function scale(c, w, h) {
    c.font = `10.5px ${colours.font}`;
    c.fillStyle = colours.dim;
    c.strokeStyle = colours.line;
    c.lineWidth = 1;
    c.textAlign = "right";
    c.textBaseline = "middle";
    const rule = (y, text) => {
      c.globalAlpha = 0.7;
      c.strokeRect(edge.left, Math.round(y) + 0.5, w - edge.left - edge.right, 0);
      c.globalAlpha = 1;
      c.fillText(text, edge.left - 6, y);
    };
    const every = Math.max(1, Math.ceil((DECADES.high - DECADES.low) / 5));
    for (let d = DECADES.low + every; d <= DECADES.high; d += every) rule(yOf(Math.pow(10, d), h), decade(d));
    rule(yOf(0, h), "exact");
    if (columns.some((l) => Number.isNaN(l.total) || Number.isNaN(l.own))) rule(yOf(NaN, h), "NaN, ∞");
    c.textAlign = "left";
    c.fillText("first layer", edge.left, h - 7);
    c.textAlign = "right";
    c.fillText("last", w - edge.right, h - 7);
  }
  function line(c, points, colour, width, alpha) {
    c.globalAlpha = alpha;
    c.strokeStyle = colour;
    c.lineWidth = width;
    c.lineJoin = "round";
    c.beginPath();
    points.forEach(([x, y], i) => (i ? c.lineTo(x, y) : c.moveTo(x, y)));
    c.stroke();
    c.globalAlpha = 1;
  }

  function columnAt(e) {
    const box = canvas.getBoundingClientRect(), inner = canvas.clientWidth - edge.left - edge.right;
    return clamp(Math.round((e.clientX - box.left - edge.left) / inner * (columns.length - 1)), 0, columns.length - 1);
  }
  canvas.addEventListener("pointermove", (e) => {
    const layer = columns[columnAt(e)];
    if (!layer) return;
    tip.hidden = false;
    tip.replaceChildren(el("b", {}, layer.name), el("div", {}, `${layer.op}: ${layer.verdict}, own ${short(layer.own)}, total ${stateOf(layer) || short(layer.total)}`));
    tip.style.left = `${clamp(xOf(columnOf.get(layer), canvas.clientWidth) + 10, 0, Math.max(0, canvas.clientWidth - tip.offsetWidth))}px`;
    tip.style.top = "26px";
  });
  canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
  canvas.addEventListener("click", (e) => columns.length && select(columns[columnAt(e)], "way"));
  new ResizeObserver(draw).observe(canvas);
  repaints.push(() => { if (path.length) title(); draw(); });
  return {set, draw, colour, show: (layer) => { chosen = layer; draw(); }};
})();

// A button that leads to a layer.
function chip(layer, before, after) {
  return el("button", {type: "button", class: `chip ${verdictClass(layer.verdict)}`, title: `${layer.name} (${layer.op}): ${layer.verdict}`, onclick: () => select(layer, "chip")},
    before ? el("em", {}, before) : null, lastOf(layer.name), after ? el("small", {}, ` ${after}`) : null);
}
