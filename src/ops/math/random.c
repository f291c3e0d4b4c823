// Operators that draw random numbers, and Dropout.
//
// Numbers come from a counter-based generator keyed by the run's seed (or the node's `seed`), the
// node's label, the iteration of the loops around the node and the element's index: the same in
// truth, native mode and every backend.
#include "base/random.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/functions.h"
#include "ops/bound_number.h"
#include "ops/families.h"

// Elements that are worth starting threads for.
enum { PARALLEL_ELEMS = 20000 };

// The node's stream. A seed is a float (or, of Dropout, an integer): its bits are the key.
static assay_random_t stream_of(const assay_eval_t* c) {
  const assay_attr_t* a = assay_node_attr(c->node, "seed");
  uint64_t seed = c->seed;
  if (a && a->type == ASSAY_ATTR_INT) seed = (uint64_t)a->u.i;
  if (a && a->type == ASSAY_ATTR_FLOAT) {
    double x = (double)a->u.f;
    memcpy(&seed, &x, sizeof seed);
  }
  return assay_random_make(seed, c->node->label, c->iteration);
}

// ---- RandomNormal, RandomUniform, and their Like forms -----------------------------------------

// The type of attribute dtype, which must be one of a mask's; `otherwise` if it is not set.
static assay_status_t read_dtype(const assay_node_t* n, assay_type_t otherwise, assay_type_t* out) {
  int64_t dtype = assay_attr_i64(n, "dtype", otherwise);
  const assay_param_t* p = n->schema ? assay_schema_output(n->schema, 0) : NULL;
  bool ok = dtype > ASSAY_TYPE_UNDEFINED && dtype < ASSAY_TYPE_COUNT &&
            (!p || (p->types.tensor >> dtype & 1));
  if (!ok)
    return ASSAY_NODE_ERROR(
        n, ASSAY_CORRUPT, "the output would be %s (dtype %lld); it must be one of %s",
        assay_type_name((assay_type_t)dtype), (long long)dtype,
        p ? assay_typeset_text(&p->types, (char[256]){0}, 256) : "ONNX's types");
  *out = (assay_type_t)dtype;
  return NULL;
}

static assay_status_t shape_attr(const assay_node_t* n, const int64_t** out, int* out_rank) {
  size_t rank = 0;
  const int64_t* dims = assay_attr_ints(n, "shape", &rank);
  if (rank > ASSAY_MAX_RANK)
    return ASSAY_NODE_ERROR(n, ASSAY_UNSUPPORTED,
                            "attribute 'shape' has %zu entries; %d are the most", rank,
                            ASSAY_MAX_RANK);
  for (size_t i = 0; i < rank; i++)
    if (dims[i] < 0)
      return ASSAY_NODE_ERROR(n, ASSAY_CORRUPT, "attribute 'shape' holds %lld", (long long)dims[i]);
  *out = dims;
  *out_rank = (int)rank;
  return NULL;
}

static assay_status_t random_infer(assay_infer_t* c) {
  const int64_t* dims = NULL;
  assay_shape_t shape = {.known = true};
  assay_type_t type = ASSAY_TYPE_UNDEFINED;
  ASSAY_TRY(shape_attr(c->node, &dims, &shape.rank));
  ASSAY_TRY(read_dtype(c->node, ASSAY_TYPE_FLOAT, &type));
  for (int i = 0; i < shape.rank; i++) shape.dims[i] = assay_dim_const(c->dims, dims[i]);
  return assay_infer_set(c, 0, type, &shape);
}

static assay_status_t random_like_infer(assay_infer_t* c) {
  assay_shape_t shape = assay_infer_shape(c, 0);
  assay_type_t type = assay_infer_elem(c, 0);
  if (type || assay_attr_has(c->node, "dtype")) ASSAY_TRY(read_dtype(c->node, type, &type));
  return assay_infer_set(c, 0, type, &shape);
}

// y = a * number + b, for the chosen distribution.
static void fill(const assay_random_t* r, bool normal, double a, double b, assay_tensor_t* y) {
  double* out = assay_f64(y);
#pragma omp parallel for schedule(static) if (y->size > PARALLEL_ELEMS)
  for (int64_t i = 0; i < y->size; i++)
    out[i] =
        a * (normal ? assay_random_normal(r, (uint64_t)i) : assay_random_uniform(r, (uint64_t)i)) +
        b;
}

