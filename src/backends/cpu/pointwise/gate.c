// Halves of a tensor, multiplied (passes/gate.h): both are read where they lie, in either layout.
// Products are made in float32 and rounded once.
#include "passes/gate.h"

#include "backends/cpu/pointwise/convert.h"
#include "backends/cpu/pointwise/glu_halves.h"
#include "backends/cpu/tactic.h"
#include "backends/cpu/threads.h"
#include "base/alloc.h"
#include "base/target.h"

enum { TILE = 1024, PART = 16384 };

typedef struct gate {
  assay_kernel_t base;
  int input;
  assay_type_t type, made;  // of the input; of the output
  int64_t size, run;        // of the output; elements of a half that lie together
  int64_t row;              // elements of a row of the output, where it works by rows
  int first, second;
} gate_t;

ASSAY_CLONES("arch=x86-64-v4", "arch=x86-64-v3", "default")
static void multiply(const float* a, const float* b, int64_t n, float* y) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = a[i] * b[i];
}

// n elements of one run: halves lie from `a` and `b` on in the input.
static void multiply_run(const gate_t* k, const void* x, int64_t a, int64_t b, int64_t n,
                         int64_t at, void* y) {
  float left[TILE], right[TILE];
  if (k->type == ASSAY_TYPE_FLOAT && k->made == ASSAY_TYPE_FLOAT) {
    multiply((const float*)x + a, (const float*)x + b, n, (float*)y + at);
    return;
  }
  for (int64_t i = 0, some; i < n; i += some) {
    some = n - i < TILE ? n - i : TILE;
    cpu_widen(x, k->type, a + i, some, left);
    cpu_widen(x, k->type, b + i, some, right);
    multiply(left, right, some, left);
    cpu_narrow(left, some, k->made, at + i, y);
  }
}

// Elements [from, to) of the output.
static void run_part(const gate_t* k, const void* x, int64_t from, int64_t to, void* y) {
  for (int64_t at = from, n; at < to; at += n) {
    const int64_t in_run = at % k->run, before = at / k->run * 2 * k->run + in_run;
    n = to - at < k->run - in_run ? to - at : k->run - in_run;
    multiply_run(k, x, before + k->first * k->run, before + k->second * k->run, n, at, y);
  }
}

static assay_status_t run(assay_kernel_t* base, const void* const* in, void* const* out,
                          void* scratch) {
  const gate_t* k = (const gate_t*)base;
  const int64_t parts = (k->size + PART - 1) / PART;
  (void)scratch;
#pragma omp parallel for schedule(static) num_threads(cpu_threads(k->size))
  for (int64_t i = 0; i < parts; i++)
    run_part(k, in[k->input], i * PART, (i + 1) * PART < k->size ? (i + 1) * PART : k->size,
             out[0]);
  return NULL;
}

static void destroy(assay_kernel_t* k) { assay_free(k); }

// ---- by rows ------------------------------------------------------------------------------------

static void run_rows(const assay_kernel_t* base, const void* const* in, void* const* out,
                     void* scratch, int64_t sample, int64_t row, int64_t end) {
  const gate_t* k = (const gate_t*)base;
  const int64_t before = sample * base->by_rows.rows;
  (void)scratch;
  run_part(k, in[k->input], (before + row) * k->row, (before + end) * k->row, out[0]);
}

static void describe_rows(gate_t* k, const assay_operand_t* y, int axis) {
  if (k->base.out[0].layout != ASSAY_LAYOUT_CHANNELS_LAST || y->rank != 4 || axis != 1) return;
  k->row = y->dims[1] * y->dims[3];
  k->base.by_rows =
      (assay_by_rows_t){.input = k->input,
                        .samples = y->dims[0],
                        .rows = y->dims[2],
                        .in_rows = y->dims[2],
                        .row_bytes = (size_t)k->row * assay_kernel_float_bytes(k->made),
                        .in_bytes = (size_t)k->row * 2 * assay_kernel_float_bytes(k->type),
                        .work = (double)k->row,
                        .run = run_rows};
}

static assay_status_t make(const assay_sized_layer_t* l, assay_kernel_t** out) {
  assay_gate_t g;
  if (l->n_out != 1 || !l->out[0].value || !assay_gate_read(l->layer->nodes, l->layer->n_nodes, &g))
    return NULL;
  const assay_operand_t *x = assay_sized_input(l, g.x), *y = &l->out[0];
  if (!x || !x->size || x->rank != g.rank || y->rank != g.rank || x->size != 2 * y->size ||
      x->dims[g.axis] != 2 * y->dims[g.axis] || !assay_type_is_kernel_float(x->type) ||
      !assay_type_is_kernel_float(y->type))
    return NULL;
  const assay_layout_t layout =
      assay_operand_is_channels_last(x) ? ASSAY_LAYOUT_CHANNELS_LAST : ASSAY_LAYOUT_PLAIN;
  gate_t* k = NULL;
  ASSAY_TRY(ASSAY_NEW(&k));
  k->base = (assay_kernel_t){.in_place = -1, .run = run, .destroy = destroy};
  k->input = (int)(x - l->in);
  k->type = x->type;
  k->made = y->type;
  k->size = y->size;
  k->run = cpu_glu_half_run(y, g.axis, layout);
  k->first = g.first;
  k->second = g.second;
  k->base.in[k->input] = (assay_storage_t){x->type, layout};
  k->base.out[0] = (assay_storage_t){y->type, layout};
  describe_rows(k, y, g.axis);
  *out = &k->base;
  return NULL;
}

const assay_tactic_t cpu_tactic_gate = {
    .name = "gate",
    .source = "assay",
    .make = make,
    .layouts = ASSAY_LAYOUT_FOLLOWS,
    .rounding = {.compute = ASSAY_FORMAT_FP32,
                 .accumulator = ASSAY_FORMAT_FP32,
                 .fma = true,
                 .function_ulps = 1},
};
