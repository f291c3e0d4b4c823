// The proof of an edit: truth of the model before and after, on the same inputs.
#include "edit/proof.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "edit/moved.h"
#include "eval/evaluator.h"
#include "formats/format.h"
#include "ops/op.h"

// A difference of so many times what one rounding of each value gives is still explained by it.
static const double FACTOR = 8;
enum { TRIES = 4 };   // of what rounding explains, with other draws
enum { ENOUGH = 2 };  // sizes that were run, of those that are tried

// ---- runs ---------------------------------------------------------------------------------------

// A run of the original, which keeps the values that are wanted, and may round nodes by chance.
typedef struct watch {
  const bool* wanted;  // by value id of the original
  int n_values;
  assay_tensor_t** kept;           // by value id
  const assay_rounded_t* rounded;  // NULL: as it is
  uint64_t draw;
} watch_t;

static uint64_t mix(uint64_t h) {
  h *= UINT64_C(0x9E3779B97F4A7C15);
  return h ^ (h >> 32);
}

// Puts a copy in the place of a float tensor whose elements that the format lacks are moved by half
// a step of it, up or down by chance.
static assay_status_t round_by_chance(assay_format_t format, uint64_t draw, assay_tensor_t** t) {
  if (!*t || (*t)->kind != ASSAY_KIND_TENSOR || !assay_type_is_float((*t)->type)) return NULL;
  assay_tensor_t *wide = NULL, *moved = NULL;
  if (format == ASSAY_FORMAT_NONE) format = assay_type_format((*t)->type);
  if (format == ASSAY_FORMAT_FP64) return NULL;
  ASSAY_TRY(assay_tensor_widen(*t, &wide));
  assay_status_t st = assay_tensor_copy(wide, &moved);
  assay_tensor_release(wide);
  if (st) return st;
  double* x = assay_f64(moved);
  for (int64_t i = 0; i < moved->size; i++) {
    if (!isfinite(x[i]) || assay_format_round(format, x[i], ASSAY_OVERFLOW_IEEE) == x[i]) continue;
    const double half = assay_format_ulp(format, x[i]) / 2;
    x[i] += mix(draw ^ mix((uint64_t)i + 1)) >> 40 & 1 ? half : -half;
  }
  assay_tensor_release(*t);
  *t = moved;
  return NULL;
}

static bool may_round(const watch_t* w, const assay_node_t* n) {
  return w->rounded && w->rounded->nodes && (size_t)n->id < w->rounded->n &&
         w->rounded->nodes[n->id];
}

static assay_status_t before_node(void* user, const assay_node_t* n, size_t n_in,
                                  assay_tensor_t** in) {
  const watch_t* w = user;
  if (!may_round(w, n)) return NULL;
  for (size_t i = 0; i < n_in; i++)
    ASSAY_TRY(round_by_chance(w->rounded->format, mix(w->draw + (uint64_t)n->id * 64 + i), &in[i]));
  return NULL;
}

static assay_status_t after_node(void* user, const assay_node_t* n, size_t n_in,
                                 assay_tensor_t* const* in, size_t n_out, assay_tensor_t** out) {
  watch_t* w = user;
  (void)n_in, (void)in;
  for (size_t i = 0; may_round(w, n) && i < n_out; i++)
    ASSAY_TRY(
        round_by_chance(w->rounded->format, mix(w->draw + (uint64_t)n->id * 64 + 32 + i), &out[i]));
  for (size_t i = 0; i < n_out; i++) {
    const assay_value_t* v = n->outputs[i];
    if (!v || v->id >= w->n_values || !w->wanted[v->id] || !out[i]) continue;
    assay_tensor_release(w->kept[v->id]);
    w->kept[v->id] = assay_tensor_retain(out[i]);
  }
  return NULL;
}