static assay_status_t random_fill(assay_eval_t* c, bool normal, assay_type_t type, int rank,
                                  const int64_t* dims) {
  assay_tensor_t* y = NULL;
  assay_random_t r = stream_of(c);
  ASSAY_TRY(assay_eval_output(c, 0, type, rank, dims, &y));
  if (normal) {
    fill(&r, true, assay_attr_f64(c->node, "scale", 1), assay_attr_f64(c->node, "mean", 0), y);
  } else {
    double low = assay_attr_f64(c->node, "low", 0), high = assay_attr_f64(c->node, "high", 1);
    fill(&r, false, high - low, low, y);
  }
  return NULL;
}

static assay_status_t random_eval(assay_eval_t* c, bool normal) {
  const int64_t* dims = NULL;
  int rank = 0;
  assay_type_t type = ASSAY_TYPE_UNDEFINED;
  ASSAY_TRY(shape_attr(c->node, &dims, &rank));
  ASSAY_TRY(read_dtype(c->node, ASSAY_TYPE_FLOAT, &type));
  return random_fill(c, normal, type, rank, dims);
}

static assay_status_t random_like_eval(assay_eval_t* c, bool normal) {
  assay_type_t type = ASSAY_TYPE_UNDEFINED;
  ASSAY_TRY(read_dtype(c->node, c->in[0]->type, &type));
  return random_fill(c, normal, type, c->in[0]->rank, c->in[0]->dims);
}

static assay_status_t normal_eval(assay_eval_t* c) { return random_eval(c, true); }
static assay_status_t uniform_eval(assay_eval_t* c) { return random_eval(c, false); }
static assay_status_t normal_like_eval(assay_eval_t* c) { return random_like_eval(c, true); }
static assay_status_t uniform_like_eval(assay_eval_t* c) { return random_like_eval(c, false); }

// scale * number + mean of the same draws: the draw itself is off by a few ulp of a function, or
// rounded where a uniform one is made in the format (its last bit counts from 1).
static assay_status_t random_bound(assay_bound_t* c, bool normal) {
  if (!assay_bound_is_float(c, 0)) return NULL;
  const assay_inner_t inner = assay_bound_inner(c->rounding);
  const double shift = fabs(assay_attr_f64(c->node, normal ? "mean" : "low", 0));
  const double scale = normal ? fabs(assay_attr_f64(c->node, "scale", 1))
                              : fabs(assay_attr_f64(c->node, "high", 1)) + shift;
  double *g, *p;
  ASSAY_TRY(assay_bound_output(c, 0, &g, &p));
  for (int64_t i = 0; i < c->out[0]->size; i++) {
    const double y = fabs(assay_f64(c->out[0])[i]), drawn = normal ? y + shift : scale;
    g[i] = (inner.function + 2 * inner.u) * drawn + inner.u * (y + shift) + 3 * inner.tiny;
    p[i] = g[i];
  }
  return NULL;
}

static assay_status_t normal_bound(assay_bound_t* c) { return random_bound(c, true); }
static assay_status_t uniform_bound(assay_bound_t* c) { return random_bound(c, false); }

// ---- Bernoulli, Multinomial --------------------------------------------------------------------

// ai.onnx Bernoulli-15, 22: 1 with probability p.
static assay_status_t bernoulli_eval(assay_eval_t* c) {
  const double* p = assay_f64(c->in[0]);
  assay_type_t type = ASSAY_TYPE_UNDEFINED;
  assay_tensor_t* y = NULL;
  assay_random_t r = stream_of(c);
  ASSAY_TRY(read_dtype(c->node, c->in[0]->type, &type));
  ASSAY_TRY(assay_eval_output(c, 0, type, c->in[0]->rank, c->in[0]->dims, &y));
  bool real = y->store == ASSAY_STORE_F64;
#pragma omp parallel for schedule(static) if (y->size > PARALLEL_ELEMS)
  for (int64_t i = 0; i < y->size; i++) {
    bool one = assay_random_uniform(&r, (uint64_t)i) < p[i];
    if (real)
      assay_f64(y)[i] = one;
    else
      assay_i64(y)[i] = one;
  }
  return NULL;
}

