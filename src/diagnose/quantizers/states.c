// Truth of a model with each of its quantizers as it is, off, or changed.
//
// The evaluator runs without quantizers, whose outputs are then real numbers in steps of the
// model's scale. A hook puts back what is wanted there: rounding, the ends of the range, other
// scales (expressed in the model's steps, so that what reads them stays as it is). Nodes that no
// quantizer in use reaches are not run again.
#include "diagnose/quantizers/states.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "ops/quant/book.h"
#include "ops/quant/quant.h"

enum { MAX_SAMPLES = 8 };
// Elements of truth that are kept between runs, of all samples together.
static const int64_t MAX_KEPT = INT64_C(48) << 20;

struct assay_states {
  const assay_model_t* model;
  assay_quantizers_t* q;
  const assay_quantizers_options_t* options;
  const assay_quantizer_state_t* at;  // of this run, by site
  assay_quantizer_state_t* resting;   // of the base; stored integers rest ON
  bool written;                       // the base is made with these states
  int *site_of, *read_of;             // by node id: quantizes, dequantizes a site; -1: none
  assay_evaluator_t* runner;
  assay_evaluator_t* base[MAX_SAMPLES];  // truth without quantizers; NULL: not kept
  size_t n_samples, only;
  const assay_evaluator_t* at_base;  // of the sample that is run
  int64_t kept;
  size_t base_of;  // the sample that the evaluator `lent` is of
  assay_evaluator_t* lent;
  bool* reached;  // by value id: differs from the base
};

// ---- a quantizer -------------------------------------------------------------------------------

static double bounded(const assay_quantizer_site_t* s, double q) {
  return fmin(fmax(q, s->low), s->high);
}

// What leaves a quantizer in steps of the model's scale, r being what would without rounding.
static double put_back(const assay_quantizer_site_t* s, assay_quantizer_state_t state, double r,
                       double scale, double zero, double other_scale, double other_zero) {
  switch (state) {
    case ASSAY_STATE_ON:
      return bounded(s, rint(r - zero) + zero);
    case ASSAY_STATE_CLIPS:
      return bounded(s, r);
    case ASSAY_STATE_ROUNDS:
      return rint(r - zero) + zero;
    case ASSAY_STATE_FITS:
    case ASSAY_STATE_APART: {
      const double q = bounded(s, rint((r - zero) * scale / other_scale) + other_zero);
      return (q - other_zero) * other_scale / scale + zero;
    }
    default:
      return r;
  }
}

// The same where what dequantizes it has scales of its own: r in its steps.
static double pair_up(const assay_quantizer_site_t* s, assay_quantizer_state_t state, double r,
                      double scale, double zero) {
  const double to_scale = s->reads.scale[0], to_zero = s->reads.zero[0];
  if (state == ASSAY_STATE_READ) return bounded(s, rint((r - zero) * scale / to_scale) + to_zero);
  return (bounded(s, rint(r - zero) + zero) - zero) * scale / to_scale + to_zero;
}

static assay_status_t quantize(const assay_quantizer_site_t* s, assay_quantizer_state_t state,
                               assay_tensor_t** t) {
  const assay_quantizer_scales_t* other = state == ASSAY_STATE_APART ? &s->apart : &s->fits;
  const bool by_other = state == ASSAY_STATE_FITS || state == ASSAY_STATE_APART;
  assay_tensor_t* y = NULL;
  if (by_other && !other->n) state = ASSAY_STATE_ON;
  ASSAY_TRY(assay_tensor_copy(*t, &y));
  for (int64_t i = 0; i < y->size; i++) {
    const int64_t g = assay_quantizer_scale_at(&s->has, y, i);
    const int64_t o = by_other && other->n ? assay_quantizer_scale_at(other, y, i) : 0;
    double* r = &assay_f64(y)[i];
    if (!isfinite(*r) || !(s->has.scale[g] > 0)) continue;
    if ((state == ASSAY_STATE_PAIRED || state == ASSAY_STATE_READ) && s->reads.n) {
      *r = pair_up(s, state, *r, s->has.scale[g], s->has.zero[g]);
      continue;
    }
    const double hidden = s->has.zero[g] - assay_quant_real_zero(s->has.scale[g], s->has.zero[g]);
    *r += hidden;
    *r = put_back(s, state, *r, s->has.scale[g], s->has.zero[g],
                  by_other && other->n ? other->scale[o] : 1,
                  by_other && other->n ? other->zero[o] : 0);
    *r -= hidden;
  }
  assay_tensor_release(*t);
  *t = y;
  return NULL;
}

