// ---- the start of a check's page ----

readColours();
summary.start();
graph.build();
graph.legend();
repaints.push(graph.legend);
table.start();
if (layers.length) {
  const start = look.first();
  way.set(culprit);
  select(start, "start");
  graph.centreOn(start);
}
graph.paint();
// How long it took, from the request on.
document.body.dataset.ready = performance.now().toFixed(0);
