// Layers that move elements and change none: Transpose, Concat and Split.
//
// A move is a list of copies of blocks, or, for Transpose, a walk over the output with the input's
// strides; elements are bytes here, whatever their type.
#include <string.h>

#include "backends/cpu/tactic.h"
#include "base/alloc.h"

// ---- Transpose ------------------------------------------------------------------------------

typedef struct transpose {
  cpu_kernel_t base;
  int input, rank;
  int64_t dims[CPU_MAX_RANK];     // of the output
  int64_t strides[CPU_MAX_RANK];  // of the input, by dimension of the output, in elements
  int64_t rows, inner;            // the output's last dimension makes a row
  size_t elem;
} transpose_t;

#define COPY_ROW(type)                                                           \
  static void copy_##type(const type* from, int64_t step, int64_t n, type* to) { \
    for (int64_t i = 0; i < n; i++) to[i] = from[i * step];                      \
  }
COPY_ROW(uint8_t)
COPY_ROW(uint16_t)
COPY_ROW(uint32_t)
COPY_ROW(uint64_t)

static void copy_row(const char* from, int64_t step, int64_t n, size_t elem, char* to) {
  if (step == 1) {
    memcpy(to, from, (size_t)n * elem);
    return;
  }
  switch (elem) {
    case 1:
      copy_uint8_t((const void*)from, step, n, (void*)to);
      break;
    case 2:
      copy_uint16_t((const void*)from, step, n, (void*)to);
      break;
    case 4:
      copy_uint32_t((const void*)from, step, n, (void*)to);
      break;
    default:
      copy_uint64_t((const void*)from, step, n, (void*)to);
      break;
  }
}

static assay_status_t run_transpose(cpu_kernel_t* base, const void* const* in, void* const* out,
                                    void* scratch) {
  const transpose_t* k = (const transpose_t*)base;
  const char* x = in[k->input];
  char* y = out[0];
  (void)scratch;
#pragma omp parallel for schedule(static) if (k->rows * k->inner > 50000)
  for (int64_t r = 0; r < k->rows; r++) {
    int64_t at = 0, rest = r;
    for (int d = k->rank - 2; d >= 0; d--) {
      at += rest % k->dims[d] * k->strides[d];
      rest /= k->dims[d];
    }
    copy_row(x + (size_t)at * k->elem, k->strides[k->rank - 1], k->inner, k->elem,
             y + (size_t)(r * k->inner) * k->elem);
  }
  return NULL;
}

static void destroy(cpu_kernel_t* k) { assay_free(k); }

// Neighbouring dimensions that stay neighbours become one, and those of size 1 go.
static void merge_dims(transpose_t* k) {
  int n = 0;
  for (int d = 0; d < k->rank; d++) {
    if (k->dims[d] == 1) continue;
    if (n && k->strides[n - 1] == k->strides[d] * k->dims[d]) {
      k->dims[n - 1] *= k->dims[d];
      k->strides[n - 1] = k->strides[d];
    } else {
      k->dims[n] = k->dims[d];
      k->strides[n++] = k->strides[d];
    }
  }
  if (!n) {
    k->dims[0] = k->strides[0] = 1;
    n = 1;
  }
  k->rank = n;
}

static assay_status_t make_transpose(const cpu_layer_t* l, const cpu_operand_t* x,
                                     cpu_kernel_t** out) {
  const assay_attr_t* perm = assay_node_attr(l->layer->nodes[0], "perm");
  int64_t strides[CPU_MAX_RANK];
  transpose_t* k = NULL;
  if (x->size != l->out[0].size || (perm && perm->n != (size_t)x->rank)) return NULL;
  ASSAY_TRY(ASSAY_NEW(&k));
  k->base = (cpu_kernel_t){.in_place = -1, .run = run_transpose, .destroy = destroy};
  k->input = (int)(x - l->in);
  k->rank = x->rank;
  k->elem = (size_t)assay_type_bits(x->type) / 8;
  int64_t step = 1;
  for (int d = x->rank - 1; d >= 0; d--) {
    strides[d] = step;
    step *= x->dims[d];
  }
  for (int d = 0; d < x->rank; d++) {
    int64_t from = perm ? perm->u.ints[d] : x->rank - 1 - d;
    if (from < 0) from += x->rank;
    if (from < 0 || from >= x->rank) return destroy(&k->base), NULL;
    k->dims[d] = x->dims[from];
    k->strides[d] = strides[from];
  }
  merge_dims(k);
  k->inner = k->dims[k->rank - 1];
  k->rows = x->size / k->inner;
  k->base.in[k->input] = k->base.out[0] = (cpu_form_t){x->type, CPU_PLAIN};
  *out = &k->base;
  return NULL;
}

// ---- Concat and Split -----------------------------------------------------------------------

// The whole [outer, whole] is made of parts [outer, size], side by side.
typedef struct parts {
  cpu_kernel_t base;
  bool joins;  // else it splits
  int whole;   // Split: the input
  int n;
  int part[CPU_MAX_OPERANDS];                    // input or output
  int64_t size[CPU_MAX_OPERANDS], outer, total;  // bytes
} parts_t;

