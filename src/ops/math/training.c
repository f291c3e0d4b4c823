// Adagrad, Adam and Momentum of ai.onnx.preview.training: one step of an optimizer.
#include <math.h>
#include <string.h>

#include "base/functions.h"
#include "ops/bound_number.h"
#include "ops/families.h"

// Inputs are R, T, then all X, all gradients, and all of each state; outputs all new X, then all of
// each new state.
static size_t groups_of(size_t n_inputs, size_t n_states) {
  return n_inputs > 2 ? (n_inputs - 2) / (2 + n_states) : 0;
}

static assay_status_t check_count(const assay_node_t* node, size_t n_states) {
  const size_t n = node->n_inputs, capacity = groups_of(n, n_states) * (1 + n_states);
  if (n < 4 + n_states || (n - 2) % (2 + n_states))
    return ASSAY_NODE_ERROR(node, ASSAY_INVALID_ARGUMENT,
                            "found %zu inputs; expected R, T and %zu for each optimized tensor", n,
                            2 + n_states);
  if (node->n_outputs <= capacity) return NULL;
  return ASSAY_NODE_ERROR(node, ASSAY_INVALID_ARGUMENT,
                          "found %zu outputs; its %zu inputs make %zu", node->n_outputs, n,
                          capacity);
}

static assay_status_t infer_step(assay_infer_t* c, size_t n_states) {
  ASSAY_TRY(check_count(c->node, n_states));
  const size_t n = groups_of(c->node->n_inputs, n_states);
  for (size_t i = 0; i < n * (1 + n_states); i++) {
    const size_t from = 2 + (i < n ? i : i + n);  // the gradients have no output
    const assay_shape_t x = assay_infer_shape(c, from);
    ASSAY_TRY(assay_infer_set(c, i, assay_infer_elem(c, from), &x));
  }
  return NULL;
}

// One element: x and its states are updated in place from the gradient g.
typedef struct step {
  const assay_eval_t* c;
  double rate;  // R, adjusted to T
  double norm, norm_post, alpha, beta, epsilon;
  bool nesterov;
} step_t;

typedef void (*update_t)(const step_t* s, double g, double* x, double* state1, double* state2);

// Source: ai.onnx.preview.training Adagrad 1.
static void adagrad(const step_t* s, double g, double* x, double* h, double* unused) {
  (void)unused;
  const assay_eval_t* c = s->c;
  g = assay_acc(c, assay_acc(c, s->norm * *x) + g);
  *h = assay_acc(c, *h + assay_acc(c, g * g));
  const double adaptive = assay_acc(c, assay_acc(c, sqrt(*h)) + s->epsilon);
  *x = assay_acc(c, *x - assay_acc(c, assay_acc(c, s->rate * g) / adaptive));
}

// Source: ai.onnx.preview.training Adam 1.
static void adam(const step_t* s, double g, double* x, double* v, double* h) {
  const assay_eval_t* c = s->c;
  g = assay_acc(c, assay_acc(c, s->norm * *x) + g);
  *v = assay_acc(c, assay_acc(c, s->alpha * *v) + assay_acc(c, (1 - s->alpha) * g));
  *h = assay_acc(c, assay_acc(c, s->beta * *h) + assay_acc(c, (1 - s->beta) * assay_acc(c, g * g)));
  const double adaptive = assay_acc(c, assay_acc(c, sqrt(*h)) + s->epsilon);
  *x = assay_acc(c, *x - assay_acc(c, s->rate * assay_acc(c, *v / adaptive)));
  *x = assay_acc(c, (1 - s->norm_post) * *x);
}

// Source: ai.onnx.preview.training Momentum 1.
static void momentum(const step_t* s, double g, double* x, double* v, double* unused) {
  (void)unused;
  const assay_eval_t* c = s->c;
  g = assay_acc(c, assay_acc(c, s->norm * *x) + g);
  *v = assay_acc(c, assay_acc(c, s->alpha * *v) + assay_acc(c, s->beta * g));
  const double move = s->nesterov ? assay_acc(c, g + assay_acc(c, s->alpha * *v)) : *v;
  *x = assay_acc(c, *x - assay_acc(c, s->rate * move));
}

