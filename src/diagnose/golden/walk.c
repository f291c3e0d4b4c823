// Truth of a model and a run with everything rounded move through it side by side.
#include "diagnose/golden/walk.h"

#include <string.h>

#include "base/alloc.h"

static assay_status_t after_truth(void* user, const assay_node_t* n, size_t n_in,
                                  assay_tensor_t* const* in, size_t n_out, assay_tensor_t** out) {
  assay_golden_walk_t* w = user;
  (void)n_in;
  (void)in;
  if (!w->walking || n->graph != w->model->graph) return NULL;
  assay_golden_find_followers(w, n);
  for (size_t i = 0; i < n_out; i++) {
    const assay_value_t* v = n->outputs[i];
    if (v && out[i] && w->golden_of[v->id] && !w->met[v->id].compared)
      ASSAY_TRY(assay_golden_compare(w, n, v, &out[i]));
  }
  return NULL;
}

static assay_status_t after_refill(void* user, const assay_node_t* n, size_t n_in,
                                   assay_tensor_t* const* in, size_t n_out, assay_tensor_t** out) {
  assay_golden_walk_t* w = user;
  (void)n_in;
  (void)in;
  if (!w->walking || n->graph != w->model->graph) return NULL;
  for (size_t i = 0; i < n_out; i++) {
    const assay_value_t* v = n->outputs[i];
    if (v && out[i] && w->golden_of[v->id]) ASSAY_TRY(assay_golden_again(w, v, &out[i]));
  }
  return NULL;
}

static assay_status_t create_truth(assay_golden_walk_t* w, bool keep_all,
                                   assay_tensor_t* const* inputs, assay_evaluator_t** out) {
  const assay_evaluator_config_t config = {
      .mode = ASSAY_MODE_TRUTH,
      .unquantized = w->options->unquantized,
      .seed = w->options->seed,
      .keep_all = keep_all,
      .spill = keep_all,
      .hooks = {.after = keep_all ? after_refill : after_truth, .user = w}};
  ASSAY_TRY(assay_evaluator_create(w->model, &config, out));
  return assay_evaluator_set_inputs_widened(*out, inputs);
}

static assay_status_t copy_golden(const assay_golden_t* from, assay_golden_t* out) {
  ASSAY_TRY(assay_new_array(from->n, sizeof *out->at, &out->at));
  for (out->n = 0; out->n < from->n; out->n++) {
    assay_golden_tensor_t* to = &out->at[out->n];
    *to = from->at[out->n];
    to->name = NULL;
    assay_tensor_retain(to->tensor);
  }
  return NULL;
}

// -log2 of the chance of taking arrays for printed that were not: of one value's, of all together.
static const double ALONE = 20, ALL_TOGETHER = 2.5;

// The arrays of a value, of all samples. Returns how many.
static size_t gather(const assay_golden_walk_t* w, const assay_value_t* v,
                     const assay_tensor_t** out) {
  size_t n = 0;
  out[n++] = w->golden_of[v->id]->tensor;
  if (!v->is_output) return n;  // of which other samples have nothing
  for (size_t k = 0; k < w->options->n_others; k++) {
    const assay_golden_t* g = &w->options->others[k].golden;
    for (size_t i = 0; i < g->n; i++)
      if (g->at[i].value == v) out[n++] = g->at[i].tensor;
  }
  return n;
}

// The same of all outputs, or of all inner values: they may be of two files.
static size_t gather_all(const assay_golden_walk_t* w, bool outputs, const assay_tensor_t** out) {
  size_t n = 0;
  for (size_t k = 0; k <= w->options->n_others; k++) {
    const assay_golden_t* g = k ? &w->options->others[k - 1].golden : &w->golden;
    for (size_t i = 0; i < g->n; i++)
      if (g->at[i].value && g->at[i].value->is_output == outputs) out[n++] = g->at[i].tensor;
  }
  return n;
}

// What a value's numbers do not show by themselves, those of all values of its file show together,
// if all went the same way; else small arrays beside one that was printed were as well.
static assay_status_t find_printed(assay_golden_walk_t* w) {
  const assay_tensor_t** some = NULL;
  const size_t values = (size_t)w->model->n_values;
  size_t n = w->golden.n;
  for (size_t k = 0; k < w->options->n_others; k++) n += w->options->others[k].golden.n;
  ASSAY_TRY(assay_new_array(n, sizeof *some, &some));
  assay_printed_t as[2];  // of inner values, of outputs
  for (int o = 0; o < 2; o++)
    as[o] = assay_golden_printed(some, gather_all(w, o == 1, some), ALL_TOGETHER);
  for (size_t i = 0; i < values; i++) {
    if (!w->golden_of[i]) continue;
    const assay_value_t* v = w->golden_of[i]->value;
    w->printed[i] = assay_golden_printed(some, gather(w, v, some), ALONE);
    if (!assay_is_printed(&as[v->is_output])) as[v->is_output] = w->printed[i];
  }
  assay_free(some);
  for (size_t i = 0; i < values; i++) {
    const assay_printed_t* by = w->golden_of[i] ? &as[w->golden_of[i]->value->is_output] : NULL;
    if (by && assay_is_printed(by) && !assay_is_printed(&w->printed[i]))
      w->printed[i] = assay_golden_printed_as(w->golden_of[i]->tensor, by);
  }
  for (size_t i = 0; i < w->golden.n; i++) assay_tensor_forget_whole(w->golden.at[i].tensor);
  return NULL;
}

