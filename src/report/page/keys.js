// ---- what belongs together: the choice of a layer, keys ----

let current = null;

// Shows a layer everywhere. by: where it was chosen, which need not move.
function select(layer, by) {
  if (!layer) return;
  current = layer;
  table.show(layer);
  graph.show(layer, by === "cause");
  look.show(layer);
  detail.show(layer);
  document.body.dataset.layer = layer.index;
  if (by !== "start") say(look.said(layer));
}

const KEYS = [
  ["/", "search", () => { byId("search").focus(); byId("search").select(); }],
  ["g", "graph: arrows follow edges, shift and arrows move, + − 0 zoom", () => byId("graph-view").focus()],
  ["l", "layers: arrows, Page, Home, End; Enter: details", () => table.focus()],
  ["d", "details of the layer", () => byId("detail").focus()],
  ["n", "next layer that is worth a look", () => select(table.problem(1), "keys")],
  ["p", "the one before", () => select(table.problem(-1), "keys")],
  ...look.keys,
  ["t", "light or dark", toggleTheme],
  ["?", "this", () => byId("help").showModal()],
];

document.addEventListener("keydown", (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || byId("help").open) return;
  if (e.key === "Escape") {
    if (table.filtered()) table.clear();
    if (document.activeElement === byId("search")) table.focus();
    return;
  }
  if (e.target.matches("input[type=search]")) return;
  const key = KEYS.find(([k]) => k === e.key);
  if (!key) return;
  e.preventDefault();
  key[2]();
});
byId("keys").replaceChildren(...KEYS.flatMap(([key, what]) => [el("dt", {}, el("kbd", {}, key)), el("dd", {}, what)]), el("dt", {}, el("kbd", {}, "Esc")), el("dd", {}, "all layers again"));
byId("help-open").addEventListener("click", () => byId("help").showModal());
byId("theme").addEventListener("click", toggleTheme);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
