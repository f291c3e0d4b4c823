// QuantizeLinear and DequantizeLinear before what multiplies: Conv, ConvTranspose, MatMul, Gemm.
//
// Symmetric int8. Scales of activations come from truth on the samples, or are given (a calibration
// cache), one for a value; weights have one for each output channel. Weights stay in float32 in
// front of their quantizer: without the quantizers' rounding the model is what it was, which the
// proof runs.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "edit/editor.h"
#include "formats/stats.h"
#include "passes/edit.h"
#include "truth/machine.h"

enum { STEPS = 127 };  // of int8, each way

typedef struct quantizer {
  assay_editing_t* e;
  bool* wanted;                 // by value id: activations that are quantized
  assay_value_stats_t** stats;  // by value id: of their magnitudes
  int n_values;
  assay_value_t** twins;  // by value id: the value behind its quantizers
  size_t n_activations, n_weights;
  assay_map_t given;  // names of values -> their places among the given scales
} quantizer_t;

// ---- which --------------------------------------------------------------------------------------

static bool multiplies(const assay_node_t* n) {
  static const char* const names[] = {"Conv", "ConvTranspose", "MatMul", "Gemm"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (assay_is(n, names[i])) return true;
  return false;
}

static bool is_quantized(const assay_value_t* v) {
  return v->producer && strcmp(v->producer->op_type, "DequantizeLinear") == 0;
}

static bool can_quantize(const assay_editing_t* e, const assay_node_t* n) {
  return multiplies(n) && assay_editing_wants(e, n) && n->n_inputs >= 2 && n->inputs[0] &&
         n->inputs[1] && assay_elem_of(n->inputs[0]) == ASSAY_TYPE_FLOAT &&
         assay_elem_of(n->inputs[1]) == ASSAY_TYPE_FLOAT && !is_quantized(n->inputs[0]) &&
         !is_quantized(n->inputs[1]);
}

static const assay_edit_scale_t* given_scale(const quantizer_t* q, const assay_value_t* v) {
  uint64_t at;
  return assay_map_get(&q->given, v->name, &at) ? &q->e->wishes->scales[at] : NULL;
}

// An activation of the node that has no scale where scales are given: the node stays as it is.
static const assay_value_t* without_scale(const quantizer_t* q, const assay_node_t* n) {
  for (size_t i = 0; q->e->wishes->n_scales && i < 2; i++)
    if (!assay_pass_constant(n->inputs[i]) && !given_scale(q, n->inputs[i])) return n->inputs[i];
  return NULL;
}

static assay_status_t map_scales(quantizer_t* q) {
  const assay_edit_wishes_t* w = q->e->wishes;
  for (size_t i = 0; i < w->n_scales; i++)
    ASSAY_TRY(assay_map_put(&q->given, w->scales[i].name, i, NULL));
  return NULL;
}

// ---- how large activations are ------------------------------------------------------------------

static assay_status_t add_magnitudes(assay_value_stats_t* s, assay_tensor_t* t) {
  assay_tensor_t *wide = NULL, *copy = NULL;
  ASSAY_TRY(assay_tensor_widen(t, &wide));
  assay_status_t st = assay_tensor_copy(wide, &copy);
  for (int64_t i = 0; !st && i < copy->size; i++) assay_f64(copy)[i] = fabs(assay_f64(copy)[i]);
  if (!st) assay_value_stats_add(s, ASSAY_TYPE_DOUBLE, copy->data, copy->size);
  assay_tensor_release(wide);
  assay_tensor_release(copy);
  return st;
}

static assay_status_t look(void* user, const assay_node_t* n, size_t n_in, assay_tensor_t** in) {
  quantizer_t* q = user;
  for (size_t i = 0; i < n_in && i < 2; i++) {
    const assay_value_t* v = n->inputs[i];
    if (!v || !in[i] || !q->wanted[v->id] || !can_quantize(q->e, n)) continue;
    if (!q->stats[v->id]) ASSAY_TRY(assay_value_stats_create(ASSAY_FORMAT_NONE, &q->stats[v->id]));
    ASSAY_TRY(add_magnitudes(q->stats[v->id], in[i]));
  }
  return NULL;
}

static assay_status_t calibrate(quantizer_t* q) {
  const assay_editing_t* e = q->e;
  const assay_samples_t* s = e->samples;
  assay_status_t first = NULL;
  size_t ran = 0;
  for (size_t k = 0; k < s->n; k++) {
    assay_machine_t* machine = NULL;
    const assay_machine_config_t config = {
        .mode = ASSAY_MODE_TRUTH, .seed = e->seed, .hooks = {.before = look, .user = q}};
    assay_status_t st = assay_machine_create(e->model, &config, &machine);
    for (size_t i = 0; !st && i < s->n_values; i++)
      if (assay_samples_get(s, k)[i])
        assay_machine_set(machine, e->model->graph->inputs[i], assay_samples_get(s, k)[i]);
    if (!st) st = assay_machine_run(machine);
    assay_machine_destroy(machine);
    ran += !st;
    first = assay_status_join(first, st);
  }
  if (!ran) return assay_status_note(first, "calibrating");
  assay_status_free(first);
  return NULL;
}

static assay_status_t scale_of(const quantizer_t* q, const assay_value_t* v, double* out) {
  assay_value_summary_t s = {0};
  const assay_edit_scale_t* given = given_scale(q, v);
  *out = given ? (double)given->scale : 1;
  if (!q->stats[v->id]) return NULL;  // it was not reached
  ASSAY_TRY(assay_value_stats_summary(q->stats[v->id], &s));
  const double p = q->e->wishes->percentile;
  const double most = p > 0 && p < 100
                          ? fmin(s.max, assay_value_stats_percentile(q->stats[v->id], p / 100))
                          : s.max;
  if (most > 0) *out = most / STEPS;
  return NULL;
}

// ---- nodes --------------------------------------------------------------------------------------

static assay_status_t floats(assay_edit_t* x, assay_graph_t* g, const char* name, int rank,
                             int64_t n, const double* scales, assay_value_t** out) {
  assay_tensor_t* t = NULL;
  ASSAY_TRY(assay_tensor_create(ASSAY_TYPE_FLOAT, rank, &n, &t));
  for (int64_t i = 0; i < n; i++) {
    const double s = (double)(float)scales[i];
    assay_f64(t)[i] = s > 0 ? s : (double)(float)1e-30;
  }
  return assay_edit_constant(x, g, name, t, out);
}

static assay_status_t zeros(assay_edit_t* x, assay_graph_t* g, const char* name, int rank,
                            int64_t n, assay_value_t** out) {
  assay_tensor_t* t = NULL;
  ASSAY_TRY(assay_tensor_create_zero(ASSAY_TYPE_INT8, rank, &n, &t));
  return assay_edit_constant(x, g, name, t, out);
}

// Quantizes v and dequantizes it again before `n`. axis -1: one scale.
static assay_status_t insert_pair(assay_edit_t* x, assay_node_t* n, assay_value_t* v, int64_t count,
                                  const double* scales, int axis, assay_value_t** out) {
  assay_node_t *q = NULL, *dq = NULL;
  assay_value_t *s = NULL, *z = NULL;
  const char *s_name = NULL, *z_name = NULL, *q_name = NULL, *dq_name = NULL;
  assay_arena_t* a = x->c->model->arena;
  const assay_valtype_t* coded = NULL;
  ASSAY_TRY(assay_arena_printf(a, &s_name, "%s_scale", v->name));
  ASSAY_TRY(assay_arena_printf(a, &z_name, "%s_zero_point", v->name));
  ASSAY_TRY(assay_arena_printf(a, &q_name, "%s_quantized", v->name));
  ASSAY_TRY(assay_arena_printf(a, &dq_name, "%s_dequantized", v->name));
  ASSAY_TRY(floats(x, n->graph, s_name, axis < 0 ? 0 : 1, count, scales, &s));
  ASSAY_TRY(zeros(x, n->graph, z_name, axis < 0 ? 0 : 1, count, &z));
  if (v->type->has_shape)
    ASSAY_TRY(
        assay_valtype_tensor(x->c->model, ASSAY_TYPE_INT8, v->type->rank, v->type->dims, &coded));
  else
    ASSAY_TRY(assay_valtype_unranked(x->c->model, ASSAY_TYPE_INT8, &coded));
  assay_value_t* in[3] = {v, s, z};
  ASSAY_TRY(assay_edit_insert(x, n, "QuantizeLinear", 3, in, q_name, coded, &q));
  in[0] = q->outputs[0];
  ASSAY_TRY(assay_edit_insert(x, n, "DequantizeLinear", 3, in, dq_name, v->type, &dq));
  if (axis >= 0) {
    ASSAY_TRY(assay_edit_attr_i(x, q, "axis", axis));
    ASSAY_TRY(assay_edit_attr_i(x, dq, "axis", axis));
  }
  *out = dq->outputs[0];
  return NULL;
}

// The axis of a weight's output channels; -1: it has none, or scales cannot be by axis.
static int channel_axis(const quantizer_t* q, const assay_node_t* n, size_t input) {
  const int rank = assay_rank_of(n->inputs[input]);
  if (q->e->wishes->per_tensor || assay_model_opset(q->e->model, "") < 13 || rank < 2) return -1;
  if (assay_is(n, "Conv")) return 0;
  if (assay_is(n, "ConvTranspose")) return assay_attr_i64(n, "group", 1) == 1 ? 1 : -1;
  if (assay_is(n, "Gemm")) return assay_attr_i64(n, "transB", 0) ? 0 : 1;
  return input == 1 ? rank - 1 : rank - 2;
}

static assay_status_t quantize_weight(quantizer_t* q, assay_edit_t* x, assay_node_t* n,
                                      size_t input, assay_value_t** out) {
  assay_value_t* v = n->inputs[input];
  assay_tensor_t* wide = NULL;
  double* scales = NULL;
  ASSAY_TRY(assay_tensor_widen(v->constant, &wide));
  const int axis = channel_axis(q, n, input);
  const int64_t count = axis < 0 ? 1 : wide->dims[axis];
  const int64_t inner =
      axis < 0 ? wide->size : assay_dims_product(wide->dims, axis + 1, wide->rank);
  assay_status_t st = assay_new_array((size_t)count, sizeof *scales, &scales);
  for (int64_t i = 0; !st && i < wide->size; i++) {
    double* s = &scales[axis < 0 ? 0 : i / inner % count];
    *s = fmax(*s, fabs(assay_f64(wide)[i]) / STEPS);
  }
  if (!st) st = insert_pair(x, n, v, count, scales, axis, out);
  if (!st) q->n_weights++;
  assay_free(scales);
  assay_tensor_release(wide);
  return st;
}

static assay_status_t quantize_input(quantizer_t* q, assay_edit_t* x, assay_node_t* n, size_t i) {
  assay_value_t *v = n->inputs[i], *y = NULL;
  if (v->id >= q->n_values) return NULL;
  assay_value_t* twin = q->twins[v->id];
  if (twin && twin->graph == n->graph && !v->constant) {
    y = twin;
  } else if (assay_pass_constant(v)) {
    ASSAY_TRY(quantize_weight(q, x, n, i, &y));
  } else {
    double scale = 1;
    ASSAY_TRY(scale_of(q, v, &scale));
    ASSAY_TRY(insert_pair(x, n, v, 1, &scale, -1, &y));
    q->twins[v->id] = y;
    q->n_activations++;
  }
  return assay_edit_set_input(x, n, i, y);
}

static assay_status_t visit(assay_edit_t* x, assay_node_t* n) {
  quantizer_t* q = x->c->user;
  if (!can_quantize(q->e, n)) return NULL;
  const assay_value_t* open = without_scale(q, n);
  if (open) {
    assay_str_printf(&q->e->notes, "'%s' (%s) is left: no scale is given for its input '%s'\n",
                     n->label, n->op_type, open->name);
    return assay_str_status(&q->e->notes);
  }
  ASSAY_TRY(quantize_input(q, x, n, 0));
  return quantize_input(q, x, n, 1);
}

static assay_status_t run_pass(assay_pass_context_t* c) { return assay_edit_each(c, visit); }

static const assay_pass_t pass = {.name = "quantize", .run = run_pass};

static assay_status_t rewrite(quantizer_t* q) {
  assay_rewrite_t* r = NULL;
  const assay_pass_options_t options = {.within_opset = true};
  ASSAY_TRY(assay_passes_run_own((assay_model_t*)(uintptr_t)q->e->model, &pass, q, &options, &r));
  q->e->out = assay_model_retain(r->model);
  assay_rewrite_destroy(r);
  return NULL;
}

static void find_wanted(quantizer_t* q) {
  const assay_model_t* m = q->e->model;
  for (size_t k = 0; k < m->n_graphs; k++)
    for (size_t i = 0; i < m->graphs[k]->n_nodes; i++) {
      const assay_node_t* n = m->graphs[k]->nodes[i];
      for (size_t j = 0; j < 2 && can_quantize(q->e, n); j++)
        if (!assay_pass_constant(n->inputs[j])) q->wanted[n->inputs[j]->id] = true;
    }
}

static assay_status_t run(assay_editing_t* e) {
  quantizer_t q = {.e = e, .n_values = e->model->n_values};
  const size_t n = (size_t)q.n_values;
  if (assay_model_opset(e->model, "") < 10)
    return ASSAY_ERROR(ASSAY_UNSUPPORTED,
                       "QuantizeLinear needs operator set 10, and scales for each channel 13; the "
                       "model imports %lld",
                       (long long)assay_model_opset(e->model, ""));
  assay_status_t st = assay_new_array(n, sizeof *q.wanted, &q.wanted);
  if (!st) st = assay_new_array(n, sizeof *q.stats, &q.stats);
  if (!st) st = assay_new_array(n, sizeof *q.twins, &q.twins);
  if (!st) st = map_scales(&q);
  if (!st && !e->wishes->n_scales) {
    find_wanted(&q);
    st = calibrate(&q);
  }
  if (!st) st = rewrite(&q);
  assay_editing_did(e, "activations", q.n_activations);
  assay_editing_did(e, "weights", q.n_weights);
  for (size_t i = 0; q.stats && i < n; i++) assay_value_stats_destroy(q.stats[i]);
  assay_free(q.wanted);
  assay_free(q.stats);
  assay_free(q.twins);
  assay_map_deinit(&q.given);
  return st;
}

const assay_editor_t assay_editor_quantize = {
    .name = "quantize",
    .summary = "QuantizeLinear and DequantizeLinear before what multiplies, scales from samples",
    .promise = ASSAY_PROMISE_NONE,
    .calibrates = true,
    .unquantized = true,
    .run = run,
};