static assay_status_t sample_size(const assay_node_t* n, int64_t* out) {
  *out = assay_attr_i64(n, "sample_size", 1);
  if (*out < 1)
    return ASSAY_NODE_ERROR(n, ASSAY_CORRUPT,
                            "attribute 'sample_size' is %lld; 1 or more is expected",
                            (long long)*out);
  return NULL;
}

static assay_status_t multinomial_infer(assay_infer_t* c) {
  assay_shape_t in = assay_infer_shape(c, 0), shape = {.known = true, .rank = 2};
  int64_t samples = 0;
  assay_type_t type = ASSAY_TYPE_UNDEFINED;
  ASSAY_TRY(sample_size(c->node, &samples));
  ASSAY_TRY(read_dtype(c->node, ASSAY_TYPE_INT32, &type));
  ASSAY_TRY(assay_infer_want_rank(c, 0, 2, 2));
  if (in.known) shape.dims[0] = in.dims[0];
  shape.dims[1] = assay_dim_const(c->dims, samples);
  return assay_infer_set(c, 0, type, &shape);
}

// Turns a row of log-probabilities into running sums of probabilities (not normalized); false if
// they make no distribution.
static bool cumulate(const double* x, int64_t n, double* sums) {
  double max = -INFINITY, sum = 0;
  for (int64_t i = 0; i < n; i++) {
    if (isnan(x[i])) return false;
    if (x[i] > max) max = x[i];
  }
  if (!isfinite(max)) return false;
  for (int64_t i = 0; i < n; i++) sums[i] = sum += assay_exp(x[i] - max);
  return true;
}

// The first class whose running sum is above u times the total.
static int64_t pick(const double* sums, int64_t n, double u) {
  double goal = u * sums[n - 1];
  int64_t low = 0, high = n - 1;
  while (low < high) {
    int64_t mid = low + (high - low) / 2;
    if (sums[mid] > goal)
      high = mid;
    else
      low = mid + 1;
  }
  return low;
}

// ai.onnx Multinomial-7, 22.
static assay_status_t multinomial_eval(assay_eval_t* c) {
  const assay_tensor_t* x = c->in[0];
  assay_type_t type = ASSAY_TYPE_UNDEFINED;
  assay_tensor_t* y = NULL;
  int64_t samples = 0;
  double* sums = NULL;
  assay_random_t r = stream_of(c);
  ASSAY_TRY(sample_size(c->node, &samples));
  ASSAY_TRY(read_dtype(c->node, ASSAY_TYPE_INT32, &type));
  if (x->rank != 2 || (x->dims[0] && !x->dims[1]))
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "input has shape %s; [batch, classes] is expected", ASSAY_DIMS_TEXT(x));
  int64_t n = x->dims[1];
  ASSAY_TRY(assay_eval_output(c, 0, type, 2, (int64_t[]){x->dims[0], samples}, &y));
  ASSAY_TRY(assay_new_array((size_t)n, sizeof *sums, &sums));
  assay_status_t st = NULL;
  for (int64_t b = 0; !st && b < x->dims[0]; b++) {
    if (!cumulate(assay_f64(x) + b * n, n, sums))
      st = ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "row %lld holds NaN, +infinity or only -infinity: no distribution",
                            (long long)b);
    for (int64_t s = 0; !st && s < samples; s++)
      assay_i64(y)[b * samples + s] =
          pick(sums, n, assay_random_uniform(&r, (uint64_t)(b * samples + s)));
  }
  assay_free(sums);
  return st;
}

// ---- Dropout -----------------------------------------------------------------------------------

// The mask is of the data's type before opset 10, then bool.
static assay_status_t dropout1_infer(assay_infer_t* c) { return assay_infer_same(c); }

static assay_status_t dropout10_infer(assay_infer_t* c) {
  assay_shape_t s = assay_infer_shape(c, 0);
  ASSAY_TRY(assay_infer_set(c, 0, ASSAY_TYPE_UNDEFINED, &s));
  return assay_infer_set(c, 1, ASSAY_TYPE_BOOL, &s);
}

static assay_status_t make_mask(assay_eval_t* c, assay_type_t type, assay_tensor_t** out) {
  *out = NULL;
  if (!assay_eval_wants(c, 1)) return NULL;
  return assay_eval_output(c, 1, type, c->in[0]->rank, c->in[0]->dims, out);
}

