// QuantizeLinear and DequantizeLinear before what multiplies: Conv, ConvTranspose, MatMul, Gemm;
// and before residual sums, where that is asked for: an engine then has integers all the way.
//
// Symmetric, to int8 or fp8. Scales of activations come from truth on the samples, or are given (a
// calibration cache), one for a value; weights have one for each output channel. int4 is for the
// weights of products alone, with a scale for each block of what is summed over. Weights stay in
// float32 in front of their quantizer: without the quantizers' rounding the model is what it was,
// which the proof runs.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "edit/editor.h"
#include "edit/weights/calibrate.h"
#include "edit/weights/quantizer_pair.h"
#include "eval/evaluator.h"
#include "passes/edit.h"

// What values are quantized to.
typedef struct form {
  const char* name;
  assay_type_t type;
  double max;     // the largest code, each way
  int64_t opset;  // that has quantizers to it
  int64_t block;  // weights alone, with scales of blocks of so many; 0: activations too
} form_t;

static const form_t forms[] = {
    {.name = "int8", .type = ASSAY_TYPE_INT8, .max = 127, .opset = 10},
    {.name = "fp8", .type = ASSAY_TYPE_FLOAT8E4M3FN, .max = 448, .opset = 19},
    {.name = "int4", .type = ASSAY_TYPE_INT4, .max = 7, .opset = 21, .block = 128},
};
enum { N_FORMS = sizeof forms / sizeof *forms };

static const double DEFAULT_PERCENTILE = 99.99;