static assay_status_t want_like(const assay_eval_t* c, size_t input, const assay_tensor_t* x) {
  const assay_tensor_t* t = c->in[input];
  bool same = t->rank == x->rank;
  for (int i = 0; same && i < t->rank; i++) same = t->dims[i] == x->dims[i];
  if (same) return NULL;
  return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                          "input %zu has shape %s; expected that of its tensor, %s", input,
                          ASSAY_DIMS_TEXT(t), ASSAY_DIMS_TEXT(x));
}

// A copy of an input as an output; *out is the output's elements, or the copy's if it is not
// wanted.
static assay_status_t copy_to_output(assay_eval_t* c, size_t input, size_t output,
                                     assay_tensor_t** out) {
  ASSAY_TRY(assay_tensor_copy(c->in[input], out));
  if (assay_eval_wants(c, output)) assay_eval_set(c, output, *out);
  return NULL;
}

static assay_status_t eval_step(assay_eval_t* c, size_t n_states, update_t update,
                                const step_t* s) {
  const size_t n = groups_of(c->n_in, n_states);
  for (size_t i = 0; i < n; i++) {
    const assay_tensor_t* x = c->in[2 + i];
    for (size_t k = 1; k < 2 + n_states; k++) ASSAY_TRY(want_like(c, 2 + k * n + i, x));
    assay_tensor_t* made[3] = {NULL};
    assay_status_t st = copy_to_output(c, 2 + i, i, &made[0]);
    for (size_t k = 0; !st && k < n_states; k++) {
      st = copy_to_output(c, 2 + (2 + k) * n + i, (1 + k) * n + i, &made[1 + k]);
    }
    for (int64_t e = 0; !st && e < x->size; e++) {
      update(s, assay_f64(c->in[2 + n + i])[e], assay_f64(made[0]) + e, assay_f64(made[1]) + e,
             made[2] ? assay_f64(made[2]) + e : NULL);
    }
    for (int k = 0; k < 3; k++) assay_tensor_release(made[k]);
    if (st) return st;
  }
  return NULL;
}

// R and T, and the attributes that all three have.
static assay_status_t read_step(const assay_eval_t* c, size_t n_states, step_t* out,
                                int64_t* out_count) {
  ASSAY_TRY(check_count(c->node, n_states));
  for (size_t i = 0; i < 2; i++) {
    if (c->in[i]->size != 1) {
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                              "%s has shape %s; expected one number", i == 0 ? "R" : "T",
                              ASSAY_DIMS_TEXT(c->in[i]));
    }
  }
  *out = (step_t){.c = c,
                  .rate = assay_f64(c->in[0])[0],
                  .norm = assay_attr_f64(c->node, "norm_coefficient", 0),
                  .norm_post = assay_attr_f64(c->node, "norm_coefficient_post", 0),
                  .alpha = assay_attr_f64(c->node, "alpha", 0),
                  .beta = assay_attr_f64(c->node, "beta", 0),
                  .epsilon = assay_attr_f64(c->node, "epsilon", 0)};
  *out_count = assay_i64(c->in[1])[0];
  return NULL;
}

static assay_status_t adagrad_eval(assay_eval_t* c) {
  step_t s;
  int64_t t = 0;
  ASSAY_TRY(read_step(c, 1, &s, &t));
  const double decay = assay_attr_f64(c->node, "decay_factor", 0);
  s.rate = assay_acc(c, s.rate / assay_acc(c, 1 + assay_acc(c, (double)t * decay)));
  return eval_step(c, 1, adagrad, &s);
}

static assay_status_t adam_eval(assay_eval_t* c) {
  step_t s;
  int64_t t = 0;
  ASSAY_TRY(read_step(c, 2, &s, &t));
  if (t > 0) {
    const double first = 1 - assay_pow(s.alpha, (double)t),
                 second = 1 - assay_pow(s.beta, (double)t);
    s.rate = assay_acc(c, assay_acc(c, s.rate * assay_acc(c, sqrt(second))) / first);
  }
  return eval_step(c, 2, adam, &s);
}