// Which of the axes that were looked at holds a weight's channels, by what reads it.
static int channels_of(const assay_quantizer_site_t* s) {
  const assay_graph_t* g = s->node->graph;
  for (size_t i = 0; i < g->n_nodes; i++) {
    const assay_node_t* n = g->nodes[i];
    if (n->n_inputs < 2 || n->inputs[1] != s->dequantize->outputs[0]) continue;
    const bool second = strcmp(n->op_type, "MatMul") == 0 ||
                        strcmp(n->op_type, "ConvTranspose") == 0 ||
                        (strcmp(n->op_type, "Gemm") == 0 && !assay_attr_i64(n, "transB", 0));
    return s->axes[second ? 1 : 0] >= 0 ? second : -1;
  }
  return -1;
}

// Stored integers, each moved by up to half a step; fine: by the step that its channel would have.
static assay_status_t move(const assay_quantizer_site_t* s, bool fine, assay_tensor_t** t) {
  assay_tensor_t *wide = NULL, *moved = NULL;
  const int k = fine && s->has.axis < 0 ? channels_of(s) : -1;
  double largest = 0;
  for (int64_t c = 0; k >= 0 && c < s->n_peaks[k]; c++) largest = fmax(largest, s->peaks[k][c]);
  ASSAY_TRY(assay_tensor_widen(*t, &wide));
  assay_status_t st = assay_tensor_create(ASSAY_TYPE_FLOAT, wide->rank, wide->dims, &moved);
  const int64_t inner = k >= 0 ? assay_dims_product(wide->dims, s->axes[k] + 1, wide->rank) : 1;
  for (int64_t i = 0; !st && i < wide->size; i++) {
    const double step =
        k >= 0 && largest > 0 ? s->peaks[k][i / inner % s->n_peaks[k]] / largest : 1;
    assay_f64(moved)[i] = (double)assay_i64(wide)[i] + step * assay_quantizer_chance(i);
  }
  assay_tensor_release(wide);
  if (st) return st;
  assay_tensor_release(*t);
  *t = moved;
  return NULL;
}

static bool is_moved(assay_quantizer_state_t state) {
  return state == ASSAY_STATE_DRAWN || state == ASSAY_STATE_FINE;
}

static assay_status_t before(void* user, const assay_node_t* n, size_t n_in, assay_tensor_t** in) {
  const assay_states_t* s = user;
  const int at = s->site_of[n->id], read = s->read_of[n->id];
  if (s->written && (at >= 0 || read >= 0))
    return assay_written_before(&s->q->at[at >= 0 ? at : read], s->at[at >= 0 ? at : read], at < 0,
                                n_in, in);
  if (at < 0 || !n_in || !in[0] || !s->q->at[at].stored || s->q->at[at].book) return NULL;
  if (!is_moved(s->at[at])) return NULL;
  return move(&s->q->at[at], s->at[at] == ASSAY_STATE_FINE, &in[0]);
}

