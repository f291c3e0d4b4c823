// What several nodes together say: an interval forgets that both operands come from one number.
//
// Each fact holds for the values as they are stored, with every rounding on the way: u is the unit
// roundoff of the coarsest format among the nodes.
#include <string.h>

#include "formats/format.h"
#include "ranges/range.h"

typedef struct fact {
  const char* op;
  assay_status_t (*run)(assay_range_node_t* c);
} fact_t;

// ---- looking ------------------------------------------------------------------------------------

static const assay_value_t* source(const assay_value_t* v) {
  while (v && v->producer && !*v->producer->domain && !strcmp(v->producer->op_type, "Identity"))
    v = v->producer->inputs[0];
  return v;
}

static const assay_node_t* maker(const assay_value_t* v, const char* op) {
  v = source(v);
  const assay_node_t* n = v ? v->producer : NULL;
  return n && !*n->domain && (!op || !strcmp(n->op_type, op)) ? n : NULL;
}

static bool is_same(const assay_value_t* a, const assay_value_t* b) {
  return a && source(a) == source(b);
}

// The only element of an exact value; false if it is none.
static bool number_of(const assay_range_node_t* c, const assay_value_t* v, double* out) {
  v = source(v);
  if (!v) return false;
  const assay_range_t* r = assay_ranger_get(c->ranger, v);
  assay_tensor_t* t = r && assay_range_exact(r) ? r->lo : v->constant;
  if (!t && v->producer && !strcmp(v->producer->op_type, "Constant"))
    t = assay_attr_tensor(v->producer, "value");
  if (!t || t->kind != ASSAY_KIND_TENSOR || t->size != 1 || !assay_type_is_float(t->type))
    return false;
  *out = assay_tensor_element(t, 0);
  return true;
}

// The other input of a node of two, if one of them is a number.
static const assay_value_t* with_number(const assay_range_node_t* c, const assay_node_t* n,
                                        double* out) {
  for (size_t i = 0; n && n->n_inputs == 2 && i < 2; i++)
    if (number_of(c, n->inputs[i], out)) return n->inputs[1 - i];
  return NULL;
}

static bool keeps_dims(const assay_node_t* n) { return assay_attr_i64(n, "keepdims", 1) != 0; }

// u and the smallest number of the coarsest of two nodes' formats.
typedef struct grain {
  double u, tiny;
} grain_t;

static void coarsen(const assay_range_node_t* c, const assay_node_t* node, grain_t* g) {
  assay_range_node_t of = *c;
  of.node = node;
  const assay_valtype_t* t = node->outputs[0] ? node->outputs[0]->type : NULL;
  const assay_format_t f = assay_ranger_storage(&of, t && t->elem ? t->elem : ASSAY_TYPE_FLOAT);
  if (f == ASSAY_FORMAT_NONE || !assay_format_info(f)->is_float) return;
  g->u = fmax(g->u, assay_format_info(f)->unit_roundoff);
  g->tiny = fmax(g->tiny, assay_format_info(f)->min_subnormal);
}

// ---- x / sqrt(mean(x^2) + epsilon) --------------------------------------------------------------

typedef struct root {
  double epsilon;  // as stored
  double n;        // of the mean; 1 of a sum
  grain_t grain;
} root_t;

static bool is_square_of(const assay_range_node_t* c, const assay_value_t* v,
                         const assay_value_t* x, grain_t* g) {
  const assay_node_t *mul = maker(v, "Mul"), *power = maker(v, "Pow");
  double e;
  if (mul && is_same(mul->inputs[0], x) && is_same(mul->inputs[1], x))
    return coarsen(c, mul, g), true;
  if (power && is_same(power->inputs[0], x) && number_of(c, power->inputs[1], &e) && e == 2)
    return coarsen(c, power, g), true;
  return false;
}

static int64_t elements(const assay_value_t* v) {
  int64_t n = 1, d;
  if (!v || !v->type || !v->type->has_shape) return 0;
  for (int i = 0; i < v->type->rank; i++) {
    if (!assay_dim_value(v->type->dims[i], &d)) return 0;
    n *= d;
  }
  return n;
}

// v is the mean or the sum of the squares of x, along some axes.
static bool is_mean_square(const assay_range_node_t* c, const assay_value_t* v,
                           const assay_value_t* x, root_t* out) {
  const assay_node_t* n = maker(v, NULL);
  if (!n) return false;
  const bool mean = !strcmp(n->op_type, "ReduceMean"), sum = !strcmp(n->op_type, "ReduceSum");
  const bool pool = !strcmp(n->op_type, "GlobalAveragePool"),
             square = !strcmp(n->op_type, "ReduceSumSquare");
  if (!(mean || sum || pool || square) || (!pool && !keeps_dims(n))) return false;
  if (square ? !is_same(n->inputs[0], x) : !is_square_of(c, n->inputs[0], x, &out->grain))
    return false;
  const int64_t in = elements(n->inputs[0]), y = elements(n->outputs[0]);
  if (in <= 0 || y <= 0) return false;
  coarsen(c, n, &out->grain);
  out->n = mean || pool ? (double)in / (double)y : 1;
  return true;
}

