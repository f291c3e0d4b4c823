// ---- a layered layout: ranks by longest path, few crossings, straight long edges ----

const NODE = {width: 164, height: 26, gapX: 18, gapY: 24, lane: 10};
const MOST_LANES = 40000;  // places that long edges pass; beyond, the longest go straight across

// nodes: ids from 0 on, each behind those it reads. from[v]: whom v reads. Returns x, y of each, and paths of edges.
function layoutGraph(from) {
  const g = withLanes(from, ranksOf(from));
  order(g);
  place(g);
  return finish(g, from);
}

function ranksOf(from) {
  const n = from.length, rank = new Int32Array(n), next = new Int32Array(n).fill(-1);
  for (let v = 0; v < n; v++) for (const u of from[v]) rank[v] = Math.max(rank[v], rank[u] + 1);
  // What reads nothing stands right above its first reader.
  for (let v = n - 1; v >= 0; v--) for (const u of from[v]) next[u] = next[u] < 0 ? rank[v] : Math.min(next[u], rank[v]);
  for (let v = 0; v < n; v++) if (!from[v].length && next[v] > 0) rank[v] = next[v] - 1;
  return rank;
}

// Adds lanes: one chain of places a node, down to its last reader, which all its readers share.
function withLanes(from, rank) {
  const n = from.length, last = Int32Array.from(rank);
  for (let v = 0; v < n; v++) for (const u of from[v]) last[u] = Math.max(last[u], rank[v] - 1);
  const spans = Array.from({length: n}, (_, v) => last[v] - rank[v]).filter((s) => s > 0).sort((a, b) => a - b);
  let total = 0, longest = 0;
  for (const s of spans) if ((total += s) <= MOST_LANES) longest = s;
  const g = {rank: Array.from(rank), real: n, up: [], down: [], chain: []};
  for (let v = 0; v < n; v++) {
    g.up.push([]);
    g.down.push([]);
  }
  for (let v = 0; v < n; v++) {
    g.chain.push([v]);
    if (last[v] - rank[v] > longest) continue;
    for (let r = rank[v] + 1, above = v; r <= last[v]; r++) above = addLane(g, v, r, above);
  }
  for (let v = 0; v < n; v++)
    for (const u of from[v]) {
      const above = g.chain[u][rank[v] - 1 - rank[u]];
      if (above !== undefined) link(g, above, v);
    }
  g.rows = Array.from({length: g.rank.reduce((a, b) => Math.max(a, b), 0) + 1}, () => []);
  g.rank.forEach((r, v) => g.rows[r].push(v));
  return g;
}
function addLane(g, owner, rank, above) {
  const id = g.rank.length;
  g.rank.push(rank);
  g.up.push([]);
  g.down.push([]);
  g.chain[owner].push(id);
  link(g, above, id);
  return id;
}
function link(g, above, below) {
  g.down[above].push(below);
  g.up[below].push(above);
}

// Sorts each row by the mean place of its neighbours in the row before, downwards and upwards in turn.
function order(g) {
  const at = new Float64Array(g.rank.length), key = new Float64Array(g.rank.length);
  const number = (row) => row.forEach((v, i) => { at[v] = i; });
  g.rows.forEach(number);
  const sweep = (row, neighbours) => {
    for (const v of row) {
      const list = neighbours[v];
      let sum = 0;
      for (const u of list) sum += at[u];
      key[v] = list.length ? sum / list.length : at[v];
    }
    row.sort((a, b) => key[a] - key[b] || at[a] - at[b]);
    number(row);
  };
  for (let pass = 0; pass < 6; pass++) {
    if (pass % 2) for (let r = g.rows.length - 2; r >= 0; r--) sweep(g.rows[r], g.down);
    else for (let r = 1; r < g.rows.length; r++) sweep(g.rows[r], g.up);
  }
}

// x of every place: each wants the mean of its neighbours; a row keeps its order and distances.
function place(g) {
  const n = g.rank.length;
  g.x = new Float64Array(n);
  const half = (v) => (v < g.real ? NODE.width / 2 : NODE.lane / 2);
  const offsets = g.rows.map((row) => {
    let x = 0;
    return row.map((v, i) => (x += i ? half(row[i - 1]) + NODE.gapX + half(v) : 0));
  });
  g.rows.forEach((row, r) => row.forEach((v, i) => {
    g.x[v] = offsets[r][i] - offsets[r][row.length - 1] / 2;
  }));
  const pull = (v, u) => (v >= g.real && u >= g.real ? 8 : v >= g.real || u >= g.real ? 2 : 1);
  const settle = (r, lists) => {
    const row = g.rows[r], want = [], heavy = [];
    row.forEach((v, i) => {
      let sum = 0, total = 0;
      for (const list of lists)
        for (const u of list[v]) {
          const w = pull(v, u);
          sum += w * g.x[u];
          total += w;
        }
      want.push((total ? sum / total : g.x[v]) - offsets[r][i]);
      heavy.push(total || 0.1);
    });
    rising(want, heavy).forEach((x, i) => { g.x[row[i]] = x + offsets[r][i]; });
  };
  for (let pass = 0; pass < 4; pass++) {
    for (let r = 1; r < g.rows.length; r++) settle(r, [g.up]);
    for (let r = g.rows.length - 2; r >= 0; r--) settle(r, [g.down]);
  }
  for (let pass = 0; pass < 3; pass++) for (let r = 0; r < g.rows.length; r++) settle(r, [g.up, g.down]);
}

// The nearest rising sequence, by weighted squares (pool adjacent violators).
function rising(want, heavy) {
  const blocks = [];
  want.forEach((x, i) => {
    let block = {sum: x * heavy[i], weight: heavy[i], n: 1};
    while (blocks.length) {
      const last = blocks[blocks.length - 1];
      if (last.sum / last.weight <= block.sum / block.weight) break;
      blocks.pop();
      block = {sum: last.sum + block.sum, weight: last.weight + block.weight, n: last.n + block.n};
    }
    blocks.push(block);
  });
  return blocks.flatMap((b) => Array(b.n).fill(b.sum / b.weight));
}

function finish(g, from) {
  const step = NODE.height + NODE.gapY;
  const y = (v) => g.rank[v] * step;
  const box = {left: Infinity, right: -Infinity, top: 0, bottom: (g.rows.length - 1) * step + NODE.height};
  const x = Array.from({length: g.real}, (_, v) => g.x[v]);
  for (let v = 0; v < g.rank.length; v++) {
    box.left = Math.min(box.left, g.x[v] - NODE.width / 2);
    box.right = Math.max(box.right, g.x[v] + NODE.width / 2);
  }
  // Points of the edge from u to v, downwards.
  const path = (u, v) => {
    const lane = g.chain[u].slice(1, Math.max(1, g.rank[v] - g.rank[u]));
    return [[g.x[u], y(u) + NODE.height], ...lane.map((d) => [g.x[d], y(d), y(d) + NODE.height]), [g.x[v], y(v)]];
  };
  return {x, y: x.map((_, v) => y(v)), rank: g.rank.slice(0, g.real), rows: g.rows.map((r) => r.filter((v) => v < g.real)), box, path, step, from};
}
