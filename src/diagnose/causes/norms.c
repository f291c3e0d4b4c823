// Normalizations that are written out: over another axis, with or without their mean, with epsilon
// in another place; sums that are to be divided by, and are not.
//
// They are found by structure: x / sqrt(mean(x x) + e), where x may be centred.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/causes/surroundings.h"
#include "diagnose/proposals.h"

static bool is_float(const assay_tensor_t* t) {
  return t && t->kind == ASSAY_KIND_TENSOR && t->store == ASSAY_STORE_F64 && t->size > 0;
}

static bool is_op(const assay_node_t* n, const char* op) {
  return n && !*n->domain && strcmp(n->op_type, op) == 0;
}

// The node that makes a value, if it is of an operator.
static const assay_node_t* made_by(const assay_value_t* v, const char* op) {
  return v && is_op(v->producer, op) ? v->producer : NULL;
}

// A constant of one number: of two inputs, which is one. 2: neither.
static size_t number_at(const assay_suspect_t* s, const assay_node_t* n) {
  for (size_t i = 0; n && n->n_inputs == 2 && i < 2; i++) {
    const assay_tensor_t* x = n->inputs[i] ? assay_around_tensor(s->around, n->inputs[i]) : NULL;
    if (x && assay_around_is_constant(n->inputs[i]) && x->size == 1 && assay_type_is_float(x->type))
      return i;
  }
  return 2;
}

// What a formula is made of; `c` and `d` are released after it.
typedef struct rewrite {
  const assay_suspect_t* s;
  const char* cause;
  const assay_trial_t* t;
  bool* stop;
  const assay_node_t* beside[ASSAY_REPAIR_BESIDE];
} rewrite_t;

static assay_status_t offer(const rewrite_t* w, size_t output, const assay_formula_terms_t* terms,
                            const char* text) {
  assay_repair_t r = assay_repair_of(w->s, w->cause, ASSAY_EDIT_AFTER);
  r.edits[0].input = output;
  for (size_t i = 0; i < ASSAY_REPAIR_BESIDE; i++)
    if (w->beside[i]) r.beside[r.n_beside++] = w->beside[i];
  snprintf(r.text, sizeof r.text, "%s", text);
  ASSAY_TRY(assay_formula_create(terms, &r.edits[0].formula));
  return assay_offer(w->t, &r, w->stop);
}

// ---- where epsilon stands ----------------------------------------------------------------------

// Forms of a root that is kept from 0, of v and e.
static const struct {
  const char *program, *text;
} roots[] = {
    {"x c + Sqrt", "sqrt(v + e)"},       {"x Sqrt c +", "sqrt(v) + e"},
    {"x Sqrt c max", "max(sqrt(v), e)"}, {"x c max Sqrt", "sqrt(max(v, e))"},
    {"x d + Sqrt", "sqrt(v + e^2)"},     {"x Sqrt d +", "sqrt(v) + sqrt(e)"},
};

static assay_status_t offer_roots(const rewrite_t* w, const assay_value_t* v,
                                  const assay_value_t* epsilon) {
  assay_tensor_t *wide = NULL, *square = NULL;
  assay_formula_terms_t terms = {.source = v};
  ASSAY_TRY(assay_tensor_widen(assay_around_tensor(w->s->around, epsilon), &wide));
  const double e = assay_f64(wide)[0];
  assay_status_t st = NULL;
  for (size_t i = 0; i < sizeof roots / sizeof *roots && !st && !*w->stop; i++) {
    char text[120];
    assay_tensor_release(square);
    square = NULL;
    st = assay_tensor_scalar_f64(wide->type, strstr(roots[i].text, "e^2") ? e * e : sqrt(fabs(e)),
                                 &square);
    if (st) break;
    terms.program = roots[i].program;
    terms.c = wide;
    terms.d = square;
    snprintf(text, sizeof text, "%s in place of it, with e = %.7g", roots[i].text, e);
    st = offer(w, 0, &terms, text);
  }
  assay_tensor_release(wide);
  assay_tensor_release(square);
  return st;
}