static assay_status_t run_before(const assay_model_t* m, assay_tensor_t* const* inputs, watch_t* w,
                                 uint64_t seed) {
  assay_evaluator_t* evaluator = NULL;
  const assay_evaluator_config_t config = {
      .mode = ASSAY_MODE_TRUTH,
      .seed = seed,
      .hooks = {.before = w->rounded ? before_node : NULL, .after = after_node, .user = w}};
  const assay_graph_t* g = m->graph;
  for (size_t i = 0; i < g->n_inputs; i++) {
    if (!inputs[i] || !w->wanted[g->inputs[i]->id]) continue;
    assay_tensor_release(w->kept[g->inputs[i]->id]);
    w->kept[g->inputs[i]->id] = assay_tensor_retain(inputs[i]);
  }
  assay_status_t st = assay_evaluator_create_run(m, &config, inputs, &evaluator);
  // What no node makes: constants that are handed out.
  for (size_t i = 0; !st && i < g->n_outputs; i++) {
    const int id = g->outputs[i]->id;
    assay_tensor_t* t = assay_evaluator_get(evaluator, g->outputs[i]);
    if (w->wanted[id] && !w->kept[id] && t) w->kept[id] = assay_tensor_retain(t);
  }
  assay_evaluator_destroy(evaluator);
  return st;
}

static void forget(watch_t* w) {
  for (int i = 0; w->kept && i < w->n_values; i++) {
    assay_tensor_release(w->kept[i]);
    w->kept[i] = NULL;
  }
}

// The elements as another type: the nearest numbers that it has.
static assay_status_t as_type(assay_tensor_t* t, assay_type_t type, assay_tensor_t** out) {
  assay_tensor_t *wide = NULL, *made = NULL;
  if (t->kind != ASSAY_KIND_TENSOR || t->type == type ||
      assay_type_store(type) == ASSAY_STORE_STR || assay_type_store(type) == ASSAY_STORE_C128 ||
      assay_type_store(t->type) == ASSAY_STORE_STR || assay_type_store(t->type) == ASSAY_STORE_C128)
    return *out = assay_tensor_retain(t), NULL;
  ASSAY_TRY(assay_tensor_widen(t, &wide));
  assay_status_t st = assay_tensor_create(type, wide->rank, wide->dims, &made);
  for (int64_t i = 0; !st && i < wide->size; i++) {
    const double x = assay_moved_element(wide, i);
    if (made->store == ASSAY_STORE_F64)
      assay_f64(made)[i] = assay_format_round(assay_type_format(type), x, ASSAY_OVERFLOW_SATURATE);
    else if (type == ASSAY_TYPE_BOOL)
      assay_i64(made)[i] = x != 0;
    else
      assay_i64(made)[i] = assay_type_wrap(type, fabs(x) < 9e18 ? (int64_t)nearbyint(x) : 0);
  }
  assay_tensor_release(wide);
  if (!st) *out = made;
  return st;
}

static assay_type_t elem_of(const assay_value_t* v) {
  const assay_valtype_t* t = v->type ? v->type : v->declared;
  return t && t->kind == ASSAY_KIND_TENSOR ? t->elem : ASSAY_TYPE_UNDEFINED;
}

// Runs the edited model on what the original had, and compares its outputs.
static assay_status_t run_after(const assay_model_t* m, const watch_t* w, assay_mode_t mode,
                                bool unquantized, uint64_t seed, assay_moved_sums_t* sums) {
  assay_evaluator_t* evaluator = NULL;
  const assay_evaluator_config_t config = {.mode = mode, .seed = seed, .unquantized = unquantized};
  const assay_graph_t* g = m->graph;
  ASSAY_TRY(assay_evaluator_create(m, &config, &evaluator));
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < g->n_inputs; i++) {
    const assay_value_t* v = g->inputs[i];
    assay_tensor_t* t = v->id < w->n_values ? w->kept[v->id] : NULL;
    assay_tensor_t* typed = NULL;
    if (t) st = as_type(t, elem_of(v) ? elem_of(v) : t->type, &typed);
    if (!st && typed) assay_evaluator_set(evaluator, v, typed);
    assay_tensor_release(typed);
  }
  if (!st) st = assay_evaluator_run(evaluator);
  for (size_t i = 0; !st && i < g->n_outputs; i++) {
    const assay_value_t* v = g->outputs[i];
    st = assay_moved_add(&sums[i], v->id < w->n_values ? w->kept[v->id] : NULL,
                         assay_evaluator_get(evaluator, v));
  }
  assay_evaluator_destroy(evaluator);
  return st;
}

