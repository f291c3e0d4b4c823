// Each layer by all tactics that can run it, on the layer's real inputs: what `debug tactics`
// finds.
#include "debug/tactic_debug.h"

#include <math.h>
#include <string.h>

#include "account/local.h"
#include "account/special.h"
#include "base/alloc.h"
#include "exec/segment/sizes.h"

// An error outlies where it is so many times what reruns of the emulated layer show, of which they
// show at least this part of the probable bound.
static const double FACTOR = 16, SHOWN = 1.0 / 16;
enum { RERUNS = 3 };

const char* assay_tactic_fault_name(assay_tactic_fault_t f) {
  static const char* const names[] = {"sound", "outlying", "invalid", "beyond bound"};
  return names[f];
}

typedef struct job {
  const assay_check_setting_t* check;
  const assay_tactic_options_t* options;
  assay_tactic_blame_t* out;
  const assay_layers_t* layers;
  assay_locals_t* locals;
  assay_sizes_t sizes;
  void* state;
  size_t* place;  // by layer: where it stands in out->layers, 1 more; 0: not asked for
  bool timed;     // now: in the first sample
} job_t;

// ---- what was asked for -------------------------------------------------------------------------

static bool matches(const job_t* j, const assay_layer_t* l) {
  const char* pattern = j->options->layer;
  if (!pattern || assay_glob_match(pattern, l->name)) return true;
  for (size_t k = 0; k < l->n_nodes; k++) {
    const assay_origins_t o = assay_plan_origins(j->out->plan, &l->nodes[k]);
    if (assay_glob_match(pattern, l->nodes[k]->label)) return true;
    for (size_t i = 0; i < o.n; i++)
      if (assay_glob_match(pattern, o.nodes[i]->label)) return true;
    for (size_t i = 0; i < l->nodes[k]->n_outputs; i++)
      if (l->nodes[k]->outputs[i] && assay_glob_match(pattern, l->nodes[k]->outputs[i]->name))
        return true;
  }
  return false;
}

static assay_status_t list_layers(job_t* j) {
  assay_tactic_blame_t* b = j->out;
  ASSAY_TRY(assay_new_array(j->layers->n_layers, sizeof *b->layers, &b->layers));
  ASSAY_TRY(assay_new_array(j->layers->n_layers, sizeof *j->place, &j->place));
  for (size_t i = 0; i < j->layers->n_layers; i++) {
    if (!matches(j, &j->layers->layers[i])) continue;
    b->layers[b->n_layers] =
        (assay_tactic_layer_t){.layer = &j->layers->layers[i], .emulated = ASSAY_ERROR_SUM_INIT};
    j->place[i] = ++b->n_layers;
  }
  if (b->n_layers) return NULL;
  const assay_nearest_t near = assay_plan_nearest(j->layers->model, j->options->layer);
  return ASSAY_ERROR(ASSAY_NOT_FOUND, "the pattern '%s' matches no layer, node or output%s",
                     j->options->layer, ASSAY_NEAREST_TEXT(&near));
}

static assay_status_t account_of(assay_tactic_layer_t* l, const assay_tactic_run_t* run,
                                 assay_tactic_account_t** out) {
  for (size_t i = 0; i < l->n; i++)
    if (strcmp(l->at[i].name, run->name) == 0) return *out = &l->at[i], NULL;
  ASSAY_TRY(assay_grow(&l->at, &l->capacity, l->n + 1, sizeof *l->at));
  *out = &l->at[l->n++];
  **out = (assay_tactic_account_t){.name = run->name,
                                   .source = run->source,
                                   .same_bits = true,
                                   .bounded = true,
                                   .microseconds = (double)NAN,
                                   .own = ASSAY_ERROR_SUM_INIT};
  return NULL;
}

// ---- one run of a layer -------------------------------------------------------------------------

typedef struct seen {
  const assay_layer_t* layer;
  const assay_node_t* node;
  size_t n_in, n_out;
  assay_tensor_t* const* in;
  assay_tensor_t* const* engine;
} seen_t;

static bool same_bits(const assay_tensor_t* a, const assay_tensor_t* b) {
  if (!a || !b) return a == b;
  if (!assay_tensor_alike(a, b) || a->store == ASSAY_STORE_STR) return false;
  return !a->size || !memcmp(a->data, b->data, (size_t)a->size * assay_store_elem_bytes(a->store));
}

static void add_error(assay_error_sum_t* to, const assay_tensor_t* got,
                      const assay_tensor_t* truth) {
  assay_error_sum_t e = ASSAY_ERROR_SUM_INIT;
  if (!got || !truth || got->store != ASSAY_STORE_F64 || !assay_tensor_alike(got, truth)) return;
  assay_error_sum_add(&e, assay_f64(got), assay_f64(truth), (size_t)got->size);
  assay_error_sum_join(to, &e);
}

static void release(assay_tensor_t** t, size_t n) {
  for (size_t i = 0; t && i < n; i++) {
    assay_tensor_release(t[i]);
    t[i] = NULL;
  }
}