// sqrt(v + e), sqrt(v) + e, the larger of the two. Source: PyTorch's Adam and normalize, Keras'
// epsilon of a norm (their documentation).
assay_status_t assay_propose_epsilon_place(const assay_suspect_t* s, const char* cause,
                                           const assay_trial_t* t, bool* stop) {
  static const char* const inner[] = {"Add", "Max", "Clip"};
  rewrite_t w = {.s = s, .cause = cause, .t = t, .stop = stop};
  if (!s->around || *s->node->domain || !s->n_out || !is_float(s->out[0])) return NULL;
  for (size_t i = 0; i < sizeof inner / sizeof *inner; i++) {
    // Inside the root, or outside.
    const bool inside = is_op(s->node, "Sqrt");
    const assay_node_t* sum = inside                     ? made_by(s->node->inputs[0], inner[i])
                              : is_op(s->node, inner[i]) ? s->node
                                                         : NULL;
    if (!sum || sum->n_inputs < 2) continue;
    const size_t at = sum->n_inputs == 2 ? number_at(s, sum) : 1;
    if (at > 1 || !assay_around_is_constant(sum->inputs[at])) continue;
    const assay_value_t* v = sum->inputs[1 - at];
    const assay_node_t* root = inside ? NULL : made_by(v, "Sqrt");
    if (!inside && !root) continue;
    w.beside[0] = inside ? sum : root;
    ASSAY_TRY(offer_roots(&w, inside ? v : root->inputs[0], sum->inputs[at]));
  }
  return NULL;
}

// ---- the whole of it ---------------------------------------------------------------------------

typedef struct norm {
  const assay_value_t* x;
  bool above, below;  // centred where it is divided, and where it is squared
  const assay_node_t *mean, *variance, *sub;
  assay_tensor_t* epsilon;  // retained; NULL: none
  int64_t axes[ASSAY_MAX_RANK];
  int n_axes, rank;
} norm_t;

// The value that one is centred from; NULL: it is not.
static const assay_value_t* centred_from(const assay_value_t* v, norm_t* out) {
  const assay_node_t* sub = made_by(v, "Sub");
  const assay_node_t* mean = sub ? made_by(sub->inputs[1], "ReduceMean") : NULL;
  if (!mean || mean->inputs[0] != sub->inputs[0]) return NULL;
  out->mean = mean;
  out->sub = sub;
  return sub->inputs[0];
}

// The axes of a reduction, from its attribute or its input; *out_n 0: they are not known.
static assay_status_t read_axes(const assay_suspect_t* s, const assay_node_t* n, int64_t* axes,
                                int* out_n) {
  const assay_tensor_t* x = assay_around_tensor(s->around, n->inputs[0]);
  const assay_value_t* v = n->n_inputs > 1 ? n->inputs[1] : NULL;
  assay_tensor_t *t = v ? assay_around_tensor(s->around, v) : NULL, *wide = NULL;
  size_t count = 0;
  const int64_t* from = assay_attr_ints(n, "axes", &count);
  *out_n = 0;
  if (!from && t) {
    ASSAY_TRY(assay_tensor_widen(t, &wide));
    if (wide->store == ASSAY_STORE_I64) from = assay_i64(wide), count = (size_t)wide->size;
  }
  if (from && x && count <= ASSAY_MAX_RANK) {
    *out_n = (int)count;
    for (size_t i = 0; i < count; i++) axes[i] = from[i] < 0 ? from[i] + x->rank : from[i];
  }
  assay_tensor_release(wide);
  return NULL;
}

// What is rooted: a mean of squares, with or without epsilon.
static assay_status_t read_root(const assay_suspect_t* s, const assay_value_t* v, norm_t* out,
                                bool* out_fits) {
  const assay_node_t* add = made_by(v, "Add");
  const size_t at = number_at(s, add);
  *out_fits = false;
  if (add && at < 2) {
    ASSAY_TRY(assay_tensor_widen(assay_around_tensor(s->around, add->inputs[at]), &out->epsilon));
    v = add->inputs[1 - at];
  }
  out->variance = made_by(v, "ReduceMean");
  const assay_value_t* square = out->variance ? out->variance->inputs[0] : NULL;
  const assay_node_t* product = made_by(square, "Mul");
  const assay_node_t* power = made_by(square, "Pow");
  if (product && product->inputs[0] != product->inputs[1]) product = NULL;
  if (!product && !power) return NULL;
  const assay_value_t* below = (product ? product : power)->inputs[0];
  const assay_value_t* x = centred_from(below, out);
  out->below = x != NULL;
  out->x = x ? x : below;
  const assay_tensor_t* data = assay_around_tensor(s->around, below);
  out->rank = data ? data->rank : 0;
  ASSAY_TRY(read_axes(s, out->variance, out->axes, &out->n_axes));
  *out_fits = out->n_axes > 0 && assay_attr_i64(out->variance, "keepdims", 1) != 0;
  return NULL;
}

