// LSTM, GRU and RNN (kernels/recurrent/recurrent.cu): the tactics, one by the format of what is
// multiplied.
#include "backends/cuda/recurrent/recurrent.h"

#include "base/alloc.h"

enum { MAX_ROWS = 8, STEP_WARPS = 4 };  // batch elements of a warp; warps of a step's blocks

static void destroy(assay_kernel_t* base) {
  cuda_recurrent_t* k = (cuda_recurrent_t*)base;
  cuda_watch_deinit(&k->watch);
  assay_free(k);
}

// What the host says of lengths.
static assay_status_t look(const void* user, const void* lengths) {
  const cuda_recurrent_t* k = user;
  const int32_t* n = lengths;
  for (int64_t b = 0; b < k->args.batch; b++)
    if (n[b] < 0 || n[b] > k->args.length)
      return ASSAY_NODE_ERROR(k->node, ASSAY_INVALID_ARGUMENT,
                              "sequence_lens[%lld] is %d; expected one of [0, %lld]", (long long)b,
                              (int)n[b], (long long)k->args.length);
  return NULL;
}

static const char* type_of(const assay_sized_layer_t* l, int output) {
  return output < 0 ? "f32" : cuda_type_name(l->out[output].type);
}

static void put_options(const assay_sized_layer_t* l, const cuda_recurrent_t* k, assay_str_t* to) {
  static const char* const cells[] = {"RNN", "GRU", "LSTM"};
  assay_str_printf(to, "-DCELL_%s -DROWS=%d -DT=%s -DY=%s -DY_H=%s -DY_C=%s", cells[k->cell],
                   k->rows, cuda_type_name(k->type), type_of(l, k->y), type_of(l, k->y_h),
                   type_of(l, k->y_c));
  for (int i = 0; i <= (int)k->cell; i++) assay_str_printf(to, " -DF%d=%s", i, k->functions[i]);
  if (k->tf32) assay_str_printf(to, " -DTF32");
  if (k->couples) assay_str_printf(to, " -DCOUPLED");
}

static assay_status_t load(const assay_sized_layer_t* l, cuda_recurrent_t* k) {
  const struct {
    const char* name;
    cuda_kernel_t* to;
  } kernels[] = {{"recurrent_begin", &k->begin},
                 {"recurrent_end", &k->end},
                 {k->reset_first ? "recurrent_gates" : "recurrent_step", &k->step},
                 {"recurrent_states", &k->second}};
  assay_str_t options = {0};
  put_options(l, k, &options);
  assay_status_t st = assay_str_status(&options);
  for (int i = 0; !st && i < 3 + k->reset_first; i++) {
    const cuda_source_t source = {
        .file = "recurrent.cu", .kernel = kernels[i].name, .options = assay_str_get(&options)};
    st = cuda_function_get(k->own->functions, &source, kernels[i].to);
  }
  assay_str_deinit(&options);
  return st;
}

static void share_out(cuda_recurrent_t* k) {
  const recurrent_args_t* a = &k->args;
  for (k->rows = 1; k->rows < MAX_ROWS && k->rows < a->batch;) k->rows *= 2;
  const int64_t warps = a->directions * ((a->batch + k->rows - 1) / k->rows) * a->hidden;
  k->blocks = (warps + STEP_WARPS - 1) / STEP_WARPS;
}

static assay_status_t fill(const assay_sized_layer_t* l, cuda_recurrent_t* k, bool* ok) {
  const recurrent_args_t* a = &k->args;
  share_out(k);
  k->base.scratch = cuda_recurrent_scratch(k);
  ASSAY_TRY(cuda_plain_product_get(k->own, k->type, k->tf32, a->length * a->batch,
                                   a->directions * k->gates * a->hidden, k->inputs, &k->product,
                                   ok));
  return *ok ? load(l, k) : NULL;
}

static assay_status_t make(const assay_sized_layer_t* l, bool fma, assay_kernel_t** out) {
  cuda_recurrent_t* k = NULL;
  ASSAY_TRY(ASSAY_NEW(&k));
  k->base = (assay_kernel_t){.in_place = -1, .enqueue = cuda_recurrent_enqueue, .destroy = destroy};
  k->own = cuda_own_of(l);
  k->watch = (cuda_watch_t){.look = look, .user = k};
  bool ok = cuda_recurrent_read(l, k) && (k->type == ASSAY_TYPE_FLOAT && !k->tf32) == fma;
  assay_status_t st = ok ? fill(l, k, &ok) : NULL;
  if (st || !ok) return destroy(&k->base), st;
  *out = &k->base;
  return NULL;
}

static assay_status_t make_fma(const assay_sized_layer_t* l, assay_kernel_t** out) {
  return make(l, true, out);
}

static assay_status_t make_mma(const assay_sized_layer_t* l, assay_kernel_t** out) {
  return make(l, false, out);
}

const assay_tactic_t cuda_tactic_recurrent_fma = {
    .name = "recurrent_fma",
    .source = "assay",
    .make = make_fma,
    .rounding = {.compute = ASSAY_FORMAT_FP32,
                 .accumulator = ASSAY_FORMAT_FP32,
                 .fma = true,
                 .by_definition = true,
                 .function_ulps = 4},
};

// The input's product is made by tensor cores, whose sums are cut.
const assay_tactic_t cuda_tactic_recurrent_mma = {
    .name = "recurrent_mma",
    .source = "assay",
    .make = make_mma,
    .rounding = {.compute = ASSAY_FORMAT_FP32,
                 .accumulator = ASSAY_FORMAT_FP32,
                 .truncates = true,
                 .fma = true,
                 .by_definition = true,
                 .function_ulps = 4},
};
