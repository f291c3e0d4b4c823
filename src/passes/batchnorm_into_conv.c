// BatchNormalization of a convolution's output becomes part of the convolution's weights.
//
//   y = (conv(x, W) + b - mean) * k + B  with  k = scale / sqrt(var + epsilon)
//     = conv(x, W * k) + ((b - mean) * k + B),   k by output channel
//
// Source: ONNX BatchNormalization 7, 9, 14, 15, in inference form. Computed in float64, rounded
// once.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "passes/pass.h"

typedef struct site {
  assay_node_t *conv, *norm;
  bool transposed;
  int64_t channels;               // of the output
  assay_tensor_t *weight, *bias;  // canonical; bias NULL: none
  assay_tensor_t* param[4];       // scale, B, mean, var; canonical
} site_t;

static void site_deinit(site_t* s) {
  assay_tensor_release(s->weight);
  assay_tensor_release(s->bias);
  for (int i = 0; i < 4; i++) assay_tensor_release(s->param[i]);
}

static bool in_inference_form(const assay_node_t* n) {
  if (strcmp(n->op_type, "BatchNormalization") != 0 || *n->domain || !n->op || n->op->since < 7)
    return false;
  for (size_t i = 1; i < n->n_outputs; i++)
    if (n->outputs[i]) return false;
  return n->n_inputs == 5 && n->outputs[0] && assay_attr_i64(n, "spatial", 1) != 0 &&
         assay_attr_i64(n, "training_mode", 0) == 0;
}

// A convolution that only `norm` reads, in the same graph, with constant float32 or float64
// weights.
static bool is_foldable(const assay_uses_t* uses, const assay_node_t* norm) {
  const assay_value_t* y = norm->inputs[0];
  const assay_node_t* conv = y ? y->producer : NULL;
  if (!conv || conv->graph != norm->graph || *conv->domain || y->is_output ||
      uses->n_reads[y->id] != 1)
    return false;
  if (strcmp(conv->op_type, "Conv") != 0 && strcmp(conv->op_type, "ConvTranspose") != 0)
    return false;
  const assay_tensor_t* w = conv->n_inputs > 1 ? assay_pass_constant(conv->inputs[1]) : NULL;
  if (!w || w->rank < 2 || (w->type != ASSAY_TYPE_FLOAT && w->type != ASSAY_TYPE_DOUBLE))
    return false;
  if (conv->n_inputs > 2 && conv->inputs[2] && !assay_pass_constant(conv->inputs[2])) return false;
  for (size_t i = 1; i < 5; i++)
    if (!assay_pass_constant(norm->inputs[i])) return false;
  return true;
}

static assay_status_t read_site(assay_node_t* norm, site_t* s) {
  s->norm = norm;
  s->conv = norm->inputs[0]->producer;
  s->transposed = strcmp(s->conv->op_type, "ConvTranspose") == 0;
  ASSAY_TRY(assay_tensor_widen(assay_pass_constant(s->conv->inputs[1]), &s->weight));
  if (s->conv->n_inputs > 2 && s->conv->inputs[2])
    ASSAY_TRY(assay_tensor_widen(assay_pass_constant(s->conv->inputs[2]), &s->bias));
  for (size_t i = 0; i < 4; i++)
    ASSAY_TRY(assay_tensor_widen(assay_pass_constant(norm->inputs[i + 1]), &s->param[i]));
  return NULL;
}

// Whether the sizes fit: what is wrong in the model is for the operators to report.
static bool sizes_fit(site_t* s) {
  int64_t group = s->transposed ? assay_attr_i64(s->conv, "group", 1) : 1;
  if (group < 1 || !assay_mul_i64(s->weight->dims[s->transposed ? 1 : 0], group, &s->channels))
    return false;
  if (s->transposed && s->weight->dims[0] % group) return false;
  for (int i = 0; i < 4; i++)
    if (s->param[i]->size != s->channels || s->param[i]->store != ASSAY_STORE_F64) return false;
  return s->channels > 0 && (!s->bias || s->bias->size == s->channels);
}

// weight *= k by output channel: the first axis, or for ConvTranspose the second one within its
// group.
static void scale_weight(const site_t* s, const double* k, double* w) {
  const assay_tensor_t* t = s->weight;
  if (!t->size) return;
  if (!s->transposed) {
    int64_t inner = t->size / t->dims[0];
    for (int64_t m = 0; m < t->dims[0]; m++)
      for (int64_t i = 0; i < inner; i++) w[m * inner + i] *= k[m];
    return;
  }
  int64_t per_group = t->dims[1], in_group = t->dims[0] / (s->channels / per_group);
  int64_t inner = assay_dims_product(t->dims, 2, t->rank);
  for (int64_t c = 0; c < t->dims[0]; c++)
    for (int64_t j = 0; j < per_group; j++)
      for (int64_t i = 0; i < inner; i++)
        w[(c * per_group + j) * inner + i] *= k[c / in_group * per_group + j];
}