static assay_status_t momentum_eval(assay_eval_t* c) {
  step_t s;
  int64_t t = 0;
  ASSAY_TRY(read_step(c, 1, &s, &t));
  if (t <= 0) s.beta = 1;  // at the first iteration
  const char* mode = assay_attr_str(c->node, "mode", "standard");
  s.nesterov = strcmp(mode, "nesterov") == 0;
  if (!s.nesterov && strcmp(mode, "standard") != 0) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "mode is '%s'; expected nesterov or standard", mode);
  }
  return eval_step(c, 1, momentum, &s);
}

// ---- bounds -----------------------------------------------------------------------------------
// The same formulas in numbers that know their limits, each constant made in the engine's format.

typedef assay_number_t num_t;

typedef struct step_bound {
  assay_arithmetic_t a;
  step_t s;
  num_t rate, one_minus_alpha, one_minus_beta, one_minus_post;
} step_bound_t;

typedef void (*update_bound_t)(const step_bound_t* b, num_t g, num_t* x, num_t* state1,
                               num_t* state2);

static num_t scaled(const step_bound_t* b, double factor, num_t x) {
  return assay_number_mul(&b->a, assay_number_exact(factor), x);
}

static num_t regularized(const step_bound_t* b, num_t g, num_t x) {
  return b->s.norm == 0 ? g : assay_number_add(&b->a, scaled(b, b->s.norm, x), g);
}

static num_t adaptive_root(const step_bound_t* b, num_t h) {
  return assay_number_add(&b->a, assay_number_sqrt(&b->a, h), assay_number_exact(b->s.epsilon));
}

static void adagrad_numbers(const step_bound_t* b, num_t g, num_t* x, num_t* h, num_t* unused) {
  const assay_arithmetic_t* a = &b->a;
  (void)unused;
  g = regularized(b, g, *x);
  *h = assay_number_add(a, *h, assay_number_square(a, g));
  const num_t move = assay_number_div(a, assay_number_mul(a, b->rate, g), adaptive_root(b, *h));
  *x = assay_number_sub(a, *x, move);
}

static void adam_numbers(const step_bound_t* b, num_t g, num_t* x, num_t* v, num_t* h) {
  const assay_arithmetic_t* a = &b->a;
  g = regularized(b, g, *x);
  *v = assay_number_add(a, scaled(b, b->s.alpha, *v), assay_number_mul(a, b->one_minus_alpha, g));
  const num_t square = assay_number_square(a, g);
  *h =
      assay_number_add(a, scaled(b, b->s.beta, *h), assay_number_mul(a, b->one_minus_beta, square));
  const num_t step = assay_number_div(a, *v, adaptive_root(b, *h));
  *x = assay_number_sub(a, *x, assay_number_mul(a, b->rate, step));
  *x = assay_number_mul(a, b->one_minus_post, *x);
}

static void momentum_numbers(const step_bound_t* b, num_t g, num_t* x, num_t* v, num_t* unused) {
  const assay_arithmetic_t* a = &b->a;
  (void)unused;
  g = regularized(b, g, *x);
  *v = assay_number_add(a, scaled(b, b->s.alpha, *v), scaled(b, b->s.beta, g));
  const num_t move = b->s.nesterov ? assay_number_add(a, g, scaled(b, b->s.alpha, *v)) : *v;
  *x = assay_number_sub(a, *x, assay_number_mul(a, b->rate, move));
}

static void put_limits(const assay_bound_t* c, const step_bound_t* b, size_t output, int64_t e,
                       num_t x) {
  assay_limits_t* l = &c->out_error[output];
  if (l->guaranteed)
    assay_number_limits(&b->a, x, assay_f64(l->guaranteed) + e, assay_f64(l->probable) + e);
}

static assay_status_t bound_step(assay_bound_t* c, size_t n_states, update_bound_t update,
                                 const step_bound_t* b) {
  const size_t n = groups_of(c->n_in, n_states);
  for (size_t i = 0; i < c->n_out; i++) {
    double *g, *p;
    ASSAY_TRY(assay_bound_output(c, i, &g, &p));
  }
  for (size_t i = 0; i < n; i++) {
    for (int64_t e = 0; e < c->in[2 + i]->size; e++) {
      num_t x[3] = {assay_number_input(c, 2 + i, e)};
      for (size_t k = 0; k < n_states; k++)
        x[1 + k] = assay_number_input(c, 2 + (2 + k) * n + i, e);
      update(b, assay_number_input(c, 2 + n + i, e), &x[0], &x[1], &x[2]);
      for (size_t k = 0; k <= n_states; k++)
        if (k * n + i < c->n_out) put_limits(c, b, k * n + i, e, x[k]);
    }
  }
  return NULL;
}

