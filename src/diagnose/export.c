// Is the export to blame? Truth of a model against golden tensors of the network that it was made
// from.
#include "diagnose/export.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "diagnose/golden/stray_casts.h"
#include "diagnose/golden/walk.h"
#include "diagnose/kinds/undone.h"
#include "diagnose/outputs/others.h"
#include "diagnose/search.h"
#include "diagnose/solve/inner.h"
#include "eval/evaluator.h"

// Lists the nodes that the targets are made by, back to golden values, constants and graph inputs.
static size_t list_nodes(const assay_golden_walk_t* w, bool* wanted, const assay_node_t** nodes) {
  const assay_graph_t* g = w->model->graph;
  size_t n = 0;
  for (size_t i = g->n_nodes; i-- > 0;) {
    const assay_node_t* node = g->nodes[i];
    bool needed = false;
    for (size_t k = 0; k < node->n_outputs; k++)
      needed |= node->outputs[k] && wanted[node->outputs[k]->id];
    if (!needed) continue;
    nodes[n++] = node;
    for (size_t k = 0; k < node->n_inputs; k++)
      if (node->inputs[k] && !w->golden_of[node->inputs[k]->id]) wanted[node->inputs[k]->id] = true;
  }
  for (size_t a = 0, b = n; a + 1 < b; a++) {
    const assay_node_t* x = nodes[a];
    nodes[a] = nodes[--b];
    nodes[b] = x;
  }
  return n;
}

// What nobody reads may be what a repair reads, and goes with what comes before it.
static void add_dead_ends(const assay_graph_t* g, bool* wanted, bool* read) {
  for (size_t i = 0; i < g->n_nodes; i++)
    for (size_t k = 0; k < g->nodes[i]->n_inputs; k++)
      if (g->nodes[i]->inputs[k]) read[g->nodes[i]->inputs[k]->id] = true;
  for (size_t i = 0; i < g->n_nodes; i++) {
    const assay_node_t* n = g->nodes[i];
    if (n->n_outputs == 1 && n->n_inputs && n->outputs[0] && !n->outputs[0]->is_output &&
        !read[n->outputs[0]->id])
      wanted[n->outputs[0]->id] = true;
  }
}

// The part of the time that is kept for what is tried where a node is missing.
static const double KEPT_FOR_MISSING = 0.3;

// Takes what was found over: the first into the fault, the others after it.
static assay_status_t take_found(assay_golden_walk_t* w, size_t fault, assay_fault_t* found,
                                 size_t n) {
  assay_export_t* e = w->out;
  assay_status_t st =
      n > 1 ? assay_grow(&e->faults, &e->capacity, e->n + n - 1, sizeof *e->faults) : NULL;
  if (st) {
    for (size_t i = 0; i < n; i++) assay_repair_deinit(&found[i].repair);
    return st;
  }
  if (n > 1)
    memmove(&e->faults[fault + n], &e->faults[fault + 1], (e->n - fault - 1) * sizeof *e->faults);
  const assay_fault_t known = e->faults[fault];
  for (size_t i = 0; i < n; i++) {
    found[i].value = known.value;
    found[i].difference = known.difference;
    found[i].explained = known.explained;
    found[i].shape = known.shape;
    e->faults[fault + i] = found[i];
  }
  e->n += n ? n - 1 : 0;
  return NULL;
}

