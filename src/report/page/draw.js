// ---- how the graph is drawn on a canvas; graph.js says what is where ----

// The curve between two points, straight where they are above each other.
function curve(target, x0, y0, x1, y1) {
  target.moveTo(x0, y0);
  if (Math.abs(x0 - x1) < 0.5) target.lineTo(x1, y1);
  else target.bezierCurveTo(x0, (y0 + y1) / 2, x1, (y0 + y1) / 2, x1, y1);
}
function tracePath(target, points) {
  for (let i = 1; i < points.length; i++) {
    const a = points[i - 1], b = points[i];
    curve(target, a[0], a.length > 2 ? a[2] : a[1], b[0], b[1]);
    if (b.length > 2) {
      target.moveTo(b[0], b[1]);
      target.lineTo(b[0], b[2]);
    }
  }
}

// Edges in bands of ranks, so that only those in sight are drawn. Lanes that edges share are traced once.
const BAND = 12;
function edgeBands(layout) {
  const bands = new Map(), seen = new Set();
  const add = (r, draw) => {
    const k = Math.floor(r / BAND);
    if (!bands.has(k)) bands.set(k, new Path2D());
    draw(bands.get(k));
  };
  layout.from.forEach((list, v) => list.forEach((u) => {
    const points = layout.path(u, v);
    for (let i = 1; i < points.length; i++) {
      const key = `${points[i - 1]}|${points[i]}`;
      if (seen.has(key)) continue;
      seen.add(key);
      const pair = [points[i - 1], points[i]];
      add(layout.rank[u] + i - 1, (target) => tracePath(target, pair));
    }
  }));
  return bands;
}

function roundBox(c, x, y, w, h, r) {
  c.beginPath();
  c.roundRect(x, y, w, h, r);
}

// Black or white, whichever can be read on it.
function inkOn(colour) {
  const [r, g, b] = colour.startsWith("#") ? parseColour(colour) : colour.match(/\d+/g).map(Number);
  return 0.299 * r + 0.587 * g + 0.114 * b > 150 ? "#10151b" : "#ffffff";
}

// Text cut to a width in pixels, for a font whose characters all have one width.
function cut(text, width, characterWidth) {
  const n = Math.floor(width / characterWidth);
  return text.length <= n ? text : n > 1 ? text.slice(0, n - 1) + "…" : "";
}

function drawNode(c, node, x, y, view) {
  const left = x - NODE.width / 2, chosen = node === view.chosen;
  c.globalAlpha = view.matches && !view.matches.has(node) ? 0.22 : 1;
  const colour = node.layer ? look.colour(node.layer) : colours.card;
  c.fillStyle = colour;
  roundBox(c, left, y, NODE.width, NODE.height, node.layer ? 5 : 13);
  c.fill();
  if (!node.layer || view.scale > 0.3) {
    const inner = node.layer && node.layer.inner;  // of a body
    c.strokeStyle = node.layer && !inner ? "rgba(128,128,128,.35)" : colours.dim;
    c.lineWidth = 1;
    if (inner) c.setLineDash([4, 3]);
    c.stroke();
    c.setLineDash([]);
  }
  if (chosen || (node.layer && node.layer.fixed && view.scale > 0.2)) {
    c.strokeStyle = chosen ? colours.select : colours.good;
    c.lineWidth = chosen ? Math.max(3, 2.5 / view.scale) : 2;
    c.stroke();
  }
  if (view.scale > 0.42) drawLabel(c, node, left, y, colour);
  c.globalAlpha = 1;
}

function drawLabel(c, node, left, y, colour) {
  const wide = 6.63, most = Math.floor((NODE.width - 18) / wide);
  const note = node.layer ? look.note(node.layer, most - node.title.length - 1) : "";  // at the right
  c.font = `11px ${colours.font}`;
  c.textBaseline = "middle";
  c.fillStyle = node.layer ? inkOn(colour) : colours.text;
  c.textAlign = "left";
  const room = NODE.width - 18 - note.length * wide, title = cut(node.title, room, wide), middle = y + NODE.height / 2 + 0.5;
  c.fillText(title, left + 7, middle);
  const alpha = c.globalAlpha, part = node.part ? cut(node.part, room - (title.length + 1) * wide, wide) : "";
  c.globalAlpha *= 0.62;
  if (part.length > 2) c.fillText(part, left + 7 + (title.length + 1) * wide, middle);
  c.globalAlpha = alpha;
  c.textAlign = "right";
  if (node.layer && look.alarms(node.layer) && colour !== colours.bad) c.fillStyle = colours.bad;
  c.fillText(note, left + NODE.width - 7, middle);
}