// What reaches a quantizer, in the place of what dequantizes it.
static assay_status_t go_through(const assay_states_t* s, int site, size_t n_out,
                                 assay_tensor_t** out) {
  const assay_value_t* v = s->q->at[site].value;
  const assay_evaluator_t* from = s->reached[v->id] ? s->runner : s->at_base;
  assay_tensor_t *x = from ? assay_evaluator_get(from, v) : NULL, *wide = NULL;
  if (!x || !n_out || !out[0] || !assay_tensor_same_shape(x, out[0])) return NULL;
  ASSAY_TRY(assay_tensor_widen(x, &wide));
  assay_tensor_release(out[0]);
  out[0] = wide;
  return NULL;
}

static assay_status_t after(void* user, const assay_node_t* n, size_t n_in,
                            assay_tensor_t* const* in, size_t n_out, assay_tensor_t** out) {
  const assay_states_t* s = user;
  const int at = s->site_of[n->id];
  (void)n_in, (void)in;
  const int read = s->written ? s->read_of[n->id] : -1;
  if (read >= 0 && s->at[read] == ASSAY_STATE_THROUGH) return go_through(s, read, n_out, out);
  if (s->written) return at < 0 ? NULL : assay_written_after(&s->q->at[at], s->at[at], n_out, out);
  if (at >= 0 && n_out && out[0] && s->q->at[at].book)
    return is_moved(s->at[at]) ? assay_book_move(n, 0, &out[0]) : NULL;
  if (at < 0 || !n_out || !out[0] || s->q->at[at].stored || s->at[at] == ASSAY_STATE_OFF)
    return NULL;
  if (out[0]->kind != ASSAY_KIND_TENSOR || out[0]->store != ASSAY_STORE_F64) return NULL;
  return quantize(&s->q->at[at], s->at[at], &out[0]);
}

// ---- the base ----------------------------------------------------------------------------------

// As the model declares, in float32; or truth without quantizers, with the hooks' in their place.
static assay_evaluator_config_t config_of(assay_states_t* s) {
  return (assay_evaluator_config_t){.mode = s->written ? ASSAY_MODE_NATIVE : ASSAY_MODE_TRUTH,
                                    .arith = s->written ? ASSAY_ARITH_F32 : 0,
                                    .unquantized = !s->written,
                                    .seed = s->options->seed,
                                    .hooks = {.before = before, .after = after, .user = s}};
}

static int64_t elements_of(const assay_model_t* m, const assay_evaluator_t* e) {
  int64_t n = 0;
  for (size_t i = 0; i < m->graph->n_nodes; i++)
    for (size_t k = 0; k < m->graph->nodes[i]->n_outputs; k++) {
      const assay_value_t* v = m->graph->nodes[i]->outputs[k];
      const assay_tensor_t* t = v ? assay_evaluator_get(e, v) : NULL;
      if (t && t->kind == ASSAY_KIND_TENSOR) n += t->size;
    }
  return n;
}

assay_status_t assay_states_base(assay_states_t* s, size_t sample, const assay_evaluator_t** out) {
  assay_evaluator_config_t config = config_of(s);
  const assay_quantizer_state_t* at = s->at;
  assay_evaluator_t* made = NULL;
  *out = s->base[sample] ? s->base[sample] : s->lent && s->base_of == sample ? s->lent : NULL;
  if (*out) return NULL;
  config.keep_all = config.spill = true;
  if (!s->written) config.hooks = (assay_evaluator_hooks_t){0};
  s->at = s->resting;
  assay_status_t st = assay_evaluator_create_run(
      s->model, &config, assay_samples_get(s->options->inputs, sample), &made);
  s->at = at;
  if (st) return assay_evaluator_destroy(made), st;
  const int64_t n = elements_of(s->model, made);
  if (s->kept + n <= MAX_KEPT) {
    s->kept += n;
    s->base[sample] = made;
  } else {
    assay_evaluator_destroy(s->lent);
    s->lent = made;
    s->base_of = sample;
  }
  *out = made;
  return NULL;
}

// ---- a run -------------------------------------------------------------------------------------

static bool is_control(const assay_node_t* n) { return n->op && n->op->flags & ASSAY_OP_CONTROL; }

