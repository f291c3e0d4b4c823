// Two operators of domain com.example, as a library for `assay --ops` or part of a program.
//
//   SoftClip     y = limit * tanh(x / limit): what passes the limit is pressed below it
//   WindowStats  of windows along the last dimension: their means, and where their largest
//                elements are
#include <assay/ops.h>
#include <math.h>

// ---- SoftClip -----------------------------------------------------------------------------------

static assay_status_t clip_infer(assay_op_call_t* call, const assay_ops_api_t* api, void* user) {
  (void)user;
  if (!(api->attr_float(call, "limit", 1) > 0))
    return api->error(ASSAY_INVALID_ARGUMENT, "limit is %g; it has to be above 0",
                      api->attr_float(call, "limit", 1));
  return api->set_same(call, 0, 0);
}

// Elements are float64, whatever the model's type is; Assay rounds them.
static assay_status_t clip_evaluate(assay_op_call_t* call, const assay_ops_api_t* api, void* user) {
  (void)user;
  const double limit = api->attr_float(call, "limit", 1);
  assay_op_array_t x;
  double* y;
  api->input(call, 0, &x);
  assay_status_t st = api->output(call, 0, x.type, x.rank, x.dims, &y);
  for (int64_t i = 0; !st && i < x.size; i++) y[i] = limit * tanh(x.f64[i] / limit);
  return st;
}

// The quotient, the product and tanh round once each; tanh makes no relative error larger.
static assay_status_t clip_bound(assay_op_call_t* call, const assay_ops_api_t* api, void* user) {
  (void)user;
  return api->bound_monotone(call, 2, 1);
}

static double clip_flops(assay_op_call_t* call, const assay_ops_api_t* api, void* user) {
  (void)user;
  assay_op_array_t x;
  return api->input(call, 0, &x) ? 3 * (double)x.size : 0;
}

// On the CPU, in float32.
static assay_status_t clip_kernel(assay_op_call_t* call, const assay_ops_api_t* api, void* user) {
  (void)user;
  const float limit = (float)api->attr_float(call, "limit", 1);
  assay_op_array_t x, y;
  const void* from;
  void* to;
  api->kernel_input(call, 0, &x, &from);
  api->kernel_output(call, 0, &y, &to);
  for (int64_t i = 0; i < x.size; i++)
    ((float*)to)[i] = limit * tanhf(((const float*)from)[i] / limit);
  return NULL;
}

// ---- WindowStats --------------------------------------------------------------------------------

typedef struct windows {
  int64_t size, stride;
} windows_t;

static assay_status_t read_windows(assay_op_call_t* call, const assay_ops_api_t* api,
                                   windows_t* out) {
  out->size = api->attr_int(call, "size", 1);
  out->stride = api->attr_int(call, "stride", 1);
  if (out->size >= 1 && out->stride >= 1) return NULL;
  return api->error(ASSAY_INVALID_ARGUMENT,
                    "size is %lld and stride %lld; both have to be 1 or more", (long long)out->size,
                    (long long)out->stride);
}

// A length L, which may be open, becomes (L - size) / stride + 1; dimensions before it stay.
static assay_status_t stats_infer(assay_op_call_t* call, const assay_ops_api_t* api, void* user) {
  (void)user;
  enum { MAX = 32 };
  const assay_op_size_t* dims[MAX];
  const int rank = api->input_rank(call, 0);
  windows_t w;
  int64_t length;
  assay_status_t st = read_windows(call, api, &w);
  if (st) return st;
  if (rank == 0 || rank > MAX)
    return api->error(ASSAY_INVALID_ARGUMENT, "the input is of rank %d; there have to be windows",
                      rank);
  for (int d = 0; d < rank; d++) dims[d] = api->input_dim(call, 0, d);
  if (rank > 0) {
    if (api->size_value(dims[rank - 1], &length) && length < w.size)
      return api->error(ASSAY_INVALID_ARGUMENT,
                        "the input has %lld elements in a row; a window has %lld",
                        (long long)length, (long long)w.size);
    const assay_op_size_t* n = api->subtract_sizes(call, dims[rank - 1], api->size(call, w.size));
    n = api->divide_sizes(call, n, api->size(call, w.stride));
    dims[rank - 1] = api->add_sizes(call, n, api->size(call, 1));
  }
  st = api->set_output(call, 0, ASSAY_TYPE_UNDEFINED, rank, dims);
  return st ? st : api->set_output(call, 1, ASSAY_TYPE_INT64, rank, dims);
}

