// Gather: rows of a table by their numbers.
#include <string.h>

#include "backends/constants.h"
#include "backends/cpu/threads.h"
#include "base/alloc.h"

typedef struct gather {
  assay_kernel_t base;
  const assay_node_t* node;
  int data, indices, axis;
  assay_type_t index_type;
  int64_t outer, size, n;  // of the axis, and of the indices
  size_t slice;            // bytes
} gather_t;

static int64_t index_at(const gather_t* k, const void* indices, int64_t i) {
  const int64_t at = k->index_type == ASSAY_TYPE_INT32 ? ((const int32_t*)indices)[i]
                                                       : ((const int64_t*)indices)[i];
  return at < 0 ? at + k->size : at;
}

static void copy(const gather_t* k, const char* x, const void* indices, int64_t first, int64_t end,
                 char* y) {
  for (int64_t i = first; i < end; i++) {
    const int64_t from = i / k->n * k->size + index_at(k, indices, i % k->n);
    memcpy(y + (size_t)i * k->slice, x + (size_t)from * k->slice, k->slice);
  }
}

static assay_status_t run(assay_kernel_t* base, const void* const* in, void* const* out,
                          void* scratch) {
  const gather_t* k = (const gather_t*)base;
  const void* indices = in[k->indices];
  const int64_t rows = k->outer * k->n;
  (void)scratch;
  for (int64_t i = 0; i < k->n; i++) {
    const int64_t at = index_at(k, indices, i);
    if (at < 0 || at >= k->size)
      return ASSAY_NODE_ERROR(k->node, ASSAY_INVALID_ARGUMENT,
                              "input 'indices' has index %lld at element %lld, dim %d of the data "
                              "has size %lld; expected %lld to %lld",
                              (long long)(at < 0 ? at - k->size : at), (long long)i, k->axis,
                              (long long)k->size, (long long)-k->size, (long long)k->size - 1);
  }
  const int parts = cpu_threads(rows * (int64_t)(k->slice / 4 + 4));
#pragma omp parallel for schedule(static, 1) num_threads(parts) if (parts > 1)
  for (int i = 0; i < parts; i++)
    copy(k, in[k->data], indices, rows * i / parts, rows * (i + 1) / parts, out[0]);
  return NULL;
}

static void destroy(assay_kernel_t* k) { assay_free(k); }

static bool fits(const assay_operand_t* x, const assay_operand_t* i, const assay_operand_t* y,
                 int axis) {
  if (axis < 0 || y->rank != x->rank + i->rank - 1) return false;
  for (int d = 0; d < y->rank; d++) {
    const int64_t size = d < axis             ? x->dims[d]
                         : d < axis + i->rank ? i->dims[d - axis]
                                              : x->dims[d - i->rank + 1];
    if (size != y->dims[d]) return false;
  }
  return true;
}

// False: the layer is none.
static bool read(const assay_sized_layer_t* l, gather_t* k) {
  const assay_node_t* n = l->layer->nodes[0];
  if (l->layer->n_nodes != 1 || *n->domain || strcmp(n->op_type, "Gather") != 0 || l->n_out != 1 ||
      !l->out[0].value || n->n_inputs != 2)
    return false;
  const assay_operand_t *x = assay_sized_input(l, n->inputs[0]),
                        *i = assay_sized_input(l, n->inputs[1]), *y = &l->out[0];
  if (!x || !i || x == i || (i->type != ASSAY_TYPE_INT32 && i->type != ASSAY_TYPE_INT64) ||
      (x->type != y->type &&
       !(assay_type_is_kernel_float(x->type) && assay_type_is_kernel_float(y->type))))
    return false;
  const int bits = assay_type_bits(y->type),
            axis = assay_known_axis(assay_attr_i64(n, "axis", 0), x->rank);
  if (y->type == ASSAY_TYPE_STRING || bits % 8 || !fits(x, i, y, axis)) return false;
  k->node = n;
  k->data = (int)(x - l->in);
  k->indices = (int)(i - l->in);
  k->axis = axis;
  k->index_type = i->type;
  k->outer = assay_dims_product(x->dims, 0, axis);
  k->size = x->dims[axis];
  k->n = i->size;
  k->slice = (size_t)assay_dims_product(x->dims, axis + 1, x->rank) * (size_t)bits / 8;
  // A table in another type is rounded when it is fetched; a constant only once.
  k->base.in[k->data] = k->base.out[0] = (assay_storage_t){y->type, ASSAY_LAYOUT_PLAIN};
  k->base.in[k->indices] = (assay_storage_t){i->type, ASSAY_LAYOUT_PLAIN};
  return true;
}

static assay_status_t make(const assay_sized_layer_t* l, assay_kernel_t** out) {
  gather_t *k = NULL, made = {.base = {.in_place = -1, .run = run, .destroy = destroy}};
  if (!read(l, &made)) return NULL;
  ASSAY_TRY(ASSAY_NEW(&k));
  *k = made;
  *out = &k->base;
  return NULL;
}

static assay_status_t resize(const assay_sized_layer_t* l, assay_kernel_t* k, bool* out_ok) {
  *out_ok = read(l, (gather_t*)k);
  return NULL;
}

const assay_tactic_t cpu_tactic_gather = {
    .name = "gather",
    .source = "assay",
    .numerics = "data_movement",
    .make = make,
    .resize = resize,
    .rounding = {.compute = ASSAY_FORMAT_FP32,
                 .accumulator = ASSAY_FORMAT_FP32,
                 .function_ulps = 1},
};