static void set_mask(assay_tensor_t* mask, int64_t i, bool kept) {
  if (!mask) return;
  if (mask->store == ASSAY_STORE_F64)
    assay_f64(mask)[i] = kept;
  else
    assay_i64(mask)[i] = kept;
}

// Inference: the input itself, and a mask that keeps everything.
static assay_status_t dropout_nothing(assay_eval_t* c, assay_type_t mask_type) {
  assay_tensor_t* mask = NULL;
  ASSAY_TRY(make_mask(c, mask_type, &mask));
  for (int64_t i = 0; mask && i < mask->size; i++) set_mask(mask, i, true);
  assay_eval_set(c, 0, c->in[0]);
  return NULL;
}

// Training: y = scale * x * mask with scale = 1 / (1 - ratio).
static assay_status_t dropout_some(assay_eval_t* c, double ratio, assay_type_t mask_type) {
  const assay_tensor_t* x = c->in[0];
  assay_tensor_t *y = NULL, *mask = NULL;
  assay_random_t r = stream_of(c);
  if (!(ratio >= 0 && ratio < 1))
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT, "ratio is %g; it must be in [0, 1)",
                            ratio);
  if (ratio == 0) return dropout_nothing(c, mask_type);
  ASSAY_TRY(assay_eval_output(c, 0, x->type, x->rank, x->dims, &y));
  ASSAY_TRY(make_mask(c, mask_type, &mask));
  double scale = assay_acc(c, 1 / assay_acc(c, 1 - ratio));
#pragma omp parallel for schedule(static) if (x->size > PARALLEL_ELEMS)
  for (int64_t i = 0; i < x->size; i++) {
    bool kept = assay_random_uniform(&r, (uint64_t)i) >= ratio;
    assay_f64(y)[i] = assay_acc(c, scale * assay_f64(x)[i]) * kept;
    set_mask(mask, i, kept);
  }
  return NULL;
}

// ai.onnx Dropout-1, 6.
static assay_status_t dropout1_eval(assay_eval_t* c) {
  if (assay_attr_i64(c->node, "is_test", 0)) return dropout_nothing(c, c->in[0]->type);
  return dropout_some(c, assay_attr_f64(c->node, "ratio", 0.5), c->in[0]->type);
}

// ai.onnx Dropout-7: inference only; `ratio` says what training did.
static assay_status_t dropout7_eval(assay_eval_t* c) { return dropout_nothing(c, c->in[0]->type); }

static assay_status_t dropout10_eval(assay_eval_t* c) {
  return dropout_nothing(c, ASSAY_TYPE_BOOL);
}

// ai.onnx Dropout-12, 13, 22: training if the third input says so.
static assay_status_t dropout12_eval(assay_eval_t* c) {
  double ratio = 0.5;
  bool training = false;
  for (size_t i = 1; i < 3; i++)
    if (assay_eval_has(c, i) && c->in[i]->size != 1)
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                              "input %zu has shape %s; a scalar is expected", i,
                              ASSAY_DIMS_TEXT(c->in[i]));
  if (assay_eval_has(c, 1)) ratio = assay_f64(c->in[1])[0];
  if (assay_eval_has(c, 2)) training = assay_i64(c->in[2])[0] != 0;
  return training ? dropout_some(c, ratio, ASSAY_TYPE_BOOL) : dropout_nothing(c, ASSAY_TYPE_BOOL);
}

// 1 - ratio, its reciprocal, the product.
static assay_status_t dropout_bound(assay_bound_t* c) {
  ASSAY_TRY(assay_bound_want_exact(c, 0));
  return assay_bound_roundings(c, 3);
}

// ---- com.microsoft BitmaskDropout --------------------------------------------------------------

// The mask as a row of uint32 words, element i in bit i % 32 of word i / 32.
static assay_status_t bitmask_infer(assay_infer_t* c) {
  assay_shape_t s = assay_infer_shape(c, 0), words = {.known = true, .rank = 1};
  ASSAY_TRY(assay_infer_set(c, 0, ASSAY_TYPE_UNDEFINED, &s));
  if (s.known)
    words.dims[0] = assay_dim_ceildiv(c->dims, assay_shape_size(c->dims, &s, 0, s.rank),
                                      assay_dim_const(c->dims, 32));
  return assay_infer_set(c, 1, ASSAY_TYPE_UINT32, &words);
}