assay_status_t assay_golden_walk_create(assay_golden_walk_t* w, const assay_golden_t* golden,
                                        assay_tensor_t* const* inputs) {
  const assay_model_t* m = w->model;
  const size_t values = (size_t)m->n_values;
  const assay_evaluator_config_t noisy = {
      .mode = ASSAY_MODE_PLAN,
      .arith = ASSAY_ARITH_F32,
      .unquantized = w->options->unquantized,
      .seed = w->options->seed,
      .hooks = {.before = assay_golden_before_noisy, .after = assay_golden_after_noisy, .user = w}};
  ASSAY_TRY(copy_golden(golden, &w->golden));
  ASSAY_TRY(assay_new_array(values, sizeof *w->golden_of, &w->golden_of));
  ASSAY_TRY(assay_new_array(values, sizeof *w->printed, &w->printed));
  ASSAY_TRY(assay_new_array(values, sizeof *w->met, &w->met));
  ASSAY_TRY(assay_new_array(values, sizeof *w->noisy_out, &w->noisy_out));
  ASSAY_TRY(assay_new_array(values, sizeof *w->missed, &w->missed));
  ASSAY_TRY(assay_new_array(values, sizeof *w->explained, &w->explained));
  ASSAY_TRY(create_truth(w, false, inputs, &w->truth));
  ASSAY_TRY(assay_evaluator_create(m, &noisy, &w->noisy));
  for (size_t i = 0; i < w->golden.n; i++)
    if (w->golden.at[i].value) w->golden_of[w->golden.at[i].value->id] = &w->golden.at[i];
  ASSAY_TRY(find_printed(w));
  for (size_t i = 0; i < m->graph->n_inputs; i++)  // one copy of an input serves both
    if (inputs[i])
      assay_evaluator_set(w->noisy, m->graph->inputs[i],
                          assay_evaluator_get(w->truth, m->graph->inputs[i]));
  return NULL;
}

void assay_golden_walk_deinit(assay_golden_walk_t* w) {
  const size_t values = (size_t)w->model->n_values;
  for (size_t i = 0; w->noisy_out && i < values; i++) assay_tensor_release(w->noisy_out[i]);
  for (size_t i = 0; w->missed && i < values; i++) assay_tensor_release(w->missed[i]);
  assay_evaluator_destroy(w->truth);
  assay_evaluator_destroy(w->noisy);
  assay_free(w->golden_of);
  assay_free(w->printed);
  assay_golden_deinit(&w->golden);
  assay_free(w->met);
  assay_free(w->noisy_out);
  assay_free(w->missed);
  assay_free(w->explained);
  assay_free(w->faulty);
  assay_free(w->idle);
}

static bool knows_outputs(const assay_golden_walk_t* w, const assay_node_t* n) {
  bool known = n->n_outputs > 0;
  for (size_t i = 0; i < n->n_outputs; i++)
    known = known && n->outputs[i] && w->golden_of[n->outputs[i]->id] && n->outputs[i]->type &&
            n->outputs[i]->type->kind == ASSAY_KIND_TENSOR;
  return known;
}

// Golden in place of what a node that cannot be run would make.
static assay_status_t put_golden(assay_golden_walk_t* w, const assay_node_t* n) {
  for (size_t i = 0; i < n->n_outputs; i++) {
    const assay_value_t* v = n->outputs[i];
    assay_tensor_t *wide = NULL, *by = NULL;
    ASSAY_TRY(assay_tensor_widen(w->golden_of[v->id]->tensor, &wide));
    assay_status_t st = assay_tensor_retype(wide, v->type->elem, &by);
    assay_tensor_release(wide);
    if (st) return st;
    assay_evaluator_set(w->truth, v, by);
    assay_evaluator_set(w->noisy, v, by);
    assay_tensor_release(by);
  }
  return NULL;
}

// A node that cannot be run at all, though golden knows what it gives: a fault, after which golden
// goes on.
static assay_status_t pass_over(assay_golden_walk_t* w, const assay_node_t* n, assay_status_t why) {
  if (!knows_outputs(w, n) || assay_status_code(why) == ASSAY_NO_MEMORY) return why;
  assay_export_t* e = w->out;
  assay_status_t st = assay_grow(&e->faults, &e->capacity, e->n + 1, sizeof *e->faults);
  if (st) return assay_status_join(why, st);
  e->faults[e->n++] = (assay_fault_t){.value = n->outputs[0], .node = n, .shape = true};
  assay_status_free(why);
  return put_golden(w, n);
}