// What the emulated layer shows in other orders and with stochastic rounding: the largest ratio of
// its error to the probable bound, and most elements past that.
static assay_status_t rerun(job_t* j, const seen_t* s, const assay_local_t* local,
                            const assay_rounding_t* rounding, double* out_ratio,
                            int64_t* out_between) {
  assay_tensor_t** out = NULL;
  ASSAY_TRY(assay_new_array(s->n_out, sizeof *out, &out));
  assay_status_t st = NULL;
  for (int variant = 0; !st && variant < RERUNS; variant++) {
    assay_judgement_t r = {0};
    st = assay_locals_rerun(j->locals, s->layer, s->node, s->n_in, s->in, variant, s->n_out, out);
    if (!st) st = assay_local_judge(local, local->converted, out, s->layer, rounding, NULL, &r);
    *out_ratio = fmax(*out_ratio, assay_judgement_ratio(&r));
    if (r.between + r.beyond > *out_between) *out_between = r.between + r.beyond;
    release(out, s->n_out);
  }
  assay_free(out);
  return st;
}

static assay_status_t find_outlying(job_t* j, const seen_t* s, const assay_local_t* local,
                                    const assay_rounding_t* rounding, const assay_judgement_t* one,
                                    assay_tactic_account_t* a) {
  const double ratio = assay_judgement_ratio(one);
  double shown = SHOWN;
  int64_t between = 0;
  if (!local->bounded || (ratio <= FACTOR * SHOWN && !one->between)) return NULL;
  ASSAY_TRY(rerun(j, s, local, rounding, &shown, &between));
  const bool often =
      (double)one->between > FACTOR * (double)between + 3 + 1e-4 * (double)one->elements;
  if (ratio > FACTOR * shown || often) a->outlying_by = fmax(a->outlying_by, ratio / shown);
  return NULL;
}

static assay_status_t judge_run(job_t* j, const seen_t* s, const assay_tactic_run_t* run,
                                assay_tactic_account_t* a) {
  assay_local_t local = {0};
  assay_judgement_t one = {0};
  ASSAY_TRY(
      assay_locals_run(j->locals, s->layer, s->node, s->n_in, s->in, &run->rounding, NULL, &local));
  const assay_layer_rerun_t of = {s->layer, s->node, s->n_in, s->in, run->out};
  assay_special_t special = {0};
  const bool whole = local.n_out <= run->n_out;
  assay_status_t st =
      whole ? assay_special_find(j->locals, &of, &local, &run->rounding, true, &special) : NULL;
  if (!st && whole)
    st = assay_local_judge(&local, local.converted, run->out, s->layer, &run->rounding, &special,
                           &one);
  assay_special_deinit(&special);
  for (size_t i = 0; i < s->n_out && i < run->n_out && i < local.n_out; i++) {
    add_error(&a->own, run->out[i], local.truth[i]);
    a->same_bits &= same_bits(run->out[i], s->engine[i]);
    if (run->out[i] && local.truth[i] && run->out[i]->size != local.truth[i]->size)
      a->shape_mismatches += run->out[i]->size ? run->out[i]->size : 1;
  }
  a->bounded &= local.bounded;
  assay_judgement_join(&a->judged, &one);
  if (!st && !one.beyond) st = find_outlying(j, s, &local, &run->rounding, &one, a);
  assay_local_deinit(&local);
  return st;
}

static assay_status_t add_emulated(job_t* j, const seen_t* s, assay_tactic_layer_t* l) {
  assay_local_t local = {0};
  assay_tensor_t** out = NULL;
  ASSAY_TRY(assay_new_array(s->n_out, sizeof *out, &out));
  assay_status_t st =
      assay_locals_run(j->locals, s->layer, s->node, s->n_in, s->in, NULL, NULL, &local);
  if (!st) st = assay_locals_rerun(j->locals, s->layer, s->node, s->n_in, s->in, 0, s->n_out, out);
  for (size_t i = 0; !st && i < s->n_out && i < local.n_out; i++)
    add_error(&l->emulated, out[i], local.truth[i]);
  release(out, s->n_out);
  assay_free(out);
  assay_local_deinit(&local);
  return st;
}

static assay_status_t try_layer(job_t* j, size_t at, const seen_t* s) {
  assay_tactic_layer_t* l = &j->out->layers[j->place[at] - 1];
  assay_tactic_runs_t runs = {0};
  assay_status_t st =
      j->check->backend->each_tactic(j->layers, at, &j->sizes, s->in, j->timed, &runs);
  for (size_t i = 0; !st && i < runs.n; i++) {
    assay_tactic_account_t* a = NULL;
    st = account_of(l, &runs.at[i], &a);
    if (!st && j->timed) a->microseconds = runs.at[i].microseconds;
    if (!st) st = judge_run(j, s, &runs.at[i], a);
    j->out->n_tried++;
  }
  if (!st && runs.n) st = add_emulated(j, s, l);
  assay_tactic_runs_deinit(&runs);
  return st;
}

static bool is_control(const assay_node_t* n) {
  return !n->op || n->op->flags & (ASSAY_OP_CONTROL | ASSAY_OP_RANDOM);
}