// ---- the whole ----------------------------------------------------------------------------------

typedef struct proof {
  const assay_model_t *before, *after;
  const assay_proof_options_t* options;
  bool* wanted;
  assay_moved_sums_t *truth, *stored, *unquantized;  // by output
  watch_t watch;
  size_t kept;  // the sample whose truth is there, from 1 on; 0: none is
} proof_t;

static void begin(assay_moved_sums_t* s, size_t n) {
  for (size_t i = 0; i < n; i++) s[i] = ASSAY_MOVED_SUMS_INIT;
}

static assay_status_t proof_create(proof_t* p) {
  const assay_graph_t* g = p->after->graph;
  const size_t n = g->n_outputs, n_values = (size_t)p->before->n_values;
  ASSAY_TRY(assay_new_array(n_values, sizeof *p->wanted, &p->wanted));
  ASSAY_TRY(assay_new_array(n_values, sizeof *p->watch.kept, &p->watch.kept));
  ASSAY_TRY(assay_new_array(n, sizeof *p->truth, &p->truth));
  ASSAY_TRY(assay_new_array(n, sizeof *p->stored, &p->stored));
  ASSAY_TRY(assay_new_array(n, sizeof *p->unquantized, &p->unquantized));
  begin(p->truth, n), begin(p->stored, n), begin(p->unquantized, n);
  for (size_t i = 0; i < g->n_inputs; i++)
    if (g->inputs[i]->id < p->before->n_values) p->wanted[g->inputs[i]->id] = true;
  for (size_t i = 0; i < n; i++)
    if (g->outputs[i]->id < p->before->n_values) p->wanted[g->outputs[i]->id] = true;
  p->watch.wanted = p->wanted;
  p->watch.n_values = p->before->n_values;
  return NULL;
}

static void proof_deinit(proof_t* p) {
  forget(&p->watch);
  assay_free(p->watch.kept);
  assay_free(p->wanted);
  assay_free(p->truth);
  assay_free(p->stored);
  assay_free(p->unquantized);
}

static void report(const proof_t* p, const char* what, double fraction) {
  if (p->options->progress) p->options->progress(p->options->user, what, fraction);
}

// Where the edited model takes an input in another type, both get what both can hold.
static assay_status_t common_inputs(const proof_t* p, assay_tensor_t* const* given,
                                    assay_tensor_t** out) {
  const assay_graph_t *b = p->before->graph, *a = p->after->graph;
  for (size_t i = 0; i < b->n_inputs; i++) {
    if (!given[i]) continue;
    assay_type_t type = given[i]->type;
    for (size_t k = 0; k < a->n_inputs; k++)
      if (a->inputs[k]->id == b->inputs[i]->id && elem_of(a->inputs[k]))
        type = elem_of(a->inputs[k]);
    assay_tensor_t* narrow = NULL;
    ASSAY_TRY(as_type(given[i], type, &narrow));
    assay_status_t st = as_type(narrow, given[i]->type, &out[i]);
    assay_tensor_release(narrow);
    if (st) return st;
  }
  return NULL;
}

// One sample through both models. *out_after: it was the edited one that failed.
static assay_status_t run_sample(proof_t* p, assay_tensor_t* const* inputs, bool* out_after) {
  const uint64_t seed = p->options->seed;
  ASSAY_TRY(run_before(p->before, inputs, &p->watch, seed));
  *out_after = true;
  ASSAY_TRY(run_after(p->after, &p->watch, ASSAY_MODE_TRUTH, false, seed, p->truth));
  if (p->options->stored)
    ASSAY_TRY(run_after(p->after, &p->watch, ASSAY_MODE_NATIVE, false, seed, p->stored));
  if (p->options->unquantized)
    ASSAY_TRY(run_after(p->after, &p->watch, ASSAY_MODE_TRUTH, true, seed, p->unquantized));
  *out_after = false;
  return NULL;
}