// ---- walking -----------------------------------------------------------------------------------

// Runs all nodes, or up to one that cannot be run since golden of another shape stands in for what
// it hangs on: *out_barred.
static assay_status_t walk_once(assay_golden_walk_t* w, bool* out_barred) {
  enum { RESTARTS = 3 };  // then whatever has another shape is barred
  const assay_graph_t* g = w->model->graph;
  *out_barred = false;
  for (size_t i = 0; i < g->n_nodes; i++) {
    // The noisy run only measures; where it fails nothing is explained by rounding.
    assay_status_t st = assay_evaluator_step(w->noisy, g->nodes[i]);
    if (st && assay_status_code(st) != ASSAY_NO_MEMORY) assay_status_free(st), st = NULL;
    if (!st) st = assay_evaluator_step(w->truth, g->nodes[i]);
    if (st && assay_status_code(st) != ASSAY_NO_MEMORY) {
      assay_status_t bar_st = assay_golden_bar(w, i, w->restarts >= RESTARTS, out_barred);
      if (bar_st) return assay_status_join(st, bar_st);
      if (*out_barred) return assay_status_free(st), NULL;
    }
    if (st) st = pass_over(w, g->nodes[i], st);
    if (st) return st;
    if (w->options->progress)
      w->options->progress(w->options->user, "golden", (double)(i + 1) / (double)g->n_nodes);
  }
  return NULL;
}

// As before the walk, but for what is barred.
static assay_status_t begin_again(assay_golden_walk_t* w, assay_tensor_t* const* inputs,
                                  const assay_golden_arithmetic_sums_t* sums) {
  const assay_graph_t* g = w->model->graph;
  assay_golden_arithmetic_probe_t* probe = w->options->probe;
  w->restarts++;
  w->out->n = w->out->values_compared = 0;
  for (size_t i = 0; i < (size_t)w->model->n_values; i++) {
    assay_tensor_release(w->noisy_out[i]);
    assay_tensor_release(w->missed[i]);
    w->noisy_out[i] = w->missed[i] = NULL;
    w->explained[i] = (assay_difference_t){0};
    w->met[i] = (assay_golden_met_t){.barred = w->met[i].barred};
  }
  if (probe && probe->n) memcpy(probe->at, sums, probe->n * sizeof *sums);
  assay_evaluator_reset(w->truth);
  assay_evaluator_reset(w->noisy);
  ASSAY_TRY(assay_evaluator_set_inputs_widened(w->truth, inputs));
  for (size_t i = 0; i < g->n_inputs; i++)
    if (inputs[i])
      assay_evaluator_set(w->noisy, g->inputs[i], assay_evaluator_get(w->truth, g->inputs[i]));
  return find_printed(w);
}

assay_status_t assay_golden_walk_on(assay_golden_walk_t* w, assay_tensor_t* const* inputs) {
  const assay_golden_arithmetic_probe_t* probe = w->options->probe;
  assay_golden_arithmetic_sums_t* sums = NULL;  // of the samples before
  bool barred = false;
  if (probe && probe->n) {
    ASSAY_TRY(assay_new_array(probe->n, sizeof *sums, &sums));
    memcpy(sums, probe->at, probe->n * sizeof *sums);
  }
  w->walking = true;
  assay_status_t st = walk_once(w, &barred);
  while (!st && barred) {
    st = begin_again(w, inputs, sums);
    if (!st) st = walk_once(w, &barred);
  }
  w->walking = false;
  assay_free(sums);
  return st;
}

// Golden of a search, which looks at all of it again and again: canonical.
static assay_status_t widen_golden(assay_golden_walk_t* w) {
  for (size_t i = 0; i < w->golden.n; i++) {
    assay_tensor_t* wide = NULL;
    ASSAY_TRY(assay_tensor_widen(w->golden.at[i].tensor, &wide));
    assay_tensor_release(w->golden.at[i].tensor);
    w->golden.at[i].tensor = wide;
  }
  return NULL;
}

assay_status_t assay_golden_walk_fill(assay_golden_walk_t* w, assay_tensor_t* const* inputs) {
  const assay_graph_t* g = w->model->graph;
  if (w->full) return NULL;
  ASSAY_TRY(widen_golden(w));
  assay_evaluator_destroy(w->truth);
  w->truth = NULL;
  assay_evaluator_reset(w->noisy);
  ASSAY_TRY(create_truth(w, true, inputs, &w->truth));
  assay_status_t st = NULL;
  w->walking = true;
  for (size_t i = 0; !st && i < g->n_nodes; i++) {
    st = assay_evaluator_step(w->truth, g->nodes[i]);
    if (!st || assay_status_code(st) == ASSAY_NO_MEMORY || !knows_outputs(w, g->nodes[i])) continue;
    assay_status_free(st);
    st = put_golden(w, g->nodes[i]);
  }
  w->walking = false;
  w->full = !st;
  return st;
}