typedef struct quantizer {
  assay_editing_t* e;
  const form_t* form;
  const assay_calibrator_t* calibrator;
  double quantile;              // of the calibrator
  size_t sample;                // that runs
  assay_status_t bad;           // why no range can be had, whatever the other samples say
  bool* wanted;                 // by value id: activations that are quantized
  assay_calibration_t** sizes;  // by value id: their magnitudes
  int n_values;
  assay_value_t** twins;  // by value id: the value after its quantizers
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

// The axis of a product's weight that is summed over; -1: it is no such weight.
static int summed_axis(const assay_node_t* n) {
  const int rank = assay_rank_of(n->inputs[1]);
  if (!assay_pass_constant(n->inputs[1]) || rank < 2) return -1;
  if (assay_is(n, "MatMul")) return rank - 2;
  return assay_is(n, "Gemm") ? (assay_attr_i64(n, "transB", 0) ? 1 : 0) : -1;
}

static bool can_quantize(const quantizer_t* q, const assay_node_t* n) {
  if (!multiplies(n) || !assay_editing_wants(q->e, n) || n->n_inputs < 2 || !n->inputs[0] ||
      !n->inputs[1] || assay_elem_of(n->inputs[0]) != ASSAY_TYPE_FLOAT ||
      assay_elem_of(n->inputs[1]) != ASSAY_TYPE_FLOAT)
    return false;
  if (q->form->block) return summed_axis(n) >= 0 && !is_quantized(n->inputs[1]);
  return !is_quantized(n->inputs[0]) && !is_quantized(n->inputs[1]);
}

static bool is_activation(const assay_value_t* v) {
  return v && !assay_pass_constant(v) && assay_elem_of(v) == ASSAY_TYPE_FLOAT && !is_quantized(v);
}

// Whether a value is what a node that is quantized makes, normalized or not.
static bool is_product(const quantizer_t* q, const assay_value_t* v) {
  const assay_node_t* n = v->producer;
  if (n && assay_is(n, "BatchNormalization")) n = n->inputs[0] ? n->inputs[0]->producer : NULL;
  return n && multiplies(n) && assay_editing_wants(q->e, n);
}

// Which operand of a residual sum is quantized: that which is added to a product. -1: it is none.
static int residual_of(const quantizer_t* q, const assay_node_t* n) {
  if (!q->e->requests->residuals || q->form->block || !assay_is(n, "Add") || n->n_inputs != 2 ||
      !assay_editing_wants(q->e, n) || !n->inputs[0] || !n->inputs[1] ||
      !assay_same_static_shape(n->inputs[0], n->inputs[1]))
    return -1;
  for (int i = 1; i >= 0; i--)
    if (is_activation(n->inputs[i]) && is_product(q, n->inputs[1 - i])) return i;
  return -1;
}

// Whether input i of a node gets quantizers.
static bool reads_quantized(const quantizer_t* q, const assay_node_t* n, size_t i) {
  return (i < 2 && can_quantize(q, n)) || residual_of(q, n) == (int)i;
}

static const assay_edit_scale_t* given_scale(const quantizer_t* q, const assay_value_t* v) {
  uint64_t at;
  return assay_map_get(&q->given, v->name, &at) ? &q->e->requests->scales[at] : NULL;
}

// An activation of the node that has no scale where scales are given: the node stays as it is.
static const assay_value_t* without_scale(const quantizer_t* q, const assay_node_t* n) {
  for (size_t i = 0; q->e->requests->n_scales && i < 2; i++)
    if (!assay_pass_constant(n->inputs[i]) && !given_scale(q, n->inputs[i])) return n->inputs[i];
  return NULL;
}

static assay_status_t map_scales(quantizer_t* q) {
  const assay_edit_requests_t* w = q->e->requests;
  for (size_t i = 0; i < w->n_scales; i++)
    ASSAY_TRY(assay_map_put(&q->given, w->scales[i].name, i, NULL));
  return NULL;
}

// ---- how large activations are ------------------------------------------------------------------

static assay_status_t add_magnitudes(quantizer_t* q, const assay_node_t* n, const assay_value_t* v,
                                     assay_tensor_t* t) {
  assay_calibration_t** m = &q->sizes[v->id];
  int64_t bad = 0;
  if (!*m) ASSAY_TRY(assay_calibration_create(q->calibrator, m));
  ASSAY_TRY(assay_calibration_add(*m, t, &bad));
  if (!bad || q->e->requests->any_data) return NULL;
  q->bad = ASSAY_NODE_ERROR(
      n, ASSAY_UNSUPPORTED,
      "of its input '%s' %lld of %lld elements are NaN or infinite in sample %zu, and a range is "
      "of finite numbers: mend the inputs, or leave the node out ('assay edit quantize "
      "--not-nodes')",
      v->name, (long long)bad, (long long)t->size, q->sample);
  return ASSAY_ERROR(ASSAY_UNSUPPORTED, "calibration stops");
}

static assay_status_t inspect(void* user, const assay_node_t* n, size_t n_in, assay_tensor_t** in) {
  quantizer_t* q = user;
  for (size_t i = 0; i < n_in && i < 2; i++) {
    const assay_value_t* v = n->inputs[i];
    if (v && in[i] && q->wanted[v->id] && reads_quantized(q, n, i))
      ASSAY_TRY(add_magnitudes(q, n, v, in[i]));
  }
  return NULL;
}

static assay_status_t run_sample(quantizer_t* q, size_t k) {
  const assay_editing_t* e = q->e;
  assay_evaluator_t* evaluator = NULL;
  const assay_evaluator_config_t config = {
      .mode = ASSAY_MODE_TRUTH, .seed = e->seed, .hooks = {.before = inspect, .user = q}};
  assay_status_t st =
      assay_evaluator_create_run(e->model, &config, assay_samples_get(e->samples, k), &evaluator);
  assay_evaluator_destroy(evaluator);
  return st;
}

static assay_status_t calibrate(quantizer_t* q) {
  assay_status_t first = NULL;
  size_t ran = 0;
  for (q->sample = 0; !q->bad && q->sample < q->e->samples->n; q->sample++) {
    assay_status_t st = run_sample(q, q->sample);
    ran += !st;
    first = assay_status_join(first, st);
  }
  if (q->bad) {
    assay_status_free(first);
    first = q->bad;
    q->bad = NULL;
  } else if (ran) {
    assay_status_free(first);
    return NULL;
  }
  return assay_status_note(first, "calibrating");
}

static assay_status_t scale_of(const quantizer_t* q, const assay_value_t* v, double* out) {
  const assay_edit_scale_t* given = given_scale(q, v);
  double range = 0;
  *out = given ? (double)given->scale : 1;
  if (!q->sizes[v->id]) return NULL;  // it was not reached
  ASSAY_TRY(assay_calibration_range(q->sizes[v->id], q->quantile, &range));
  if (range > 0) *out = range / q->form->max;
  return NULL;
}

// ---- nodes --------------------------------------------------------------------------------------

// The axis of a weight's output channels; -1: it has none, or scales cannot be by axis.
static int channel_axis(const quantizer_t* q, const assay_node_t* n, size_t input) {
  const int rank = assay_rank_of(n->inputs[input]);
  if (q->e->requests->per_tensor || assay_model_opset(q->e->model, "") < 13 || rank < 2) return -1;
  if (assay_is(n, "Conv")) return 0;
  if (assay_is(n, "ConvTranspose")) return assay_attr_i64(n, "group", 1) == 1 ? 1 : -1;
  if (assay_is(n, "Gemm")) return assay_attr_i64(n, "transB", 0) ? 0 : 1;
  return input == 1 ? rank - 1 : rank - 2;
}

// The largest power of two up to `max` that divides n; all of n where that is below 16.
static int64_t block_of(int64_t n, int64_t max) {
  int64_t block = max;
  while (block > 1 && n % block) block /= 2;
  return block < 16 ? n : block;
}

// Which scales a weight has.
static void lay_out(const quantizer_t* q, const assay_node_t* n, size_t input,
                    const assay_tensor_t* weight, assay_pair_scales_t* s) {
  s->axis = q->form->block ? summed_axis(n) : channel_axis(q, n, input);
  if (q->form->block) {
    s->rank = weight->rank;
    s->block = block_of(weight->dims[s->axis], q->form->block);
    memcpy(s->dims, weight->dims, (size_t)s->rank * sizeof *s->dims);
    if (s->block) s->dims[s->axis] /= s->block;
  } else if (s->axis >= 0) {
    s->rank = 1;
    s->dims[0] = weight->dims[s->axis];
  }
}

// Which of the scales element i of a weight has.
static int64_t scale_at(const assay_pair_scales_t* s, const assay_tensor_t* weight, int64_t i) {
  if (s->axis < 0) return 0;
  const int64_t inner = assay_dims_product(weight->dims, s->axis + 1, weight->rank);
  const int64_t along = i / inner % weight->dims[s->axis];
  if (!s->block) return along;
  return (i / inner / weight->dims[s->axis] * s->dims[s->axis] + along / s->block) * inner +
         i % inner;
}

static assay_status_t quantize_weight(quantizer_t* q, assay_edit_t* x, assay_node_t* n,
                                      size_t input, assay_value_t** out) {
  assay_value_t* v = n->inputs[input];
  assay_tensor_t* wide = NULL;
  assay_pair_scales_t s = {0};
  ASSAY_TRY(assay_tensor_widen(v->constant, &wide));
  lay_out(q, n, input, wide, &s);
  const int64_t count = assay_dims_product(s.dims, 0, s.rank);
  assay_status_t st = assay_new_array((size_t)count, sizeof *s.at, &s.at);
  for (int64_t i = 0; !st && i < wide->size; i++) {
    double* scale = &s.at[scale_at(&s, wide, i)];
    *scale = fmax(*scale, fabs(assay_f64(wide)[i]) / q->form->max);
  }
  if (!st) st = assay_quantizer_pair_insert(x, n, v, q->form->type, &s, out);
  if (!st) q->n_weights++;
  assay_free(s.at);
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
    const assay_pair_scales_t one = {.at = &scale, .axis = -1};
    ASSAY_TRY(assay_quantizer_pair_insert(x, n, v, q->form->type, &one, &y));
    q->twins[v->id] = y;
    q->n_activations++;
  }
  return assay_edit_set_input(x, n, i, y);
}