static assay_status_t search(assay_golden_walk_t* w, const assay_value_t* const* values, size_t n,
                             double deadline, size_t fault) {
  const assay_graph_t* g = w->model->graph;
  bool *wanted = NULL, *read = NULL;
  const assay_node_t** nodes = NULL;
  assay_search_target_t* targets = NULL;
  assay_fault_t found[ASSAY_SEARCH_FAULTS];
  size_t n_found = 0;
  assay_others_t others = {0};
  assay_search_t s = {.model = w->model,
                      .evaluator = w->truth,
                      .faulty = w->faulty,
                      .deadline = deadline,
                      .options = w->options,
                      .watch = &w->watch,
                      .several = true};
  assay_status_t st = assay_new_array((size_t)w->model->n_values, sizeof *wanted, &wanted);
  if (!st) st = assay_new_array((size_t)w->model->n_values, sizeof *read, &read);
  if (!st) st = assay_new_array(g->n_nodes, sizeof *nodes, &nodes);
  if (!st) st = assay_new_array(n, sizeof *targets, &targets);
  for (size_t k = 0; !st && k < n; k++) {
    wanted[values[k]->id] = true;
    targets[s.n_targets++] = assay_inner_target(w, values[k]);
  }
  if (!st && w->out->outputs_only) add_dead_ends(g, wanted, read);
  if (!st) s.n_nodes = list_nodes(w, wanted, nodes);
  s.nodes = nodes;
  s.targets = targets;
  w->watch.value = w->out->faults[fault].value;
  w->watch.off = w->out->faults[fault].difference.rms;
  if (!st)
    assay_search_watch_tell(&w->watch,
                            &(assay_search_suspect_t){w->out->faults[fault].node, (double)NAN},
                            "looking for what is at fault", "", NULL);
  const bool inner = !w->out->outputs_only && n == 1;
  if (inner) s.deadline -= KEPT_FOR_MISSING * fmax(0, deadline - assay_clock_seconds());
  if (!st && w->out->outputs_only) st = assay_others_init(w->options, &s, &others);
  if (!st && inner) st = assay_inner_repeat(w, &targets[0], fault, found, &n_found);
  if (!st && inner) st = assay_inner_quantizer(w, &targets[0], found, &n_found);
  if (!st && inner) st = assay_inner_unread(w, &targets[0], found, &n_found);
  if (!st && !n_found) st = assay_search_run(&s, found, &n_found);
  assay_others_deinit(&others);
  if (!st && inner && !(n_found && found[0].restored))
    assay_search_watch_tell(
        &w->watch, &(assay_search_suspect_t){targets[0].value->producer, (double)NAN},
        "solving for its constants and what may be missing", "", targets[0].value->producer);
  if (!st && inner) st = assay_inner_solve(w, &targets[0], deadline, found, &n_found);
  if (!st) st = take_found(w, fault, found, n_found);
  w->out->cut_short |= s.cut_short;
  w->out->trials += s.trials;
  assay_free(wanted);
  assay_free(read);
  assay_free(nodes);
  assay_free(targets);
  return st;
}

// Without inner values all outputs that golden knows are looked at together: a fault may show in
// several.
static assay_status_t search_outputs(assay_golden_walk_t* w, double deadline) {
  const assay_value_t** values = NULL;
  size_t n = 0;
  assay_status_t st = assay_new_array(w->golden.n, sizeof *values, &values);
  for (size_t i = 0; !st && i < w->golden.n; i++) {
    const assay_value_t* v = w->golden.at[i].value;
    if (v && v->producer && w->golden_of[v->id]) values[n++] = v;
  }
  if (!st) st = search(w, values, n, deadline, 0);
  assay_free(values);
  return st;
}

static bool is_several(const assay_export_t* e) {
  for (size_t i = 1; i < e->n; i++)
    if (e->faults[i].node != e->faults[0].node) return true;
  return false;
}

