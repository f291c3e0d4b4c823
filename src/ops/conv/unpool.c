// MaxUnpool: puts the maxima that a MaxPool found back where they came from.
#include <string.h>

#include "ops/conv/window.h"
#include "ops/families.h"

// Strides, pads and kernel as attributes; out = (in - 1) * stride - pads + kernel.
// Source: ONNX MaxUnpool-22.
typedef struct unpool {
  int rank;  // spatial axes
  int64_t kernel[ASSAY_MAX_RANK], strides[ASSAY_MAX_RANK], pads[2 * ASSAY_MAX_RANK];
} unpool_t;

static assay_status_t unpool_read(const assay_node_t* node, int rank, unpool_t* out) {
  out->rank = rank;
  ASSAY_TRY(assay_window_list(node, "kernel_shape", rank, 1, 1, out->kernel));
  ASSAY_TRY(assay_window_list(node, "strides", rank, 1, 1, out->strides));
  return assay_window_list(node, "pads", 2 * rank, 0, 0, out->pads);
}

// What is added to in * stride.
static int64_t rest(const unpool_t* u, int i) {
  return u->kernel[i] - u->strides[i] - u->pads[i] - u->pads[u->rank + i];
}

static assay_status_t unpool_infer(assay_infer_t* c) {
  const assay_shape_t x = assay_infer_shape(c, 0), index = assay_infer_shape(c, 1);
  ASSAY_TRY(assay_infer_want_rank(c, 0, 3, ASSAY_MAX_RANK));
  if (!x.known) return assay_infer_set(c, 0, ASSAY_TYPE_UNDEFINED, NULL);
  if (index.known && index.rank != x.rank) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_CORRUPT,
                            "X has rank %d and I rank %d; expected the same", x.rank, index.rank);
  }
  unpool_t u;
  ASSAY_TRY(unpool_read(c->node, x.rank - 2, &u));
  assay_shape_t y = {.known = true, .rank = x.rank};
  if (assay_infer_has(c, 2)) {
    assay_content_t shape;
    if (assay_infer_content(c, 2, &shape)) {
      if (shape.n != x.rank) {
        return ASSAY_NODE_ERROR(c->node, ASSAY_CORRUPT,
                                "output_shape has %lld elements, expected %d", (long long)shape.n,
                                x.rank);
      }
      for (int i = 0; i < x.rank; i++) y.dims[i] = shape.elems[i];
    }
    return assay_infer_set(c, 0, ASSAY_TYPE_UNDEFINED, &y);
  }
  y.dims[0] = x.dims[0];
  y.dims[1] = x.dims[1];
  for (int i = 0; i < u.rank; i++) {
    y.dims[2 + i] = assay_dim_add_i(c->dims, assay_dim_mul_i(c->dims, x.dims[2 + i], u.strides[i]),
                                    rest(&u, i));
  }
  return assay_infer_set(c, 0, ASSAY_TYPE_UNDEFINED, &y);
}

// The shape that indices speak of: as the attributes give it, also where output_shape asks for
// more (so ONNX's own test has it; the rest stays 0).
static assay_status_t indexed_shape(const assay_eval_t* c, const unpool_t* u, int64_t* dims) {
  const assay_tensor_t* x = c->in[0];
  dims[0] = x->dims[0];
  dims[1] = x->dims[1];
  for (int i = 0; i < u->rank; i++) {
    int64_t size;
    if (!assay_mul_i64(x->dims[2 + i], u->strides[i], &size) || size > INT64_MAX / 2 ||
        size + rest(u, i) < 0) {
      return ASSAY_NODE_ERROR(c->node, ASSAY_CORRUPT,
                              "spatial axis %d of size %lld cannot be unpooled; check pads", i,
                              (long long)x->dims[2 + i]);
    }
    dims[2 + i] = size + rest(u, i);
  }
  return NULL;
}

static assay_status_t output_shape(const assay_eval_t* c, const int64_t* indexed, int64_t* dims) {
  const assay_tensor_t *x = c->in[0], *shape = c->in[2];
  if (shape->rank != 1 || shape->dims[0] != x->rank) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_CORRUPT, "output_shape has shape %s, expected [%d]",
                            ASSAY_DIMS_TEXT(shape), x->rank);
  }
  for (int i = 0; i < x->rank; i++) {
    dims[i] = assay_i64(shape)[i];
    if (dims[i] < indexed[i] || (i < 2 && dims[i] != x->dims[i])) {
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                              "output_shape[%d] is %lld, expected %s%lld", i, (long long)dims[i],
                              i < 2 ? "" : "at least ", (long long)indexed[i]);
    }
  }
  return NULL;
}

static assay_status_t unpool_eval(assay_eval_t* c) {
  const assay_tensor_t *x = c->in[0], *index = c->in[1];
  if (x->rank < 3 || index->rank != x->rank ||
      memcmp(index->dims, x->dims, (size_t)x->rank * sizeof *x->dims) != 0) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_CORRUPT,
                            "X has shape %s and I %s; expected the same, of rank 3 or more",
                            ASSAY_DIMS_TEXT(x), ASSAY_DIMS_TEXT(index));
  }
  unpool_t u;
  ASSAY_TRY(unpool_read(c->node, x->rank - 2, &u));
  int64_t indexed[ASSAY_MAX_RANK], dims[ASSAY_MAX_RANK], size;
  ASSAY_TRY(indexed_shape(c, &u, indexed));
  memcpy(dims, indexed, sizeof dims);
  if (assay_eval_has(c, 2)) ASSAY_TRY(output_shape(c, indexed, dims));
  if (!assay_dims_size(x->rank, indexed, &size)) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_CORRUPT, "the output is too large");
  }
  assay_tensor_t* y;
  ASSAY_TRY(assay_eval_output(c, 0, x->type, x->rank, dims, &y));
  memset(assay_f64(y), 0, (size_t)y->size * sizeof(double));
  for (int64_t i = 0; i < x->size; i++) {
    int64_t from = assay_i64(index)[i], to = 0, stride = 1;
    if (from < 0 || from >= size) {
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT, "I holds %lld, expected 0 to %lld",
                              (long long)from, (long long)(size - 1));
    }
    for (int d = x->rank - 1; d >= 0; d--) {
      to += from % indexed[d] * stride;
      from /= indexed[d];
      stride *= dims[d];
    }
    assay_f64(y)[to] = assay_f64(x)[i];
  }
  return NULL;
}

const assay_op_t assay_ops_unpool[] = {{.name = "MaxUnpool",
                                        .domain = "",
                                        .since = 9,
                                        .flags = ASSAY_OP_MOVES,
                                        .infer = unpool_infer,
                                        .eval = unpool_eval},
                                       {0}};