// v is sqrt of that, with an epsilon.
static bool is_root(const assay_range_node_t* c, const assay_value_t* v, const assay_value_t* x,
                    double power, root_t* out) {
  const assay_node_t *root = maker(v, "Sqrt"), *raised = maker(v, "Pow");
  double e;
  if (!(power > 0 && root) && !(raised && number_of(c, raised->inputs[1], &e) && e == power))
    return false;
  if (!(power > 0 && root)) root = raised;
  coarsen(c, root, &out->grain);
  const assay_value_t* inside = root->inputs[0];
  if (is_mean_square(c, inside, x, out)) return true;
  const assay_node_t* add = maker(inside, "Add");
  const assay_value_t* rest = with_number(c, add, &out->epsilon);
  if (!rest || out->epsilon < 0 || !is_mean_square(c, rest, x, out)) return false;
  coarsen(c, add, &out->grain);
  // As it enters the addition.
  assay_range_node_t of = *c;
  of.node = add;
  const assay_format_t f = assay_ranger_storage(&of, add->outputs[0]->type->elem);
  out->epsilon = assay_format_round(f, out->epsilon, ASSAY_OVERFLOW_IEEE);
  return true;
}

// |x| / sqrt(k x^2 + e), with k and e as small as rounding may make them.
static assay_status_t limit_quotient(assay_range_node_t* c, const assay_range_t* x,
                                     const root_t* r) {
  const double u = r->grain.u + 4 * c->u, n = r->n, sum = (n + 4) * c->u;
  const double k = (1 - u) * (1 - u) * (1 - fmin(0.9, sum)) / n;
  const double e = r->epsilon * (1 - u) - r->grain.tiny * (1 + 1 / n) - (n + 1) * c->tiny;
  if (e <= 0 || !assay_range_is_float(x)) return NULL;
  if (c->has_hazard && c->hazard.kind == ASSAY_HAZARD_DIVISION) c->has_hazard = false;
  if (!assay_range_is_float(&c->out[0])) return NULL;
  ASSAY_TRY(assay_range_own(c, 0));
  assay_range_t* y = &c->out[0];
  const double slack = 1 + 8 * u;
  const bool same = x->lo->size == y->lo->size;
  const double largest = same ? 0 : assay_range_magnitude(x);
  for (int64_t i = 0; i < y->lo->size; i++) {
    const double a = same ? fmax(fabs(assay_f64(x->lo)[i]), fabs(assay_f64(x->hi)[i])) : largest;
    const double maximum = a < (double)INFINITY
                               ? slack * a / sqrt(k * a * a * (1 - u) + e * (1 - u))
                               : slack / sqrt(k);
    double *lo = &assay_f64(y->lo)[i], *hi = &assay_f64(y->hi)[i];
    const double cap = fmin(maximum, slack / sqrt(k * (1 - u)));
    *lo = fmax(*lo, same && assay_f64(x->lo)[i] >= 0 ? 0 : -cap);
    *hi = fmin(*hi, same && assay_f64(x->hi)[i] <= 0 ? 0 : cap);
    if (*lo > *hi) *lo = -cap, *hi = cap;
  }
  return NULL;
}

// ---- softmax by its parts -----------------------------------------------------------------------

// v is x - max(x).
static bool is_below_max(const assay_value_t* v) {
  const assay_node_t* sub = maker(v, "Sub");
  const assay_node_t* max = sub ? maker(sub->inputs[1], "ReduceMax") : NULL;
  return max && keeps_dims(max) && is_same(max->inputs[0], sub->inputs[0]);
}

static assay_status_t sub_fact(assay_range_node_t* c) {
  return is_below_max(c->node->outputs[0]) ? assay_range_limit(c, 0, -(double)INFINITY, 0) : NULL;
}

// One of the terms is exp(0).
static assay_status_t sum_fact(assay_range_node_t* c) {
  const assay_node_t* e = maker(c->node->inputs[0], "Exp");
  if (!e || !is_below_max(e->inputs[0])) return NULL;
  // The sum runs over the same axes as the maximum, if their results have one shape.
  const assay_node_t* max = maker(maker(e->inputs[0], "Sub")->inputs[1], "ReduceMax");
  if (!keeps_dims(c->node) || elements(max->outputs[0]) != elements(c->node->outputs[0]))
    return NULL;
  return assay_range_limit(c, 0, 1, (double)INFINITY);
}

static assay_status_t share_of_sum(assay_range_node_t* c) {
  const assay_node_t* sum = maker(c->node->inputs[1], "ReduceSum");
  const assay_range_t* x = &c->in[0];
  double lo, hi;
  if (!sum || !keeps_dims(sum) || !is_same(sum->inputs[0], c->node->inputs[0])) return NULL;
  assay_range_ends(x, &lo, &hi);
  if (lo < 0 || (c->has_hazard && c->hazard.kind == ASSAY_HAZARD_DIVISION)) return NULL;
  grain_t g = {0};
  coarsen(c, sum, &g);
  const double n = (double)elements(sum->inputs[0]);
  return assay_range_limit(c, 0, 0, 1 + 4 * g.u + (n + 8) * c->u);
}