static bool is_reached(const assay_states_t* s, const assay_node_t* n, bool any) {
  const int at = s->site_of[n->id];
  const assay_quantizer_state_t rest = at >= 0 ? s->resting[at] : ASSAY_STATE_OFF;
  const int read = s->written ? s->read_of[n->id] : -1;
  if (read >= 0 && s->at[read] != s->resting[read]) return true;
  if (at >= 0 && s->at[at] != rest && (s->written || s->at[at] != ASSAY_STATE_OFF)) return true;
  if (any && is_control(n)) return true;  // its body may read anything
  for (size_t i = 0; i < n->n_inputs; i++)
    if (n->inputs[i] && s->reached[n->inputs[i]->id]) return true;
  return false;
}

static void lend(assay_states_t* s, const assay_evaluator_t* base, const assay_value_t* v) {
  if (!v || v->constant || s->reached[v->id]) return;
  assay_tensor_t* t = assay_evaluator_get(base, v);
  if (t) assay_evaluator_set(s->runner, v, t);
}

static void lend_all(assay_states_t* s, const assay_evaluator_t* base, const assay_node_t* n) {
  const assay_graph_t* g = s->model->graph;
  for (size_t i = 0; i < n->n_inputs; i++) lend(s, base, n->inputs[i]);
  if (!is_control(n)) return;
  for (size_t i = 0; i < g->n_inputs; i++) lend(s, base, g->inputs[i]);
  for (size_t i = 0; i < g->n_nodes && g->nodes[i] != n; i++)
    for (size_t k = 0; k < g->nodes[i]->n_outputs; k++) lend(s, base, g->nodes[i]->outputs[k]);
}

static assay_status_t run_nodes(assay_states_t* s, const assay_evaluator_t* base) {
  const assay_graph_t* g = s->model->graph;
  bool any = false;
  assay_evaluator_reset(s->runner);
  memset(s->reached, 0, (size_t)s->model->n_values * sizeof *s->reached);
  for (size_t i = 0; i < g->n_nodes; i++) {
    const assay_node_t* n = g->nodes[i];
    if (!is_reached(s, n, any)) continue;
    any = true;
    lend_all(s, base, n);
    ASSAY_TRY(assay_evaluator_step(s->runner, n));
    for (size_t k = 0; k < n->n_outputs; k++)
      if (n->outputs[k]) s->reached[n->outputs[k]->id] = true;
  }
  return NULL;
}

static assay_status_t compare(assay_states_t* s, const assay_evaluator_t* base, size_t sample,
                              bool by_itself, assay_output_check_t* outputs) {
  const assay_graph_t* g = s->model->graph;
  const assay_samples_t* golden = s->options->golden;
  assay_tensor_t* const* want =
      golden->n ? assay_samples_get(golden, golden->n == 1 ? 0 : sample) : NULL;
  for (size_t i = 0; i < g->n_outputs; i++) {
    const assay_value_t* v = g->outputs[i];
    assay_tensor_t *plain = assay_evaluator_get(base, v), *a = NULL, *b = NULL;
    assay_tensor_t* made = s->reached[v->id] ? assay_evaluator_get(s->runner, v) : plain;
    if (!made || !plain) continue;
    assay_status_t st = assay_tensor_widen(made, &a);
    if (!st) st = assay_tensor_widen(plain, &b);
    if (!st) st = assay_output_add(&outputs[i], a, by_itself ? a : b);
    if (!st && want && want[i]) st = assay_output_add_golden(&outputs[i], a, b, want[i]);
    assay_tensor_release(a);
    assay_tensor_release(b);
    if (st) return st;
  }
  return NULL;
}

size_t assay_states_samples(const assay_states_t* s) { return s->n_samples; }

void assay_states_only(assay_states_t* s, size_t sample) { s->only = sample; }