// Dropout-12 with its mask packed; where nothing is dropped all bits are set, unused ones too.
static assay_status_t bitmask_eval(assay_eval_t* c) {
  bool training = assay_eval_has(c, 2) && c->in[2]->size == 1 && assay_i64(c->in[2])[0];
  ASSAY_TRY(dropout12_eval(c));
  if (!assay_eval_wants(c, 1)) return NULL;
  assay_tensor_t *bits = assay_tensor_retain(c->out[1]), *words = NULL;
  int64_t n = bits->size / 32 + (bits->size % 32 != 0);
  assay_status_t st = assay_eval_output(c, 1, ASSAY_TYPE_UINT32, 1, &n, &words);
  for (int64_t w = 0; !st && w < n; w++) {
    uint32_t word = training ? 0 : UINT32_MAX;
    for (int64_t b = 0; b < 32 && 32 * w + b < bits->size; b++)
      word |= (uint32_t)assay_i64(bits)[32 * w + b] << b;
    assay_i64(words)[w] = (int64_t)word;
  }
  assay_tensor_release(bits);
  return st;
}

// Drawing a number costs about 40 integer operations; a normal one some 30 of floats more.
static void random_cost(const assay_eval_t* c, assay_cost_t* out) {
  out->flops = c->out[0] ? 2.0 * (double)c->out[0]->size : 0;
}

const assay_op_t assay_ops_random[] = {
    {.domain = "",
     .name = "RandomNormal",
     .since = 1,
     .flags = ASSAY_OP_RANDOM,
     .infer = random_infer,
     .eval = normal_eval,
     .bound = normal_bound,
     .cost = random_cost},
    {.domain = "",
     .name = "RandomUniform",
     .since = 1,
     .flags = ASSAY_OP_RANDOM,
     .infer = random_infer,
     .eval = uniform_eval,
     .bound = uniform_bound,
     .cost = random_cost},
    {.domain = "",
     .name = "RandomNormalLike",
     .since = 1,
     .flags = ASSAY_OP_RANDOM,
     .infer = random_like_infer,
     .eval = normal_like_eval,
     .bound = normal_bound,
     .cost = random_cost},
    {.domain = "",
     .name = "RandomUniformLike",
     .since = 1,
     .flags = ASSAY_OP_RANDOM,
     .infer = random_like_infer,
     .eval = uniform_like_eval,
     .bound = uniform_bound,
     .cost = random_cost},
    {.domain = "",
     .name = "Bernoulli",
     .since = 15,
     .flags = ASSAY_OP_RANDOM,
     .discrete = 1,
     .infer = random_like_infer,
     .eval = bernoulli_eval,
     .cost = random_cost},
    {.domain = "",
     .name = "Multinomial",
     .since = 7,
     .flags = ASSAY_OP_RANDOM,
     .discrete = 1,
     .infer = multinomial_infer,
     .eval = multinomial_eval},
    {.domain = "",
     .name = "Dropout",
     .since = 1,
     .flags = ASSAY_OP_RANDOM | ASSAY_OP_POINTWISE,
     .infer = dropout1_infer,
     .eval = dropout1_eval,
     .bound = dropout_bound},
    {.domain = "",
     .name = "Dropout",
     .since = 7,
     .flags = ASSAY_OP_MOVES | ASSAY_OP_POINTWISE,
     .infer = dropout1_infer,
     .eval = dropout7_eval},
    {.domain = "",
     .name = "Dropout",
     .since = 10,
     .flags = ASSAY_OP_MOVES | ASSAY_OP_POINTWISE,
     .infer = dropout10_infer,
     .eval = dropout10_eval},
    {.domain = "",
     .name = "Dropout",
     .since = 12,
     .flags = ASSAY_OP_RANDOM | ASSAY_OP_POINTWISE,
     .infer = dropout10_infer,
     .eval = dropout12_eval,
     .bound = dropout_bound},
    {.domain = "com.microsoft",
     .name = "BitmaskDropout",
     .since = 1,
     .flags = ASSAY_OP_RANDOM,
     .schema =
         "data:T, ratio?:T1, training_mode?:T2 -> output:T, mask?:T3 | seed:i | T=FLOAT; T1=FLOAT; "
         "T2=bool; T3=uint32",
     .infer = bitmask_infer,
     .eval = bitmask_eval,
     .bound = dropout_bound},
    {0}};
