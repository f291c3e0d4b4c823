// A factor or a term for each channel after a convolution or a product with constant weights goes
// into the weights and the bias: Mul and Div into both, Add and Sub into the bias. After a MatMul
// the bias is an Add of its own.
//
// Computed in float64, rounded once; not where a weight would become subnormal, zero or infinite.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "passes/edit.h"

enum { X, W, BIAS };

typedef struct site {
  assay_node_t *root, *anchor;
  assay_node_t* add;              // of a MatMul's bias; NULL: none
  size_t with;                    // which of the root's inputs is the constant
  assay_value_t *weight, *bias;   // bias NULL: none
  int weight_axis, channel_axis;  // of the weights, of the output
  int64_t channels;
  bool scales, inverts;  // Mul and Div, not Add and Sub; Div and Sub
} site_t;

// ---- what holds ---------------------------------------------------------------------------------

static bool is_float_constant(const assay_value_t* v) {
  const assay_tensor_t* t = assay_pass_constant(v);
  return t && (t->type == ASSAY_TYPE_FLOAT || t->type == ASSAY_TYPE_DOUBLE);
}

// One number for each channel, or one for all, in a tensor that does not widen the output.
static bool is_by_channel(const assay_value_t* v, int rank, int axis, int64_t channels) {
  if (!is_float_constant(v)) return false;
  const assay_tensor_t* t = v->constant;
  if (t->rank > rank || (t->size != 1 && t->size != channels)) return false;
  for (int i = 0; i < t->rank; i++)
    if (t->dims[i] != 1 && i + rank - t->rank != axis) return false;
  return true;
}

static assay_node_t* only_read_by(const assay_edit_t* e, const assay_value_t* v,
                                  const assay_node_t* reader) {
  assay_node_t* n = v && !v->constant ? v->producer : NULL;
  const bool hidden = n && n->graph == reader->graph && !v->is_output &&
                      assay_uses_of(&e->uses, v) == 1 && !assay_edit_is_dead(e, n);
  return hidden ? n : NULL;
}

static bool read_anchor(site_t* s, assay_node_t* n, int rank) {
  const bool gemm = assay_is(n, "Gemm"), product = assay_is(n, "MatMul");
  const bool conv = assay_is(n, "Conv");
  const bool up = assay_is(n, "ConvTranspose") && assay_attr_i64(n, "group", 1) == 1;
  if ((!gemm && !product && !conv && !up) || n->n_inputs < 2 || !is_float_constant(n->inputs[W]))
    return false;
  if (gemm && (assay_attr_f64(n, "alpha", 1) != 1 || assay_attr_f64(n, "beta", 1) != 1 ||
               assay_attr_i64(n, "broadcast", 0)))
    return false;
  s->anchor = n;
  s->weight = n->inputs[W];
  const assay_tensor_t* t = s->weight->constant;
  s->weight_axis = conv || (gemm && assay_attr_i64(n, "transB", 0)) ? 0 : 1;
  s->channel_axis = product ? rank - 1 : 1;
  if ((product || gemm ? t->rank != 2 : t->rank < 3) || rank < 2) return false;
  s->channels = t->dims[s->weight_axis];
  if (!product && n->n_inputs > BIAS) s->bias = n->inputs[BIAS];
  return s->channels > 0 && t->size > 0;
}

// The MatMul's bias, an Add between it and the root.
static assay_node_t* through_bias(site_t* s, const assay_edit_t* e, assay_node_t* add) {
  for (size_t i = 0; assay_is(add, "Add") && add->n_inputs == 2 && i < 2; i++) {
    assay_node_t* product = only_read_by(e, add->inputs[1 - i], add);
    if (!is_float_constant(add->inputs[i]) || !product || !assay_is(product, "MatMul")) continue;
    s->add = add;
    s->bias = add->inputs[i];
    return product;
  }
  return add;
}

static bool read_site(const assay_edit_t* e, assay_node_t* root, site_t* s) {
  *s = (site_t){.root = root};
  s->scales = assay_is(root, "Mul") || assay_is(root, "Div");
  s->inverts = assay_is(root, "Div") || assay_is(root, "Sub");
  if ((!s->scales && !assay_is(root, "Add") && !assay_is(root, "Sub")) || root->n_inputs != 2 ||
      assay_attr_i64(root, "broadcast", 0))
    return false;
  s->with = is_float_constant(root->inputs[1]) || s->inverts ? 1 : 0;
  const assay_value_t *c = root->inputs[s->with], *y = root->outputs[0];
  assay_node_t* n = only_read_by(e, root->inputs[1 - s->with], root);
  const int rank = assay_rank_of(y);
  if (!n || !is_float_constant(c)) return false;
  if (s->scales) n = through_bias(s, e, n);
  if (!read_anchor(s, n, rank) || assay_elem_of(y) != s->weight->constant->type) return false;
  // A MatMul has no bias to put a term into.
  if (!s->scales && (assay_is(n, "MatMul") || (assay_is(n, "Gemm") && n->schema->since < 11)))
    return false;
  // Weights that others read would be there twice; a factor changes them.
  if (s->scales && assay_uses_of(&e->uses, s->weight) != 1) return false;
  if (s->bias && !is_by_channel(s->bias, s->add || assay_is(n, "Gemm") ? rank : 1,
                                s->add || assay_is(n, "Gemm") ? s->channel_axis : 0, s->channels))
    return false;
  return is_by_channel(c, rank, s->channel_axis, s->channels) &&
         assay_same_static_shape(root->inputs[1 - s->with], y);
}