// The pattern that ends in the suspect: a / sqrt(..), or a times its reciprocal.
static assay_status_t read_norm(const assay_suspect_t* s, norm_t* out, bool* out_fits) {
  const assay_node_t* n = s->node;
  *out_fits = false;
  if (n->n_inputs != 2) return NULL;
  const bool divides = is_op(n, "Div"), multiplies = is_op(n, "Mul");
  for (size_t i = 0; i < 2 && (divides || multiplies) && !*out_fits; i++) {
    const assay_value_t* v = n->inputs[divides ? 1 : i];
    if (multiplies) {
      const assay_node_t* r = made_by(v, "Reciprocal");
      const assay_node_t* d = r ? NULL : made_by(v, "Div");
      v = r ? r->inputs[0] : d && assay_around_is_constant(d->inputs[0]) ? d->inputs[1] : NULL;
    }
    const assay_node_t* root = made_by(v, "Sqrt");
    if (!root) {
      if (divides) break;
      continue;
    }
    ASSAY_TRY(read_root(s, root->inputs[0], out, out_fits));
    if (!*out_fits) break;
    const assay_value_t* a = n->inputs[divides ? 0 : 1 - i];
    const assay_value_t* x = centred_from(a, out);
    out->above = x != NULL;
    *out_fits = x ? x == out->x : a == out->x;
    if (divides) break;
  }
  return NULL;
}

static bool same_axes(const norm_t* m, const int64_t* axes, int n) {
  return n == m->n_axes && !memcmp(axes, m->axes, (size_t)n * sizeof *axes);
}

static assay_status_t offer_form(const rewrite_t* w, const norm_t* m, bool above, bool below,
                                 const int64_t* axes, int n) {
  char program[160], text[160];
  assay_formula_terms_t terms = {.program = program, .source = m->x, .c = m->epsilon, .n_axes = n};
  if (above == m->above && below == m->below && same_axes(m, axes, n)) return NULL;
  memcpy(terms.axes, axes, (size_t)n * sizeof *axes);
  snprintf(program, sizeof program, "%s %s dup * mean %sSqrt /", above ? "x x mean -" : "x",
           below ? "x x mean -" : "x", m->epsilon ? "c + " : "");
  snprintf(text, sizeof text, "%s over axis %lld%s, divided by the root of %s",
           above ? "less its mean" : "not less its mean", (long long)axes[0],
           n > 1 ? " and on" : "", below ? "its variance" : "the mean of its squares");
  return offer(w, 0, &terms, text);
}

static assay_status_t offer_forms(const rewrite_t* w, const norm_t* m) {
  for (int form = 0; form < 4 && !*w->stop; form++)
    ASSAY_TRY(offer_form(w, m, form & 1, form & 2, m->axes, m->n_axes));
  for (int64_t axis = 1; axis < m->rank && !*w->stop; axis++)
    ASSAY_TRY(offer_form(w, m, m->above, m->below, &axis, 1));
  for (int first = 1; first + 1 < m->rank && !*w->stop; first++) {
    int64_t axes[ASSAY_MAX_RANK];
    for (int i = first; i < m->rank; i++) axes[i - first] = i;
    ASSAY_TRY(offer_form(w, m, m->above, m->below, axes, m->rank - first));
  }
  return NULL;
}

// A LayerNormalization that is to be one by the root of the mean of squares.
static assay_status_t offer_layer(const rewrite_t* w) {
  const assay_suspect_t* s = w->s;
  const assay_tensor_t* x = s->in[0];
  assay_tensor_t* epsilon = NULL;
  const double e = assay_attr_f64(s->node, "epsilon", 1e-5);
  const int64_t axis = assay_attr_i64(s->node, "axis", -1);
  const int first = (int)(axis < 0 ? axis + x->rank : axis);
  const bool has_bias = s->n_in > 2 && s->node->inputs[2];
  ASSAY_TRY(assay_tensor_scalar_f64(x->type, e, &epsilon));
  assay_formula_terms_t terms = {
      .program = has_bias ? "x x dup * mean c + Sqrt / v * u +" : "x x dup * mean c + Sqrt / v *",
      .source = s->node->inputs[0],
      .value = s->node->inputs[1],
      .value2 = has_bias ? s->node->inputs[2] : NULL,
      .c = epsilon};
  for (int i = first; i >= 0 && i < x->rank; i++) terms.axes[terms.n_axes++] = i;
  assay_status_t st = terms.n_axes
                          ? offer(w, 0, &terms,
                                  "not less its mean, divided by the root of the mean of its "
                                  "squares")
                          : NULL;
  assay_tensor_release(epsilon);
  return st;
}