// New weights and bias; *out_fits false: they cannot be stored in their type.
static assay_status_t compute(const site_t* s, assay_tensor_t** out_w, assay_tensor_t** out_b,
                              bool* out_fits) {
  double epsilon = assay_attr_f64(s->norm, "epsilon", 1e-5);
  const double *scale = assay_f64(s->param[0]), *shift = assay_f64(s->param[1]);
  const double *mean = assay_f64(s->param[2]), *var = assay_f64(s->param[3]);
  double* k = NULL;
  ASSAY_TRY(assay_new_array((size_t)s->channels, sizeof *k, &k));
  assay_status_t st = assay_tensor_copy(s->weight, out_w);
  if (!st) st = assay_tensor_create(s->weight->type, 1, &s->channels, out_b);
  bool finite = true;
  for (int64_t m = 0; !st && m < s->channels; m++) {
    k[m] = scale[m] / sqrt(var[m] + epsilon);
    double b = s->bias ? assay_f64(s->bias)[m] : 0;
    assay_f64(*out_b)[m] = (b - mean[m]) * k[m] + shift[m];
    finite &= isfinite(k[m]) && isfinite(assay_f64(*out_b)[m]);
  }
  if (!st) scale_weight(s, k, assay_f64(*out_w));
  *out_fits = !st && finite && assay_pass_round(*out_w) && assay_pass_round(*out_b);
  assay_free(k);
  return st;
}

static assay_status_t constant_input(assay_pass_context_t* c, assay_node_t* conv, size_t i,
                                     const char* like, assay_tensor_t* take) {
  assay_value_t* v = NULL;
  const char* name = NULL;
  assay_status_t st = assay_arena_printf(c->model->arena, &name, "%s_folded", like);
  if (!st) st = assay_graph_new_value(conv->graph, name, &v);
  if (st) return assay_tensor_release(take), st;
  ASSAY_TRY(assay_pass_set_constant(c, v, take));
  conv->inputs[i] = v;
  return NULL;
}

static assay_status_t rewrite(assay_pass_context_t* c, const site_t* s, assay_tensor_t* w,
                              assay_tensor_t* b) {
  assay_node_t *conv = s->conv, *norm = s->norm;
  const assay_node_t* both[] = {conv, norm};
  const char* weight_name = conv->inputs[1]->name;
  const char* bias_name = s->bias ? conv->inputs[2]->name : NULL;
  ASSAY_TRY(assay_pass_record(c, ASSAY_PASS_CHANGED, both, 2,
                              "the normalization's scale and shift are in the weights"));
  ASSAY_TRY(assay_pass_absorb(c, norm, conv));
  if (conv->n_inputs < 3) {
    assay_value_t** inputs = NULL;
    ASSAY_TRY(assay_arena_new(c->model->arena, 3, sizeof *inputs, &inputs));
    memcpy(inputs, conv->inputs, conv->n_inputs * sizeof *inputs);
    conv->inputs = inputs;
    conv->n_inputs = 3;
  }
  if (!bias_name)
    ASSAY_TRY(assay_arena_printf(c->model->arena, &bias_name, "%s_bias", weight_name));
  ASSAY_TRY(constant_input(c, conv, 1, weight_name, assay_tensor_retain(w)));
  ASSAY_TRY(constant_input(c, conv, 2, bias_name, assay_tensor_retain(b)));
  assay_value_t* y = norm->outputs[0];
  assay_node_set_output(norm, 0, NULL);
  assay_node_set_output(conv, 0, y);
  return NULL;
}

static assay_status_t fold_node(assay_pass_context_t* c, const assay_uses_t* uses,
                                assay_node_t* norm, bool* dead) {
  site_t s = {0};
  assay_tensor_t *w = NULL, *b = NULL;
  bool fits = false;
  if (!in_inference_form(norm) || !is_foldable(uses, norm)) return NULL;
  assay_status_t st = read_site(norm, &s);
  if (!st && sizes_fit(&s)) st = compute(&s, &w, &b, &fits);
  if (!st && fits) st = rewrite(c, &s, w, b);
  if (!st) dead[norm->id] = fits;
  assay_tensor_release(w);
  assay_tensor_release(b);
  site_deinit(&s);
  return st;
}

// The convolution's own output value has no producer any more, and nobody reads it.
static assay_status_t run(assay_pass_context_t* c) {
  assay_uses_t uses = {0};
  bool* dead = NULL;
  ASSAY_TRY(assay_uses_create(c->model, &uses));
  assay_status_t st = assay_new_array((size_t)c->model->n_node_ids, sizeof *dead, &dead);
  for (size_t k = 0; !st && k < c->model->n_graphs; k++)
    for (size_t i = 0; !st && i < c->model->graphs[k]->n_nodes; i++)
      st = fold_node(c, &uses, c->model->graphs[k]->nodes[i], dead);
  assay_uses_deinit(&uses);
  if (!st) assay_pass_remove(c, dead, (size_t)c->model->n_node_ids);
  assay_free(dead);
  return st;
}

const assay_pass_t assay_pass_batchnorm_into_conv = {
    .name = "batchnorm_into_conv",
    .until_fixpoint = true,
    .summary = "BatchNormalization after a convolution goes into its weights",
    .rounds_constants = true,
    .run = run,
};