static assay_status_t on_layer(void* user, const assay_layer_t* layer, const assay_node_t* node,
                               uint64_t iteration, size_t n_in, assay_tensor_t* const* in,
                               size_t n_out, assay_tensor_t* const* out) {
  job_t* j = user;
  const size_t at = layer ? (size_t)(layer - j->layers->layers) : SIZE_MAX;
  (void)iteration;
  if (at >= j->layers->n_layers) return NULL;
  for (size_t i = 0; i < n_out; i++)
    if (node->outputs[i] && out[i] && out[i]->kind == ASSAY_KIND_TENSOR && node->outputs[i]->type)
      ASSAY_TRY(assay_sizes_bind(&j->sizes, node->outputs[i]->type, out[i]->rank, out[i]->dims));
  if (!j->place[at] || is_control(node)) return NULL;
  const seen_t s = {layer, node, n_in, n_out, in, out};
  return try_layer(j, at, &s);
}

// ---- the whole ----------------------------------------------------------------------------------

static assay_status_t run_sample(job_t* j, assay_tensor_t* const* inputs) {
  const assay_backend_t* b = j->check->backend;
  const assay_graph_t* g = j->layers->model->graph;
  b->reset(j->state);
  assay_sizes_clear(&j->sizes);
  for (size_t i = 0; i < g->n_inputs; i++) {
    assay_tensor_t* wide = NULL;
    if (!inputs[i]) continue;
    ASSAY_TRY(assay_tensor_widen(inputs[i], &wide));
    assay_status_t st = b->set(j->state, g->inputs[i], wide);
    if (!st && wide->kind == ASSAY_KIND_TENSOR && g->inputs[i]->type)
      st = assay_sizes_bind(&j->sizes, g->inputs[i]->type, wide->rank, wide->dims);
    assay_tensor_release(wide);
    if (st) return st;
  }
  for (size_t l = 0; l < j->layers->n_layers; l++) {
    if (j->check->progress)
      j->check->progress(j->check->user, "tactics", (double)l / (double)j->layers->n_layers);
    ASSAY_TRY(b->step(j->state, l));
    if (j->place[l] && b->tactic) j->out->layers[j->place[l] - 1].ran = b->tactic(j->state, l);
  }
  return NULL;
}

static void find_faults(assay_tactic_blame_t* b) {
  for (size_t i = 0; i < b->n_layers; i++) {
    assay_tactic_layer_t* l = &b->layers[i];
    for (size_t k = 0; k < l->n; k++) {
      assay_tactic_account_t* a = &l->at[k];
      a->chosen = l->ran && strcmp(l->ran, a->name) == 0;
      a->fault = a->judged.beyond || a->shape_mismatches ? ASSAY_TACTIC_BEYOND
                 : a->judged.born_nan                    ? ASSAY_TACTIC_INVALID
                 : a->outlying_by > 0                    ? ASSAY_TACTIC_OUTLYING
                                                         : ASSAY_TACTIC_SOUND;
      b->n_faults += a->fault != ASSAY_TACTIC_SOUND;
    }
  }
}

static assay_status_t run(job_t* j, assay_model_t* model, const assay_samples_t* inputs) {
  const assay_check_setting_t* o = j->check;
  const assay_tap_t tap = {.layer = on_layer, .user = j};
  if (!o->backend->each_tactic)
    return ASSAY_ERROR(ASSAY_UNSUPPORTED,
                       "target '%s' has one way to run a layer; --target cpu has several",
                       o->backend->name);
  ASSAY_TRY(assay_plan_create(model, &o->precision, &o->plan, o->seed, &j->out->plan));
  j->layers = assay_plan_layers(j->out->plan);
  ASSAY_TRY(list_layers(j));
  ASSAY_TRY(assay_locals_create(j->layers, o->unquantized, &j->locals));
  ASSAY_TRY(assay_backend_open(o->backend, j->layers, NULL, &tap, &j->state));
  for (size_t k = 0; k < inputs->n; k++) {
    j->timed = j->options->timed && !k;
    ASSAY_TRY(run_sample(j, assay_samples_get(inputs, k)));
  }
  find_faults(j->out);
  return NULL;
}

assay_status_t assay_tactic_debug(assay_model_t* model, const assay_check_setting_t* check,
                                  const assay_tactic_options_t* options,
                                  const assay_samples_t* inputs, assay_tactic_blame_t* out) {
  assay_tactic_blame_t b = {0};
  job_t j = {.check = check, .options = options, .out = &b};
  assay_status_t st = run(&j, model, inputs);
  if (j.state) check->backend->close(j.state);
  assay_locals_destroy(j.locals);
  assay_sizes_deinit(&j.sizes);
  assay_free(j.place);
  if (st) return assay_tactic_blame_deinit(&b), st;
  *out = b;
  return NULL;
}

void assay_tactic_blame_deinit(assay_tactic_blame_t* b) {
  for (size_t i = 0; i < b->n_layers; i++) assay_free(b->layers[i].at);
  assay_free(b->layers);
  assay_plan_destroy(b->plan);
  *b = (assay_tactic_blame_t){0};
}
