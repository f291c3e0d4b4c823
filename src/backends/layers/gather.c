// Gather: rows of a table by their numbers.
#include "backends/layers/gather.h"

#include <string.h>

#include "backends/constants.h"

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

bool layer_gather_read(const assay_sized_layer_t* l, assay_kernel_t* kernel, layer_gather_t* k) {
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
  kernel->in[k->data] = kernel->out[0] = (assay_storage_t){y->type, ASSAY_LAYOUT_PLAIN};
  kernel->in[k->indices] = (assay_storage_t){i->type, ASSAY_LAYOUT_PLAIN};
  return true;
}

int64_t layer_gather_index(const layer_gather_t* k, const void* indices, int64_t i) {
  const int64_t at = k->index_type == ASSAY_TYPE_INT32 ? ((const int32_t*)indices)[i]
                                                       : ((const int64_t*)indices)[i];
  return at < 0 ? at + k->size : at;
}

assay_status_t layer_gather_check(const layer_gather_t* k, const void* indices) {
  for (int64_t i = 0; i < k->n; i++) {
    const int64_t at = layer_gather_index(k, indices, i);
    if (at < 0 || at >= k->size)
      return ASSAY_NODE_ERROR(k->node, ASSAY_INVALID_ARGUMENT,
                              "input 'indices' has index %lld at element %lld, dim %d of the data "
                              "has size %lld; expected %lld to %lld",
                              (long long)(at < 0 ? at - k->size : at), (long long)i, k->axis,
                              (long long)k->size, (long long)-k->size, (long long)k->size - 1);
  }
  return NULL;
}
