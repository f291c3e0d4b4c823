// More noisy runs, where one does not tell: of a few elements, and where golden's inner values are
// not quite what was computed from them.
#include <math.h>

#include "base/alloc.h"
#include "diagnose/golden/walk.h"

// ---- which faults ------------------------------------------------------------------------------

// Of a few elements one noisy run may show next to nothing by chance. DRAWS more tell, where what
// is left to explain is not too much. Where golden has inner values, these may not be quite what
// was computed from them (assay_golden_put_apart), of however many elements.
enum { FEW = 256, DRAWS = 7, DRAWS_OF_MANY = 2 };

static bool is_few(const assay_golden_walk_t* w, const assay_fault_t* f) {
  return w->golden_of[f->value->id] && w->golden_of[f->value->id]->tensor->size <= FEW;
}

// LOST: so many times golden's rounding, what is left of a difference may be off by; who loses more
// digits has few.
static bool is_borderline(const assay_golden_walk_t* w, const assay_fault_t* f) {
  static const double BORDERLINE = 16, LOST = 4096;
  const assay_golden_tensor_t* g = w->golden_of[f->value->id];
  const assay_difference_t* d = &f->difference;
  if (f->shape || !g) return false;
  const double allowed = assay_golden_allowed(f->explained, g->tensor, d->ref_rms);
  if (w->out->outputs_only) return d->rms <= BORDERLINE * allowed;
  return d->rms <=
         fmax(BORDERLINE * allowed, LOST * assay_golden_allowed(0, g->tensor, d->ref_rms));
}

// Whether a fault shows that golden's values are of several runs: its node moves numbers and rounds
// none, and yet golden has other ones, by little. An export that moves wrong numbers is off by
// much.
static bool shows_runs(const assay_golden_walk_t* w, const assay_fault_t* f) {
  static const double LITTLE = 2e-3;
  const assay_difference_t* d = &f->difference;
  return !w->out->outputs_only && is_borderline(w, f) && !(f->explained > 0) && !d->mismatched &&
         d->max <= LITTLE * d->ref_max;
}

// ---- draws -------------------------------------------------------------------------------------

// What more draws explain, by value id: sums of the squares of the RMS, the largest maximum.
static void add_draw(assay_golden_walk_t* w, const assay_value_t* v, const assay_difference_t* d) {
  assay_difference_t* sum = &w->explained[v->id];
  sum->rms += d->rms * d->rms;
  sum->max = fmax(sum->max, d->max);
  sum->mismatched = d->mismatched > sum->mismatched ? d->mismatched : sum->mismatched;
}

static assay_status_t pass_value(assay_golden_walk_t* w, const assay_value_t* v) {
  assay_difference_t d = {0};
  if (!w->met[v->id].compared || !w->noisy_out[v->id]) return NULL;
  if (w->missed[v->id]) {
    ASSAY_TRY(assay_golden_explain(w, v, w->missed[v->id], true, &d));
    add_draw(w, v, &d);
  }
  if (w->met[v->id].stands_in)
    ASSAY_TRY(assay_golden_put_apart(w, v, assay_evaluator_get(w->truth, v)));
  if (!w->missed[v->id]) assay_golden_drop_noisy(w, v);
  return NULL;
}

// The noisy run only measures.
static assay_status_t step_noisy(assay_golden_walk_t* w, const assay_node_t* n) {
  assay_status_t st = assay_evaluator_step(w->noisy, n);
  if (assay_status_code(st) == ASSAY_NO_MEMORY) return st;
  assay_status_free(st);
  return NULL;
}

static assay_status_t draw(assay_golden_walk_t* w) {
  const assay_graph_t* g = w->model->graph;
  for (size_t i = 0; i < g->n_nodes; i++) {
    ASSAY_TRY(step_noisy(w, g->nodes[i]));
    for (size_t k = 0; k < g->nodes[i]->n_outputs; k++)
      if (g->nodes[i]->outputs[k]) ASSAY_TRY(pass_value(w, g->nodes[i]->outputs[k]));
  }
  return NULL;
}

// ---- values of several runs --------------------------------------------------------------------

// Golden with the error that the noisy run has so far: as another run had the value.
static assay_status_t put_other_run(assay_golden_walk_t* w, const assay_value_t* v,
                                    const assay_tensor_t* truth, const assay_tensor_t* golden) {
  const assay_tensor_t* noisy = w->noisy_out[v->id];
  assay_tensor_t* other = NULL;
  if (!assay_tensor_alike(truth, golden) || !assay_tensor_alike(noisy, golden) ||
      golden->kind != ASSAY_KIND_TENSOR || golden->store != ASSAY_STORE_F64)
    return NULL;
  ASSAY_TRY(assay_tensor_copy(golden, &other));
  for (int64_t i = 0; i < golden->size; i++) {
    const double by = assay_f64(noisy)[i] - assay_f64(truth)[i];
    if (isfinite(by)) assay_f64(other)[i] += by;
  }
  assay_evaluator_set(w->noisy, v, other);
  assay_tensor_release(other);
  return NULL;
}