static assay_status_t stats_evaluate(assay_op_call_t* call, const assay_ops_api_t* api,
                                     void* user) {
  (void)user;
  assay_op_array_t x;
  int64_t dims[32], *peak;
  double* mean;
  windows_t w;
  api->input(call, 0, &x);
  assay_status_t st = read_windows(call, api, &w);
  if (st) return st;
  const int64_t length = x.rank ? x.dims[x.rank - 1] : 0;
  if (length < w.size)
    return api->error(ASSAY_INVALID_ARGUMENT,
                      "the input has %lld elements in a row; a window has %lld", (long long)length,
                      (long long)w.size);
  for (int d = 0; d < x.rank; d++) dims[d] = x.dims[d];
  const int64_t n = (length - w.size) / w.stride + 1, rows = x.size / length;
  dims[x.rank - 1] = n;
  st = api->output(call, 0, x.type, x.rank, dims, &mean);
  if (!st) st = api->output(call, 1, ASSAY_TYPE_INT64, x.rank, dims, &peak);
  for (int64_t r = 0; !st && r < rows * n; r++) {
    const double* from = x.f64 + r / n * length + r % n * w.stride;
    double sum = 0;
    int64_t largest = 0;
    for (int64_t k = 0; k < w.size; k++) {
      sum = api->accumulate(call, sum + from[k]);  // from the first element to the last
      if (from[k] > from[largest]) largest = k;
    }
    mean[r] = sum / (double)w.size;
    peak[r] = largest;
  }
  return st;
}

// A sum of `size` terms and a quotient. What comes in by an input that differs is its mean.
static assay_status_t stats_bound(assay_op_call_t* call, const assay_ops_api_t* api, void* user) {
  (void)user;
  assay_op_array_t x, y;
  double *guaranteed, *probable, sum[2], end[2];
  const double *in_guaranteed = NULL, *in_probable = NULL;
  windows_t w;
  assay_status_t st = read_windows(call, api, &w);
  if (!st) st = api->limits(call, 0, &guaranteed, &probable);
  if (st || !guaranteed) return st;
  api->input(call, 0, &x);
  api->truth(call, 0, &y);
  api->input_limits(call, 0, &in_guaranteed, &in_probable);
  api->sum_factor(call, (double)w.size, &sum[0], &sum[1]);
  api->roundings_factor(call, 1, &end[0], &end[1]);
  const int64_t length = x.dims[x.rank - 1], n = y.dims[y.rank - 1];
  for (int64_t r = 0; r < y.size; r++) {
    const int64_t first = r / n * length + r % n * w.stride;
    double size = 0, g = 0, p = 0;
    for (int64_t k = first; k < first + w.size; k++) {
      size += fabs(x.f64[k]) + (in_guaranteed ? in_guaranteed[k] : 0);
      g += in_guaranteed ? in_guaranteed[k] : 0;
      p += in_probable ? in_probable[k] : 0;
    }
    const double tiny = api->smallest(call), m = (double)w.size;
    guaranteed[r] = (g + sum[0] * size) / m * (1 + end[0]) + end[0] * fabs(y.f64[r]) + tiny;
    probable[r] = (p + sum[1] * size) / m * (1 + end[1]) + end[1] * fabs(y.f64[r]) + tiny;
  }
  return NULL;
}

// ---- the table ----------------------------------------------------------------------------------

ASSAY_API assay_status_t assay_register_ops(const assay_ops_api_t* api, assay_ops_list_t* list) {
  assay_op_spec_t clip = ASSAY_OP_SPEC_INIT;
  clip.domain = "com.example";
  clip.name = "SoftClip";
  clip.schema = "X:T -> Y:T | limit:f=1 | T=FLOAT";
  clip.revision = "1.0";
  clip.infer = clip_infer;
  clip.evaluate = clip_evaluate;
  clip.bound = clip_bound;
  clip.flops = clip_flops;
  clip.kernel = clip_kernel;

  assay_op_spec_t stats = ASSAY_OP_SPEC_INIT;
  stats.domain = "com.example";
  stats.name = "WindowStats";
  stats.schema = "X:T -> Mean:T, Peak?:int64 | size:i!, stride:i=1 | T=FLOAT";
  stats.revision = "1.0";
  stats.discrete = 1u << 1;  // the place of the largest element is a choice
  stats.infer = stats_infer;
  stats.evaluate = stats_evaluate;
  stats.bound = stats_bound;

  assay_status_t st = api->add(list, &clip);
  return st ? st : api->add(list, &stats);
}