static assay_status_t run_parts(cpu_kernel_t* base, const void* const* in, void* const* out,
                                void* scratch) {
  const parts_t* k = (const parts_t*)base;
  (void)scratch;
#pragma omp parallel for schedule(static) if (k->outer > 1 && k->outer * k->total > 200000)
  for (int64_t o = 0; o < k->outer; o++) {
    int64_t at = o * k->total;
    for (int i = 0; i < k->n; i++) {
      const size_t bytes = (size_t)k->size[i];
      if (k->joins)
        memcpy((char*)out[0] + at, (const char*)in[k->part[i]] + o * k->size[i], bytes);
      else if (out[k->part[i]])
        memcpy((char*)out[k->part[i]] + o * k->size[i], (const char*)in[k->whole] + at, bytes);
      at += k->size[i];
    }
  }
  return NULL;
}

// Channels last where the first part lies so, if it is channels that are joined or split: then
// those are the innermost dimension.
static cpu_layout_t parts_layout(const cpu_operand_t* first, int axis) {
  return cpu_is_channels_last(first) && axis == 1 ? CPU_CHANNELS_LAST : CPU_PLAIN;
}

static void set_part(parts_t* k, const cpu_operand_t* o, int index, int axis, size_t elem) {
  const bool last = k->base.out[0].layout == CPU_CHANNELS_LAST;
  k->part[k->n] = index;
  k->size[k->n++] =
      (last ? o->dims[1] : assay_dims_product(o->dims, axis, o->rank)) * (int64_t)elem;
}

static assay_status_t make_parts(const cpu_layer_t* l, bool joins, int axis, cpu_kernel_t** out) {
  const assay_node_t* n = l->layer->nodes[0];
  const cpu_operand_t* x = cpu_input(l, n->inputs[0]);
  const cpu_operand_t* whole = joins ? &l->out[0] : x;
  const cpu_form_t form = {x->type, parts_layout(x, axis)};
  const size_t elem = (size_t)assay_type_bits(x->type) / 8;
  parts_t* k = NULL;
  if ((joins ? n->n_inputs : l->n_out) > CPU_MAX_OPERANDS) return NULL;
  ASSAY_TRY(ASSAY_NEW(&k));
  k->base = (cpu_kernel_t){.in_place = -1, .run = run_parts, .destroy = destroy};
  k->joins = joins;
  k->base.out[0] = form;
  bool ok = true;
  for (size_t i = 0; joins && ok && i < n->n_inputs; i++) {
    const cpu_operand_t* o = cpu_input(l, n->inputs[i]);
    ok = o && o->type == x->type;
    if (!ok) break;
    k->base.in[o - l->in] = form;
    set_part(k, o, (int)(o - l->in), axis, elem);
  }
  if (!joins) {
    k->whole = (int)(x - l->in);
    k->base.in[k->whole] = form;
    for (size_t i = 0; i < l->n_out; i++) {
      ok &= l->out[i].value && l->out[i].type == x->type;
      k->base.out[i] = form;
      if (ok) set_part(k, &l->out[i], (int)i, axis, elem);
    }
  }
  if (!ok) return destroy(&k->base), NULL;
  for (int i = 0; i < k->n; i++) k->total += k->size[i];
  k->outer = k->total ? whole->size * (int64_t)elem / k->total : 0;
  // Parts that do not fit together at run time are for the emulated engine, which says so.
  ok = k->outer * k->total == whole->size * (int64_t)elem;
  for (int i = 0; ok && i < k->n; i++)
    ok = (joins ? l->in : l->out)[k->part[i]].size * (int64_t)elem == k->outer * k->size[i];
  if (!ok) return destroy(&k->base), NULL;
  *out = &k->base;
  return NULL;
}

// ---- which layers ------------------------------------------------------------------------------

static assay_status_t make(const cpu_layer_t* l, cpu_kernel_t** out) {
  const assay_node_t* n = l->layer->nodes[0];
  const cpu_operand_t* x = n->n_inputs ? cpu_input(l, n->inputs[0]) : NULL;
  if (l->layer->n_nodes != 1 || *n->domain || !x || !x->rank || !x->size || l->n_out < 1 ||
      !l->out[0].value || x->type != l->out[0].type)
    return NULL;
  const int bits = assay_type_bits(x->type);
  if (x->type == ASSAY_TYPE_STRING || (bits != 8 && bits != 16 && bits != 32 && bits != 64))
    return NULL;
  if (strcmp(n->op_type, "Transpose") == 0) return make_transpose(l, x, out);
  const bool joins = strcmp(n->op_type, "Concat") == 0;
  if (!joins && strcmp(n->op_type, "Split") != 0) return NULL;
  // Concat-1 joins along axis 1 by default, later versions have no default.
  int64_t axis = assay_attr_i64(n, "axis", joins ? 1 : 0);
  if (axis < 0) axis += x->rank;
  return axis < 0 || axis >= x->rank ? NULL : make_parts(l, joins, (int)axis, out);
}

const cpu_tactic_t cpu_tactic_moves = {
    .name = "moves",
    .source = "assay",
    .make = make,
    .rounding = {.compute = ASSAY_FORMAT_FP32,
                 .accumulator = ASSAY_FORMAT_FP32,
                 .function_ulps = 1},
};