static assay_status_t div_fact(assay_range_node_t* c) {
  root_t r = {0};
  const assay_value_t* x = c->node->inputs[0];
  if (is_root(c, c->node->inputs[1], x, 0.5, &r)) return limit_quotient(c, &c->in[0], &r);
  return share_of_sum(c);
}

// ---- products of a number with a function of itself ---------------------------------------------

// The least value of x f(x), if v is such an f(x): sigmoid, tanh(softplus), 1 + erf.
static double min_product(const assay_range_node_t* c, const assay_value_t* v,
                          const assay_value_t* x) {
  const assay_node_t *sigmoid = maker(v, "Sigmoid"), *tanh_node = maker(v, "Tanh"),
                     *add = maker(v, "Add");
  if (sigmoid && is_same(sigmoid->inputs[0], x)) return -0.27846455;
  const assay_node_t* softplus = tanh_node ? maker(tanh_node->inputs[0], "Softplus") : NULL;
  if (softplus && is_same(softplus->inputs[0], x)) return -0.30884325;
  double one, by;
  const assay_value_t* rest = with_number(c, add, &one);
  const assay_node_t* erf_node = rest && one == 1 ? maker(rest, "Erf") : NULL;
  const assay_node_t* scaled = erf_node ? maker(erf_node->inputs[0], NULL) : NULL;
  if (!scaled || (strcmp(scaled->op_type, "Div") != 0 && strcmp(scaled->op_type, "Mul") != 0))
    return 0;
  const assay_value_t* y = with_number(c, scaled, &by);
  const double slope = !strcmp(scaled->op_type, "Div") ? 1 / by : by;
  const bool divided = strcmp(scaled->op_type, "Div") != 0 || y == scaled->inputs[0];
  // x (1 + erf(x/sqrt 2)) is no less than -0.33995; f's own rounding near -1 may cancel, for which
  // see below.
  return y && divided && is_same(y, x) && fabs(slope - 0.70710678) < 0.01 ? -0.35 : 0;
}

static assay_status_t mul_fact(assay_range_node_t* c) {
  for (size_t i = 0; i < 2; i++) {
    const assay_value_t *x = c->node->inputs[i], *f = c->node->inputs[1 - i];
    double half = 1;
    const assay_node_t* scaled = maker(x, "Mul");
    const assay_value_t* inner = with_number(c, scaled, &half);
    double min = min_product(c, f, x);
    if (min == 0 && inner && half > 0) min = half * min_product(c, f, inner);
    if (min < 0) {
      grain_t g = {0};
      coarsen(c, c->node, &g);
      const assay_node_t* made = maker(f, NULL);
      if (made) coarsen(c, made, &g);
      // f is off by u relative to 1 where it is a difference from 1, and x is as large as it is.
      const double x_lo = fmin(0, -assay_range_magnitude(&c->in[i]));
      const double off = maker(f, "Add") ? 4 * g.u * -x_lo : 0;
      return assay_range_limit(c, 0, min * (1 + 16 * (g.u + c->u)) - off - 4 * g.tiny * (1 - x_lo),
                               (double)INFINITY);
    }
    root_t r = {0};
    const assay_node_t* inverse = maker(f, "Reciprocal");
    if (inverse ? is_root(c, inverse->inputs[0], x, 0.5, &r) : is_root(c, f, x, -0.5, &r))
      return limit_quotient(c, &c->in[i], &r);
  }
  if (!is_same(c->node->inputs[0], c->node->inputs[1]) || !assay_range_is_float(&c->out[0]))
    return NULL;
  // A square.
  const assay_range_t* x = &c->in[0];
  if (x->lo->size != c->out[0].lo->size) return NULL;
  ASSAY_TRY(assay_range_own(c, 0));
  for (int64_t i = 0; i < x->lo->size; i++) {
    const double lo = assay_f64(x->lo)[i], hi = assay_f64(x->hi)[i];
    const double a = lo <= 0 && hi >= 0 ? 0 : fmin(fabs(lo), fabs(hi));
    assay_f64(c->out[0].lo)[i] = assay_down(c, a * a, 2);
  }
  return NULL;
}

static const fact_t facts[] = {
    {"Div", div_fact}, {"Mul", mul_fact}, {"Sub", sub_fact}, {"ReduceSum", sum_fact}};

assay_status_t assay_range_by_facts(assay_range_node_t* c) {
  for (size_t i = 0; !*c->node->domain && i < sizeof facts / sizeof *facts; i++)
    if (!strcmp(facts[i].op, c->node->op_type) && assay_range_is_float(&c->out[0]))
      return facts[i].run(c);
  return NULL;
}