assay_status_t assay_states_run(assay_states_t* s, const assay_quantizer_state_t* at,
                                bool by_itself, assay_output_check_t* outputs) {
  s->at = at;
  s->q->runs++;
  for (size_t k = 0; k < s->n_samples; k++) {
    const assay_evaluator_t* base = NULL;
    if (s->only != ASSAY_ALL_SAMPLES && s->only != k) continue;
    ASSAY_TRY(assay_states_base(s, k, &base));
    s->at_base = base;
    ASSAY_TRY(run_nodes(s, base));
    ASSAY_TRY(compare(s, base, k, by_itself, outputs));
  }
  return NULL;
}

static void drop_base(assay_states_t* s) {
  for (size_t k = 0; k < MAX_SAMPLES; k++) {
    assay_evaluator_destroy(s->base[k]);
    s->base[k] = NULL;
  }
  assay_evaluator_destroy(s->lent);
  s->lent = NULL;
  s->kept = 0;
}

void assay_states_rest(assay_states_t* s, const assay_quantizer_state_t* at) {
  drop_base(s);
  memcpy(s->resting, at, s->q->n * sizeof *at);
}

void assay_states_destroy(assay_states_t* s) {
  if (!s) return;
  drop_base(s);
  assay_evaluator_destroy(s->runner);
  assay_free(s->site_of);
  assay_free(s->read_of);
  assay_free(s->resting);
  assay_free(s->reached);
  assay_free(s);
}

static void find_readers(assay_states_t* s, size_t site) {
  const assay_graph_t* g = s->model->graph;
  const assay_quantizer_site_t* of = &s->q->at[site];
  for (size_t i = 0; i < g->n_nodes && !of->stored; i++)
    if (assay_quantizer_is_read_by(of->node, g->nodes[i])) s->read_of[g->nodes[i]->id] = (int)site;
}

assay_status_t assay_states_create(const assay_model_t* model, assay_quantizers_t* q,
                                   const assay_quantizers_options_t* options, bool written,
                                   assay_states_t** out) {
  assay_states_t* s = NULL;
  ASSAY_TRY(ASSAY_NEW(&s));
  s->model = model;
  s->q = q;
  s->options = options;
  s->written = written;
  s->only = ASSAY_ALL_SAMPLES;
  s->n_samples = options->inputs->n < MAX_SAMPLES ? options->inputs->n : MAX_SAMPLES;
  const assay_evaluator_config_t config = config_of(s);
  assay_status_t st = assay_new_array((size_t)model->n_node_ids, sizeof *s->site_of, &s->site_of);
  if (!st) st = assay_new_array((size_t)model->n_node_ids, sizeof *s->read_of, &s->read_of);
  if (!st) st = assay_new_array((size_t)model->n_values, sizeof *s->reached, &s->reached);
  if (!st) st = assay_new_array(q->n, sizeof *s->resting, &s->resting);
  for (size_t i = 0; !st && i < q->n; i++)
    s->resting[i] = written || q->at[i].stored ? ASSAY_STATE_ON : ASSAY_STATE_OFF;
  if (!st) st = assay_evaluator_create(model, &config, &s->runner);
  if (st) return assay_states_destroy(s), st;
  for (int i = 0; i < model->n_node_ids; i++) s->site_of[i] = s->read_of[i] = -1;
  for (size_t i = 0; i < q->n; i++) s->site_of[q->at[i].node->id] = (int)i;
  for (size_t i = 0; i < q->n; i++) find_readers(s, i);
  *out = s;
  return NULL;
}

assay_status_t assay_states_observe(assay_states_t* s, assay_quantizers_t* q) {
  const size_t n = assay_states_samples(s);
  for (size_t k = 0; k < n; k++) {
    const assay_evaluator_t* base = NULL;
    ASSAY_TRY(assay_states_base(s, k, &base));
    ASSAY_TRY(assay_quantizers_observe(q, base, n));
  }
  for (size_t i = 0; i < q->n; i++) ASSAY_TRY(assay_quantizer_choose(&q->at[i]));
  return NULL;
}