static assay_status_t read_step_bound(const assay_bound_t* c, size_t n_states, step_bound_t* b,
                                      int64_t* count) {
  const assay_eval_t e = assay_bound_as_eval(c);
  const num_t one = assay_number_exact(1);
  b->a = assay_arithmetic_of(c);
  ASSAY_TRY(read_step(&e, n_states, &b->s, count));
  b->s.c = NULL;
  b->rate = assay_number_input(c, 0, 0);
  b->one_minus_alpha = assay_number_sub(&b->a, one, assay_number_exact(b->s.alpha));
  b->one_minus_beta = assay_number_sub(&b->a, one, assay_number_exact(b->s.beta));
  b->one_minus_post = assay_number_sub(&b->a, one, assay_number_exact(b->s.norm_post));
  return NULL;
}

static assay_status_t adagrad_bound(assay_bound_t* c) {
  step_bound_t b;
  int64_t t = 0;
  ASSAY_TRY(read_step_bound(c, 1, &b, &t));
  const num_t decay = assay_number_exact(assay_attr_f64(c->node, "decay_factor", 0));
  const num_t slowed = assay_number_add(
      &b.a, assay_number_exact(1), assay_number_mul(&b.a, assay_number_exact((double)t), decay));
  b.rate = assay_number_div(&b.a, b.rate, slowed);
  return bound_step(c, 1, adagrad_numbers, &b);
}

// 1 - x^t, the power a library's function.
static num_t one_minus_power(const step_bound_t* b, double x, int64_t t) {
  const num_t power =
      assay_number_round(&b->a, b->a.inner.function, assay_number_exact(assay_pow(x, (double)t)));
  return assay_number_sub(&b->a, assay_number_exact(1), power);
}

static assay_status_t adam_bound(assay_bound_t* c) {
  step_bound_t b;
  int64_t t = 0;
  ASSAY_TRY(read_step_bound(c, 2, &b, &t));
  if (t > 0) {
    const num_t first = one_minus_power(&b, b.s.alpha, t);
    const num_t second = assay_number_sqrt(&b.a, one_minus_power(&b, b.s.beta, t));
    b.rate = assay_number_div(&b.a, assay_number_mul(&b.a, b.rate, second), first);
  }
  return bound_step(c, 2, adam_numbers, &b);
}

static assay_status_t momentum_bound(assay_bound_t* c) {
  step_bound_t b;
  int64_t t = 0;
  ASSAY_TRY(read_step_bound(c, 1, &b, &t));
  if (t <= 0) b.s.beta = 1;
  b.s.nesterov = assay_attr_is(c->node, "mode", "nesterov");
  return bound_step(c, 1, momentum_numbers, &b);
}

static assay_status_t infer_one(assay_infer_t* c) { return infer_step(c, 1); }
static assay_status_t infer_two(assay_infer_t* c) { return infer_step(c, 2); }

static void step_cost(const assay_eval_t* c, assay_cost_t* out) {
  for (size_t i = 2; i < c->n_in; i++) out->flops += 4.0 * (double)c->in[i]->size;
}

#define TRAINING .domain = "ai.onnx.preview.training", .since = 1

const assay_op_t assay_ops_training[] = {
    {TRAINING, .name = "Adagrad", .infer = infer_one, .eval = adagrad_eval, .bound = adagrad_bound,
     .cost = step_cost},
    {TRAINING, .name = "Adam", .infer = infer_two, .eval = adam_eval, .bound = adam_bound,
     .cost = step_cost},
    {TRAINING, .name = "Momentum", .infer = infer_one, .eval = momentum_eval,
     .bound = momentum_bound, .cost = step_cost},
    {0}};