// Integers have no rounding of their own: one that differs has changed.
static bool is_discrete(const assay_value_t* v) {
  const assay_type_t t = elem_of(v);
  return t && assay_type_store(t) == ASSAY_STORE_I64;
}

static bool moved_within(const assay_moved_t* m, bool discrete, double explained,
                         int64_t explained_different) {
  if (!m->same_shape || m->broken) return false;
  if (discrete) return (double)m->different <= FACTOR * (double)explained_different;
  return m->rms <= FACTOR * explained || assay_moved_is_none(m);
}

// Has truth of a sample in `watch`: as the last run left it, or run again.
static assay_status_t keep_truth(proof_t* p, const assay_samples_t* samples, size_t k) {
  if (p->kept == k + 1) return NULL;
  forget(&p->watch);
  p->kept = k + 1;
  return run_before(p->before, assay_samples_get(samples, k), &p->watch, p->options->seed);
}

// What no rounding explains: another shape, NaN where there was none.
static bool can_be_explained(const assay_proof_t* out) {
  for (size_t i = 0; i < out->n; i++) {
    const assay_proof_output_t* o = &out->outputs[i];
    if (!o->truth.same_shape || o->truth.broken) return false;
    if (out->stored && (!o->stored.same_shape || o->stored.broken)) return false;
  }
  return true;
}

// How far truth of the original moves when each value of the nodes in question is rounded once
// more.
static assay_status_t explain(proof_t* p, const assay_samples_t* samples, const bool* ran,
                              assay_proof_t* out) {
  const assay_graph_t* g = p->after->graph;
  assay_moved_sums_t* sums = NULL;
  watch_t noisy = {
      .wanted = p->wanted, .n_values = p->watch.n_values, .rounded = p->options->rounded};
  assay_status_t st = assay_new_array(g->n_outputs, sizeof *sums, &sums);
  if (!st) st = assay_new_array((size_t)noisy.n_values, sizeof *noisy.kept, &noisy.kept);
  out->has_explained = true;
  for (int try = 0; !st && try < TRIES && !out->within; try++) {
    begin(sums, g->n_outputs);
    for (size_t k = 0; !st && k < samples->n; k++) {
      if (!ran[k]) continue;
      forget(&noisy);
      noisy.draw = mix((uint64_t)try * 1000 + k + 1);
      st = keep_truth(p, samples, k);
      if (!st) st = run_before(p->before, assay_samples_get(samples, k), &noisy, p->options->seed);
      for (size_t i = 0; !st && i < g->n_outputs; i++) {
        const int id = g->outputs[i]->id;
        if (id < noisy.n_values) st = assay_moved_add(&sums[i], p->watch.kept[id], noisy.kept[id]);
      }
    }
    out->within = !st;
    for (size_t i = 0; !st && i < out->n; i++) {
      assay_proof_output_t* o = &out->outputs[i];
      const assay_moved_t m = assay_moved_finish(&sums[i]);
      const bool discrete = is_discrete(g->outputs[i]);
      o->explained = fmax(o->explained, m.rms);
      if (m.different > o->explained_different) o->explained_different = m.different;
      o->within = moved_within(&o->truth, discrete, o->explained, o->explained_different) &&
                  (!out->stored ||
                   moved_within(&o->stored, discrete, o->explained, o->explained_different));
      out->within &= o->within;
    }
  }
  forget(&noisy);
  assay_free(noisy.kept);
  assay_free(sums);
  return st;
}

static void conclude(proof_t* p, assay_proof_t* out) {
  const assay_graph_t* g = p->after->graph;
  out->unchanged = true;
  for (size_t i = 0; i < out->n; i++) {
    assay_proof_output_t* o = &out->outputs[i];
    o->name = g->outputs[i]->name;
    o->truth = assay_moved_finish(&p->truth[i]);
    o->stored = assay_moved_finish(&p->stored[i]);
    o->unquantized = assay_moved_finish(&p->unquantized[i]);
    o->within =
        assay_moved_is_none(&o->truth) && !(is_discrete(g->outputs[i]) && o->truth.different);
    if (out->stored) o->within &= assay_moved_is_none(&o->stored);
    out->unchanged &= o->within;
  }
  out->within = out->unchanged;
}