static assay_status_t pass_runs(assay_golden_walk_t* w, const assay_value_t* v,
                                assay_tensor_t** truth) {
  assay_difference_t d = {0};
  assay_tensor_t* golden = assay_evaluator_get(w->truth, v);
  if (!w->met[v->id].compared || !w->noisy_out[v->id] || !golden) return NULL;
  ASSAY_TRY(assay_golden_explain(w, v, *truth, true, &d));
  add_draw(w, v, &d);
  if (w->met[v->id].stands_in) {
    assay_evaluator_set(w->noisy, v, golden);
    ASSAY_TRY(put_other_run(w, v, *truth, golden));
    assay_tensor_release(*truth);
    *truth = assay_tensor_retain(golden);
  }
  if (!w->missed[v->id]) assay_golden_drop_noisy(w, v);
  return NULL;
}

static assay_status_t after_truth(void* user, const assay_node_t* n, size_t n_in,
                                  assay_tensor_t* const* in, size_t n_out, assay_tensor_t** out) {
  assay_golden_walk_t* w = user;
  (void)n_in;
  (void)in;
  for (size_t i = 0; n->graph == w->model->graph && i < n_out; i++)
    if (n->outputs[i] && out[i]) ASSAY_TRY(pass_runs(w, n->outputs[i], &out[i]));
  return NULL;
}

// A node of truth that cannot be run gives what it gave in the walk.
static assay_status_t step_truth(assay_golden_walk_t* w, assay_evaluator_t* truth,
                                 const assay_node_t* n) {
  assay_status_t st = assay_evaluator_step(truth, n);
  if (!st || assay_status_code(st) == ASSAY_NO_MEMORY) return st;
  assay_status_free(st);
  for (size_t i = 0; i < n->n_outputs; i++) {
    assay_tensor_t* t = n->outputs[i] ? assay_evaluator_get(w->truth, n->outputs[i]) : NULL;
    if (!t) continue;
    assay_evaluator_set(truth, n->outputs[i], t);
    assay_evaluator_set(w->noisy, n->outputs[i], t);
  }
  return NULL;
}

// Truth goes beside the noisy run, from golden to golden, to tell how far that is off.
static assay_status_t draw_runs(assay_golden_walk_t* w, assay_tensor_t* const* inputs) {
  const assay_graph_t* g = w->model->graph;
  const assay_evaluator_config_t config = {.mode = ASSAY_MODE_TRUTH,
                                           .unquantized = w->options->unquantized,
                                           .seed = w->options->seed,
                                           .hooks = {.after = after_truth, .user = w}};
  assay_evaluator_t* truth = NULL;
  ASSAY_TRY(assay_evaluator_create(w->model, &config, &truth));
  assay_status_t st = assay_evaluator_set_inputs_widened(truth, inputs);
  for (size_t i = 0; !st && i < g->n_nodes; i++) {
    st = step_noisy(w, g->nodes[i]);
    if (!st) st = step_truth(w, truth, g->nodes[i]);
  }
  assay_evaluator_destroy(truth);
  return st;
}

// ---- all of them -------------------------------------------------------------------------------

static assay_status_t draw_some(assay_golden_walk_t* w, assay_tensor_t* const* inputs, int draws,
                                bool runs) {
  for (int k = 0; k < draws; k++) {
    w->draw++;
    assay_evaluator_reset(w->noisy);
    ASSAY_TRY(assay_evaluator_set_inputs_widened(w->noisy, inputs));
    ASSAY_TRY(runs ? draw_runs(w, inputs) : draw(w));
  }
  return NULL;
}

// What more draws explain.
static assay_status_t explain_more(assay_golden_walk_t* w, assay_tensor_t* const* inputs) {
  const size_t values = (size_t)w->model->n_values;
  const assay_export_t* e = w->out;
  double* own = NULL;
  bool few = false, runs = false;
  for (size_t i = 0; i < e->n; i++) {
    few |= is_borderline(w, &e->faults[i]) && is_few(w, &e->faults[i]);
    runs |= shows_runs(w, &e->faults[i]);
  }
  const int draws = few ? DRAWS : DRAWS_OF_MANY;
  ASSAY_TRY(assay_new_array(values, sizeof *own, &own));
  for (size_t i = 0; i < values; i++) {
    own[i] = w->explained[i].rms;
    w->explained[i].rms *= w->explained[i].rms;
  }
  w->apart = own;
  assay_status_t st = draw_some(w, inputs, draws, runs);
  w->apart = NULL;
  for (size_t i = 0; i < values; i++) w->explained[i].rms = sqrt(w->explained[i].rms / (draws + 1));
  assay_free(own);
  return st;
}

static bool is_explained(const assay_golden_walk_t* w, const assay_fault_t* f) {
  const assay_golden_tensor_t* g = w->golden_of[f->value->id];
  return is_borderline(w, f) &&
         !assay_golden_is_fault(&f->difference, &w->explained[f->value->id], g->tensor);
}

assay_status_t assay_golden_draw_again(assay_golden_walk_t* w, assay_tensor_t* const* inputs) {
  assay_export_t* e = w->out;
  bool any = false;
  size_t n = 0;
  for (size_t i = 0; i < e->n; i++) any |= is_borderline(w, &e->faults[i]);
  if (!any) return NULL;
  ASSAY_TRY(assay_golden_walk_fill(w, inputs));
  ASSAY_TRY(explain_more(w, inputs));
  for (size_t i = 0; i < e->n; i++) {
    if (is_explained(w, &e->faults[i])) continue;
    e->faults[i].explained = fmax(e->faults[i].explained, w->explained[e->faults[i].value->id].rms);
    e->faults[n++] = e->faults[i];
  }
  e->n = n;
  return NULL;
}