// Where several nodes are at fault, what the first of them needs was found before the others were
// known. Those that do not hold together on other samples are looked for once more, one by one.
static assay_status_t reconsider(assay_golden_walk_t* w, double end) {
  enum { ROUNDS = 2 };
  for (int k = 0; k < ROUNDS && is_several(w->out); k++)
    for (size_t i = 0; i < w->out->n; i++) {
      assay_fault_t was = w->out->faults[i];
      const double now = assay_clock_seconds();
      bool holds = true;
      ASSAY_TRY(assay_inner_holds(w, &holds));
      if (holds || now >= end) return NULL;
      const size_t n = w->out->n;
      const double share = (end - now) / (double)(n - i);
      w->out->faults[i] = (assay_fault_t){.value = was.value,
                                          .node = was.node,
                                          .difference = was.difference,
                                          .explained = was.explained,
                                          .shape = was.shape};
      assay_status_t st = search(w, &was.value, 1, now + share, i);
      if (st) return assay_repair_deinit(&was.repair), st;
      if (w->out->faults[i].restored) {
        assay_repair_deinit(&was.repair);
      } else {
        assay_repair_deinit(&w->out->faults[i].repair);
        w->out->faults[i] = was;
      }
      i += w->out->n - n;
    }
  return NULL;
}

static assay_status_t search_all(assay_golden_walk_t* w) {
  const double seconds = w->options->seconds > 0 ? w->options->seconds : 40;
  const double start = assay_clock_seconds(), end = start + seconds;
  w->watch.progress = w->options->progress;
  w->watch.user = w->options->user;
  w->watch.start = start;
  w->watch.end = end;
  if (w->out->outputs_only) return search_outputs(w, end);
  ASSAY_TRY(assay_new_array((size_t)w->model->n_node_ids, sizeof *w->faulty, &w->faulty));
  for (size_t i = 0; i < w->out->n; i++) w->faulty[w->out->faults[i].node->id] = true;
  for (size_t i = 0; i < w->out->n;) {
    // The time left, shared among the faults left.
    const double now = assay_clock_seconds();
    const size_t n = w->out->n;
    if (w->out->faults[i].restored) {  // it came with its repair
      i++;
      continue;
    }
    const double share = fmax(0, end - now) / (double)(n - i);
    ASSAY_TRY(search(w, &w->out->faults[i].value, 1, now + share, i));
    const size_t next = i + 1 + w->out->n - n;  // several may hide behind one value
    for (; i < next; i++)
      if (w->out->faults[i].restored)
        ASSAY_TRY(assay_golden_revive_idle(w, &w->out->faults[i].repair));
  }
  ASSAY_TRY(assay_inner_together(w));
  ASSAY_TRY(assay_inner_twins(w));
  return reconsider(w, end);
}

assay_status_t assay_export_check(const assay_model_t* model, assay_tensor_t* const* inputs,
                                  const assay_golden_t* golden,
                                  const assay_export_options_t* options, assay_export_t* out) {
  assay_golden_walk_t w = {.model = model, .options = options, .draw = options->draw, .out = out};
  if (options->undone)
    return assay_undone_add(options->undone, model, inputs, golden, options->seed);
  out->outputs_only = true;
  for (size_t i = 0; i < golden->n; i++)
    if (golden->at[i].value && !golden->at[i].value->is_output) out->outputs_only = false;
  assay_status_t st = assay_golden_walk_create(&w, golden, inputs);
  if (!st) st = assay_golden_walk_run(&w, inputs);
  if (!st) st = assay_golden_drop_idle(&w);
  const bool searched = !st && out->n && !options->no_search;
  if (!st && !options->probe && (!out->n || !out->outputs_only))
    st = assay_golden_find_stray_casts(&w, inputs);
  if (!st && searched) st = assay_golden_walk_fill(&w, inputs);
  if (!st && searched) st = search_all(&w);
  assay_golden_walk_deinit(&w);
  if (st) assay_export_deinit(out);
  return st;
}

void assay_export_deinit(assay_export_t* e) {
  for (size_t i = 0; i < e->n; i++) assay_repair_deinit(&e->faults[i].repair);
  assay_free(e->faults);
  *e = (assay_export_t){0};
}

bool assay_export_is_proved(const assay_export_t* e) {
  bool proved = e->n > 0;
  for (size_t i = 0; i < e->n; i++) proved &= e->faults[i].has_repair && e->faults[i].restored;
  return proved;
}