// One without a given scale stays as it is where scales are given.
static assay_status_t quantize_residual(quantizer_t* q, assay_edit_t* x, assay_node_t* n) {
  const int i = residual_of(q, n);
  if (i < 0 || (q->e->requests->n_scales && !given_scale(q, n->inputs[i]))) return NULL;
  return quantize_input(q, x, n, (size_t)i);
}

static assay_status_t visit(assay_edit_t* x, assay_node_t* n) {
  quantizer_t* q = x->c->user;
  if (!can_quantize(q, n)) return quantize_residual(q, x, n);
  if (q->form->block) return quantize_input(q, x, n, 1);
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
      for (size_t j = 0; j < 2 && j < n->n_inputs; j++)
        if (reads_quantized(q, n, j) && !assay_pass_constant(n->inputs[j]))
          q->wanted[n->inputs[j]->id] = true;
    }
}

// ---- what is asked for --------------------------------------------------------------------------

static assay_status_t choose_form(quantizer_t* q) {
  const assay_edit_requests_t* w = q->e->requests;
  const int64_t opset = assay_model_opset(q->e->model, "");
  q->form = &forms[0];
  for (size_t i = 0; w->format && i <= N_FORMS; i++) {
    if (i == N_FORMS)
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                         "--format '%s': values can be quantized to int8, fp8 and int4", w->format);
    q->form = &forms[i];
    if (strcmp(w->format, forms[i].name) == 0) break;
  }
  if (w->n_scales && q->form != &forms[0])
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "--format %s: the scales of a calibration cache are those of int8",
                       q->form->name);
  if (opset >= q->form->opset) return NULL;
  return ASSAY_ERROR(
      ASSAY_UNSUPPORTED,
      "quantizers to %s need operator set %lld%s, and the model imports %lld: "
      "export it anew with that one; where none of its operators changed, 'assay edit set MODEL "
      "--opset %lld' is enough",
      q->form->name, (long long)q->form->opset,
      q->form == &forms[0] ? ", with scales for each channel 13" : "", (long long)opset,
      (long long)q->form->opset);
}