// Sources: J. L. Ba et al., 2016; B. Zhang and R. Sennrich, 2019: without the mean.
assay_status_t assay_propose_normalization(const assay_suspect_t* s, const char* cause,
                                           const assay_trial_t* t, bool* stop) {
  rewrite_t w = {.s = s, .cause = cause, .t = t, .stop = stop};
  norm_t m = {0};
  bool fits = false;
  if (!s->around || *s->node->domain || !s->n_out || !is_float(s->out[0])) return NULL;
  if (is_op(s->node, "LayerNormalization") && s->n_in > 1 && is_float(s->in[0]))
    return offer_layer(&w);
  assay_status_t st = read_norm(s, &m, &fits);
  w.beside[0] = m.variance;
  w.beside[1] = m.mean;
  w.beside[2] = m.sub;
  if (!st && fits) st = offer_forms(&w, &m);
  assay_tensor_release(m.epsilon);
  return st;
}

// ---- sums that are divided by ------------------------------------------------------------------

static const struct {
  const char *program, *text;
} shares[] = {
    {"x x sum /", "divided by its sum"},
    {"x softmax", "a Softmax after it"},
    {"x x x * sum Sqrt /", "divided by its norm"},
    {"x x mean -", "less its mean"},
};

// Shares that do not add up to 1 any more once some are left out; vectors of length 1. Source:
// N. Shazeer et al., 2017 (the chosen experts' gates); cosine similarities.
assay_status_t assay_propose_share(const assay_suspect_t* s, const char* cause,
                                   const assay_trial_t* t, bool* stop) {
  static const char* const ops[] = {"TopK",   "Softmax", "Mul",     "Exp",     "Sigmoid",
                                    "MatMul", "Gemm",    "Add",     "Reshape", "ReduceMean",
                                    "Gather", "Where",   "Squeeze", "Flatten", "ScatterElements"};
  const rewrite_t w = {.s = s, .cause = cause, .t = t, .stop = stop};
  const assay_tensor_t* y = s->n_out ? s->out[0] : NULL;
  bool is_one = false;
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) is_one |= is_op(s->node, ops[i]);
  if (!is_one || !is_float(y) || y->rank < 2 || y->dims[y->rank - 1] < 2) return NULL;
  assay_formula_terms_t terms = {.axes = {y->rank - 1}, .n_axes = 1};
  for (size_t i = 0; i < sizeof shares / sizeof *shares && !*stop; i++) {
    terms.program = shares[i].program;
    ASSAY_TRY(offer(&w, 0, &terms, shares[i].text));
  }
  return NULL;
}

// ---- means of what a mask lets through ---------------------------------------------------------

// A sum of products with a mask that is divided by a constant, or a mean: to be divided by how many
// the mask lets through. Source: mean pooling, N. Reimers and I. Gurevych, 2019.
assay_status_t assay_propose_masked_mean(const assay_suspect_t* s, const char* cause,
                                         const assay_trial_t* t, bool* stop) {
  const rewrite_t w = {.s = s, .cause = cause, .t = t, .stop = stop};
  if (!s->around || *s->node->domain || !s->n_out || !is_float(s->out[0])) return NULL;
  const assay_node_t* sum = is_op(s->node, "Div") ? made_by(s->node->inputs[0], "ReduceSum")
                            : is_op(s->node, "ReduceMean") || is_op(s->node, "ReduceSum") ? s->node
                                                                                          : NULL;
  const assay_node_t* product = sum ? made_by(sum->inputs[0], "Mul") : NULL;
  if (!product || product->n_inputs != 2) return NULL;
  const bool keeps = assay_attr_i64(sum, "keepdims", 1) != 0;
  const assay_tensor_t* x = assay_around_tensor(s->around, product->outputs[0]);
  assay_formula_terms_t terms = {
      .program = keeps ? "x sum v sum 1e-9 max /" : "x sum. v sum. 1e-9 max /",
      .source = product->outputs[0]};
  ASSAY_TRY(read_axes(s, sum, terms.axes, &terms.n_axes));
  if (!x || !terms.n_axes) return NULL;
  for (size_t i = 0; i < 2 && !*stop; i++) {
    const assay_value_t* v = product->inputs[i];
    const assay_tensor_t* mask = v ? assay_around_tensor(s->around, v) : NULL;
    if (!mask || mask->rank != x->rank || assay_around_is_constant(v)) continue;
    char text[160];
    snprintf(text, sizeof text, "divided by the sum of '%.100s'", v->name);
    terms.value = v;
    ASSAY_TRY(offer(&w, 0, &terms, text));
  }
  return NULL;
}