// "batch=2, length=8": the sizes of dimensions that the model leaves open.
static void put_sizes(const assay_model_t* m, assay_tensor_t* const* inputs, assay_str_t* out) {
  const char* reported[16];
  size_t n = 0;
  for (size_t i = 0; i < m->graph->n_inputs; i++) {
    const assay_valtype_t* t = m->graph->inputs[i]->type;
    if (!inputs[i] || !t || t->kind != ASSAY_KIND_TENSOR || !t->has_shape ||
        inputs[i]->rank != t->rank)
      continue;
    for (int d = 0; d < t->rank; d++) {
      const char* name = t->dims[d] ? assay_dim_name(t->dims[d]) : NULL;
      bool known = !name || n == sizeof reported / sizeof *reported;
      for (size_t k = 0; k < n && !known; k++) known = strcmp(reported[k], name) == 0;
      if (known) continue;
      assay_str_printf(out, "%s%s=%lld",
                       n          ? ", "
                       : out->len ? "; "
                                  : "",
                       name, (long long)inputs[i]->dims[d]);
      reported[n++] = name;
    }
  }
}

static assay_status_t run_samples(proof_t* p, const assay_samples_t* samples, bool* ran,
                                  assay_proof_t* out, bool* out_after) {
  assay_status_t first = NULL;
  assay_tensor_t** inputs = NULL;
  const bool all = !samples->notes.len;  // given, or of a closed model: none may fail
  ASSAY_TRY(assay_new_array(samples->n_values, sizeof *inputs, &inputs));
  for (size_t k = 0; k < samples->n && (all || out->n_samples < ENOUGH); k++) {
    report(p, "truth before and after", (double)k / (double)samples->n);
    forget(&p->watch);
    p->kept = k + 1;
    assay_status_t st = common_inputs(p, assay_samples_get(samples, k), inputs);
    if (!st) st = run_sample(p, inputs, out_after);
    if (!st) put_sizes(p->before, inputs, &out->sizes);
    for (size_t i = 0; i < samples->n_values; i++) {
      assay_tensor_release(inputs[i]);
      inputs[i] = NULL;
    }
    ran[k] = !st;
    out->n_samples += !st;
    if (!st) continue;
    first = assay_status_join(first, st);
    if (*out_after || all || assay_status_code(first) == ASSAY_NO_MEMORY) break;
  }
  report(p, "", 1);
  assay_free(inputs);
  if (out->n_samples && !*out_after && !(all && first)) {
    assay_status_free(first);
    return assay_str_status(&out->sizes);
  }
  return first;
}

assay_status_t assay_proof_run(const assay_model_t* before, const assay_model_t* after,
                               const assay_samples_t* samples, const assay_proof_options_t* options,
                               assay_proof_t* out, bool* out_after) {
  proof_t p = {.before = before, .after = after, .options = options};
  bool* ran = NULL;
  *out = (assay_proof_t){
      .n = after->graph->n_outputs, .stored = options->stored, .unquantized = options->unquantized};
  *out_after = false;
  assay_status_t st = proof_create(&p);
  if (!st) st = assay_new_array(out->n, sizeof *out->outputs, &out->outputs);
  if (!st) st = assay_new_array(samples->n, sizeof *ran, &ran);
  if (!st) st = run_samples(&p, samples, ran, out, out_after);
  if (!st) conclude(&p, out);
  if (!st && !out->within && options->rounded && options->rounded->nodes && can_be_explained(out))
    st = explain(&p, samples, ran, out);
  assay_free(ran);
  proof_deinit(&p);
  if (st) assay_proof_deinit(out);
  return st;
}

void assay_proof_deinit(assay_proof_t* p) {
  assay_free(p->outputs);
  assay_str_deinit(&p->sizes);
  *p = (assay_proof_t){0};
}