// Percentile where a percentile is given, minmax where nothing is.
static assay_status_t choose_calibrator(quantizer_t* q) {
  const assay_edit_requests_t* w = q->e->requests;
  const char* name = w->calibrator ? w->calibrator : w->percentile > 0 ? "percentile" : "minmax";
  q->calibrator = assay_calibrator_find(name);
  if (!q->calibrator)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "--calibrator '%s' is none of minmax, entropy and percentile", name);
  if (w->percentile > 0 && strcmp(name, "percentile") != 0)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "--percentile is of --calibrator percentile, not %s",
                       name);
  if (!(w->percentile >= 0 && w->percentile <= 100))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "--percentile %g: it is above 0, and 100 at most",
                       w->percentile);
  q->quantile = (w->percentile > 0 ? w->percentile : DEFAULT_PERCENTILE) / 100;
  return NULL;
}

static assay_status_t run(assay_editing_t* e) {
  quantizer_t q = {.e = e, .n_values = e->model->n_values};
  const size_t n = (size_t)q.n_values;
  ASSAY_TRY(choose_form(&q));
  ASSAY_TRY(choose_calibrator(&q));
  assay_status_t st = assay_new_array(n, sizeof *q.wanted, &q.wanted);
  if (!st) st = assay_new_array(n, sizeof *q.sizes, &q.sizes);
  if (!st) st = assay_new_array(n, sizeof *q.twins, &q.twins);
  if (!st) st = map_scales(&q);
  if (!st && !e->requests->n_scales && !q.form->block) {
    find_wanted(&q);
    st = calibrate(&q);
  }
  if (!st) st = rewrite(&q);
  assay_editing_did(e, "activations", q.n_activations);
  assay_editing_did(e, "weights", q.n_weights);
  for (size_t i = 0; q.sizes && i < n; i++) assay_calibration_destroy(q.sizes[i]);
  assay_free(q.wanted);
  assay_free(q.sizes);
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
