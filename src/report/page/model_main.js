// ---- what is said first of a model, and the start of its page ----

const summary = (() => {
  function bar() {
    const parts = data.model.split("/"), file = parts.pop(), folder = parts.pop();
    byId("model").replaceChildren(folder && folder !== "." ? el("small", {}, `${folder}/`) : "", file);
    byId("model").title = data.model;
    const top = layers.filter((l) => !l.inner).length;
    byId("facts").textContent = [`${isPlan ? "plan" : "model"} ${data.name}`.trim(), many(top, isPlan ? "layer" : "node"),
      layers.length > top ? `${grouped(layers.length - top)} in bodies` : "", many(new Set(layers.map((l) => l.op)).size, "operator")].filter(Boolean).join(" · ");
  }
  function ends(id, title, list) {
    const target = (e) => (e.layer >= 0 ? layers[e.layer] : e.value.readers[0]);
    byId(id).replaceChildren(el("h2", {}, list.length === 1 ? title : `${title}s`), el("ul", {class: "ends"}, list.map((e) => el("li", {},
      el("button", {type: "button", class: "link", onclick: () => { select(target(e), "cause"); }}, el("bdi", {class: "mono"}, e.name)),
      " ", el("small", {class: "mono"}, e.type || "type not known"), statistics(e.value)))));
  }
  function about() {
    byId("about").replaceChildren(el("h2", {}, isPlan ? "Plan" : "Model"), el("dl", {class: "attrs"},
      data.about.flatMap(([what, text]) => [el("dt", {}, what), el("dd", {}, el("pre", {}, text))])));
  }
  return {start() { bar(); ends("inputs", "Input", data.inputs); ends("outputs", "Output", data.outputs); about(); }};
})();

function chooseKind(name) {
  kinds.choose(name);
  graph.recolour();
  table.regroup();
}

readColours();
kinds.count();
repaints.unshift(kinds.paint);  // before what is painted with it
repaints.push(table.chips, graph.recolour);
byId("kind").replaceChildren(...KINDS.map(([name]) => el("option", {value: name}, name)));
byId("kind").addEventListener("change", (e) => chooseKind(e.target.value));
byId("table").style.setProperty("--fields", `40px minmax(130px, 3fr) minmax(84px, 1fr) minmax(110px, 2fr)${isPlan ? " 58px minmax(70px, 1fr)" : ""}${hasStats ? " repeat(3, 68px)" : ""}`);
summary.start();
graph.build();
table.start();
if (layers.length) {
  select(look.first(), "start");
  graph.startAt(look.first());
}
graph.paint();
// How long it took, from the request on.
document.body.dataset.ready = performance.now().toFixed(0);
