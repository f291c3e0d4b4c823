// ---- the data of a model or a plan, in the form in which the parts use it ----

const data = JSON.parse(byId("data").textContent);
const isPlan = data.kind === "plan";

// Values: who makes and who reads each. source: of a value of a body that the node around it hands in.
const values = data.values.map((raw) => ({...raw, maker: null, readers: [], source: null, input: -1}));
data.inputs.forEach((v, k) => { values[v].input = k; });

const layers = data.layers.map((raw, index) => ({
  index, raw, name: raw.name, op: raw.op, format: raw.format || "",
  reads: raw.reads.map((v) => (v === null ? null : values[v])), makes: raw.makes.map((v) => (v === null ? null : values[v])),
  from: [], to: [], outputs: [], inner: null, bad: false, minor: false,
  text: [raw.name, raw.op, raw.domain, ...(raw.nodes || []), ...raw.makes.filter((v) => v !== null).map((v) => values[v].name)].join(" ").toLowerCase(),
}));

for (const layer of layers) {
  for (const v of layer.makes) if (v) v.maker = layer;
  for (const v of layer.reads) if (v && !v.readers.includes(layer)) v.readers.push(layer);
  for (const body of layer.raw.bodies) {
    for (const k of body.layers) layers[k].inner = {layer, body};
    body.inputs.forEach((v, k) => { values[v].source = layer.reads[k] || null; });
  }
}

// Where a value comes from: a layer, an input as -1 - k; undefined: it is a constant.
function sourceOf(v) {
  for (let left = 64; v && left > 0; left--) {
    if (v.maker) return v.maker.index;
    if (v.input >= 0) return -1 - v.input;
    v = v.source;
  }
  return undefined;
}
for (const layer of layers) {
  const given = layer.raw.bodies.flatMap((b) => b.outputs.map((v) => values[v]));  // by its bodies
  const all = [...layer.reads, ...given].map(sourceOf).filter((s) => s !== undefined && s !== layer.index);
  layer.from = [...new Set(all)].filter((s) => s < layer.index);
  for (const s of layer.from) if (s >= 0) layers[s].to.push(layer.index);
  // What the graph leaves out at first: constants.
  layer.minor = !layer.from.length && (layer.op === "Constant" || (layer.reads.length > 0 && !layer.inner));
}

// The ends of the graph, in the form that graph.js knows.
data.inputs = data.inputs.map((v) => ({name: values[v].name, type: values[v].type, value: values[v]}));
data.outputs = data.outputs.map((v) => ({name: values[v].name, type: values[v].type, value: values[v], layer: sourceOf(values[v])}));
for (const output of data.outputs)
  if (Number.isInteger(output.layer) && output.layer >= 0) layers[output.layer].outputs.push(output.name);

// The end of a name: "sca.0/CumSum_1".
const lastOf = (name) => name.split("/").filter(Boolean).slice(-2).join("/") || name;

// What a name adds to the operator: "dense" of "/layer.7/dense/MatMul".
function partOf(name, op) {
  const parts = name.split("/").filter(Boolean);
  while (parts.length > 1 && parts[parts.length - 1].replace(/_\d+$/, "") === op) parts.pop();
  const part = parts.pop() || "";
  return part.replace(/_\d+$/, "") === op ? "" : part;
}

// "float[1, 64, 56, 56]" as "1×64×56×56", and as "float".
const sizesOf = (type) => (/\[([^\]]*)\]/.exec(type) || ["", ""])[1].split(",").map((s) => s.trim()).join("×");
const shapeOf = (type) => (/×|^$/.test(sizesOf(type)) ? sizesOf(type) : `[${sizesOf(type)}]`);
const elementOf = (type) => type.replace(/\[[^\]]*\]/, "");
const firstMade = (layer) => layer.makes.find(Boolean) || null;

const STATISTICS = ["mean", "std-dev", "min", "max", "median", "avg-magnitude", "p90", "p95", "p99"];
const hasStats = values.some((v) => v.stats);
const statOf = (layer, name) => {
  const v = layer.makes.find((m) => m && m.stats && m.stats[name] !== undefined);
  return v ? number(v.stats[name]) : null;
};