// ---- what is computed ---------------------------------------------------------------------------

// Rounded once; false: something is lost by more than that.
static bool round_whole(assay_tensor_t* t) {
  const assay_format_info_t* f = assay_format_info(assay_type_format(t->type));
  for (int64_t i = 0; i < t->size; i++) {
    const double x = assay_f64(t)[i];
    if (!isfinite(x) || (x != 0 && fabs(x) < f->min_normal)) return false;
  }
  return assay_pass_round(t);
}

static double at(const assay_tensor_t* t, int64_t channel) {
  return assay_f64(t)[t->size == 1 ? 0 : channel];
}

static void scale_weight(const site_t* s, const assay_tensor_t* k, assay_tensor_t* w) {
  const int64_t inner = assay_dims_product(w->dims, s->weight_axis + 1, w->rank);
  for (int64_t i = 0; i < w->size; i++) {
    const double x = at(k, i / inner % s->channels);
    assay_f64(w)[i] = s->inverts ? assay_f64(w)[i] / x : assay_f64(w)[i] * x;
  }
}

static double joined(const site_t* s, double bias, double x) {
  if (s->scales) return s->inverts ? bias / x : bias * x;
  return s->inverts ? bias - x : bias + x;
}

// New weights (NULL: as they are) and bias (NULL: none); *out_fits false: they cannot be stored.
static assay_status_t compute(const site_t* s, assay_tensor_t** out_w, assay_tensor_t** out_b,
                              bool* out_fits) {
  assay_tensor_t *k = NULL, *bias = NULL, *weight = NULL;
  assay_status_t st = assay_tensor_widen(s->root->inputs[s->with]->constant, &k);
  if (!st && s->bias) st = assay_tensor_widen(s->bias->constant, &bias);
  if (!st && s->scales) st = assay_tensor_widen(s->weight->constant, &weight);
  if (!st && s->scales) st = assay_tensor_copy(weight, out_w);
  if (!st && (bias || !s->scales))
    st = assay_tensor_create(s->weight->constant->type, 1, &s->channels, out_b);
  if (!st && *out_w) scale_weight(s, k, *out_w);
  for (int64_t i = 0; !st && *out_b && i < s->channels; i++)
    assay_f64(*out_b)[i] = joined(s, bias ? at(bias, i) : 0, at(k, i));
  *out_fits = !st && (!*out_w || round_whole(*out_w)) && (!*out_b || round_whole(*out_b));
  assay_tensor_release(k);
  assay_tensor_release(bias);
  assay_tensor_release(weight);
  return st;
}

static assay_status_t put(assay_edit_t* e, assay_node_t* n, size_t i, const char* name,
                          assay_tensor_t* t) {
  assay_value_t* v = NULL;
  const char* folded = NULL;
  if (!t) return NULL;
  ASSAY_TRY(assay_arena_printf(e->c->model->arena, &folded, "%s_folded", name));
  ASSAY_TRY(assay_edit_constant(e, n->graph, folded, assay_tensor_retain(t), &v));
  return assay_edit_set_input(e, n, i, v);
}

// What a MatMul makes before its bias is another value now.
static assay_status_t renew_product(assay_edit_t* e, const site_t* s) {
  assay_value_t *old = s->anchor->outputs[0], *v = NULL;
  ASSAY_TRY(assay_pass_absorb(e->c, s->root, s->anchor));
  ASSAY_TRY(assay_graph_new_value(old->graph, old->name, &v));
  v->type = old->type;
  assay_node_set_output(s->anchor, 0, v);
  return assay_edit_set_input(e, s->add, s->add->inputs[0] == old ? 0 : 1, v);
}

// The node before the root makes the root's output.
static assay_status_t rewrite(assay_edit_t* e, const site_t* s, assay_tensor_t* w,
                              assay_tensor_t* b) {
  assay_node_t *last = s->add ? s->add : s->anchor, *root = s->root;
  const assay_node_t* nodes[] = {last, root};
  const size_t bias_at = s->add ? (size_t)(s->add->inputs[1] == s->bias) : BIAS;
  ASSAY_TRY(
      assay_pass_record(e->c, ASSAY_PASS_CHANGED, nodes, 2,
                        s->scales ? "the factor is in the weights" : "the term is in the bias"));
  if (s->add) ASSAY_TRY(renew_product(e, s));
  ASSAY_TRY(assay_pass_absorb(e->c, root, last));
  ASSAY_TRY(put(e, s->anchor, W, s->weight->name, w));
  ASSAY_TRY(put(e, last, bias_at, s->bias ? s->bias->name : s->weight->name, b));
  assay_value_t* y = root->outputs[0];
  assay_edit_kill(e, root);
  assay_node_set_output(root, 0, NULL);
  assay_node_set_output(last, 0, y);
  return NULL;
}

static assay_status_t visit(assay_edit_t* e, assay_node_t* n) {
  site_t s;
  assay_tensor_t *w = NULL, *b = NULL;
  bool fits = false;
  if (!read_site(e, n, &s)) return NULL;
  assay_status_t st = compute(&s, &w, &b, &fits);
  if (!st && fits) st = rewrite(e, &s, w, b);
  assay_tensor_release(w);
  assay_tensor_release(b);
  return st;
}

static assay_status_t run(assay_pass_context_t* c) { return assay_edit_each(c, visit); }

const assay_pass_t assay_pass_scale_into_weights = {
    .name = "scale_into_weights",
    .summary = "factors and terms by channel go into the weights before them",
    .until_fixpoint = true,
    .rounds_constants = true,
    .run = run,
};
