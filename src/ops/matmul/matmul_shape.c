// Shapes of products of stacks of matrices: batches, rows, columns and strides of their operands.
#include <string.h>

#include "base/alloc.h"
#include "ops/matmul/matmul.h"

// ---- operands as stacks of matrices -----------------------------------------------------------

typedef struct operand {
  int n_batch;
  int64_t batch[ASSAY_MAX_RANK], strides[ASSAY_MAX_RANK];
  int64_t rows, cols, row_stride, col_stride;
} operand_t;

// Where the dims of an operand of rank 2 or more stand.
typedef struct places {
  int rows, cols, batch;  // batch: the first of rank - 2
} places_t;

static places_t find_places(int rank, assay_matmul_form_t form) {
  places_t p = {.rows = rank - 2, .cols = rank - 1, .batch = 0};
  if (form.rows_first) p = (places_t){.rows = 0, .cols = rank - 1, .batch = 1};
  if (form.swap) {
    const int rows = p.rows;
    p.rows = p.cols;
    p.cols = rows;
  }
  return p;
}

static operand_t read_operand(const assay_tensor_t* t, assay_matmul_form_t form, bool is_left) {
  operand_t o = {0};
  if (t->rank == 1) {
    o.rows = is_left ? 1 : t->dims[0];
    o.cols = is_left ? t->dims[0] : 1;
    o.row_stride = is_left ? t->dims[0] : 1;
    o.col_stride = 1;
    return o;
  }
  int64_t strides[ASSAY_MAX_RANK];
  int64_t step = 1;
  for (int i = t->rank - 1; i >= 0; i--) {
    strides[i] = step;
    step *= t->dims[i];
  }
  const places_t p = find_places(t->rank, form);
  o.rows = t->dims[p.rows], o.row_stride = strides[p.rows];
  o.cols = t->dims[p.cols], o.col_stride = strides[p.cols];
  o.n_batch = t->rank - 2;
  for (int i = 0; i < o.n_batch; i++) {
    o.batch[i] = t->dims[p.batch + i];
    o.strides[i] = strides[p.batch + i];
  }
  return o;
}

// The batch dims of the output into p->dims[0..n); strides of each operand, 0 where it repeats.
static bool broadcast_batch(operand_t* a, operand_t* b, assay_matmul_t* p, int64_t* a_strides,
                            int64_t* b_strides) {
  const int n = a->n_batch > b->n_batch ? a->n_batch : b->n_batch;
  for (int i = 0; i < n; i++) {
    const int ia = i - (n - a->n_batch), ib = i - (n - b->n_batch);
    const int64_t da = ia < 0 ? 1 : a->batch[ia], db = ib < 0 ? 1 : b->batch[ib];
    if (da != db && da != 1 && db != 1) return false;
    p->dims[i] = da == 1 ? db : da;
    a_strides[i] = da == 1 ? 0 : a->strides[ia];
    b_strides[i] = db == 1 ? 0 : b->strides[ib];
  }
  p->rank = n;
  return true;
}

// Offsets of each batch element, in row-major order.
static assay_status_t list_offsets(assay_matmul_t* p, int n, const int64_t* a_strides,
                                   const int64_t* b_strides) {
  ASSAY_TRY(assay_new_array((size_t)p->batch, sizeof(int64_t), &p->a_offsets));
  ASSAY_TRY(assay_new_array((size_t)p->batch, sizeof(int64_t), &p->b_offsets));
  int64_t index[ASSAY_MAX_RANK] = {0};
  int64_t a = 0, b = 0;
  for (int64_t t = 0; t < p->batch; t++) {
    p->a_offsets[t] = a;
    p->b_offsets[t] = b;
    for (int i = n - 1; i >= 0; i--) {
      a += a_strides[i];
      b += b_strides[i];
      if (++index[i] < p->dims[i]) break;
      a -= a_strides[i] * index[i];
      b -= b_strides[i] * index[i];
      index[i] = 0;
    }
  }
  return NULL;
}

assay_status_t assay_matmul_init(const assay_eval_t* c, const assay_tensor_t* a,
                                 assay_matmul_form_t a_form, const assay_tensor_t* b,
                                 assay_matmul_form_t b_form, assay_matmul_t* out) {
  if (a->rank < 1 || b->rank < 1) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "inputs have shapes %s and %s; expected at least one dimension each",
                            ASSAY_DIMS_TEXT(a), ASSAY_DIMS_TEXT(b));
  }
  operand_t x = read_operand(a, a_form, true), y = read_operand(b, b_form, false);
  assay_matmul_t p = {.m = x.rows, .k = x.cols, .n = y.cols};
  int64_t a_strides[ASSAY_MAX_RANK] = {0}, b_strides[ASSAY_MAX_RANK] = {0};
  if (x.cols != y.rows) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "first input %s has rows of %lld, second input %s has columns of %lld; "
                            "expected the same",
                            ASSAY_DIMS_TEXT(a), (long long)x.cols, ASSAY_DIMS_TEXT(b),
                            (long long)y.rows);
  }
  if (!broadcast_batch(&x, &y, &p, a_strides, b_strides)) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "leading dimensions of %s and %s do not broadcast", ASSAY_DIMS_TEXT(a),
                            ASSAY_DIMS_TEXT(b));
  }
  const int n_batch = p.rank;
  if (a->rank > 1) p.dims[p.rank++] = p.m;
  if (b->rank > 1) p.dims[p.rank++] = p.n;
  int64_t size = 0;
  if (!assay_dims_size(p.rank, p.dims, &size)) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "the product of %s and %s is too large", ASSAY_DIMS_TEXT(a),
                            ASSAY_DIMS_TEXT(b));
  }
  p.a = (assay_matrix_t){a->data, a->store, a->type, 0, x.row_stride, x.col_stride};
  p.b = (assay_matrix_t){b->data, b->store, b->type, 0, y.row_stride, y.col_stride};
  if (size > 0) {
    p.batch = assay_dims_product(p.dims, 0, n_batch);
    assay_status_t st = list_offsets(&p, n_batch, a_strides, b_strides);
    if (st) return assay_matmul_deinit(&p), st;
  }
  *out = p;
  return NULL;
}

void assay_matmul_deinit(assay_matmul_t* p) {
  assay_free(p->a_offsets);
  assay_free(p->b_offsets);
  p->a_offsets = p->b_offsets = NULL;
}

// ---- products ---------------------------------------------------------------------------------

// Whether the batch of a lies as one tall matrix that meets the same b throughout: weights.
static bool is_tall(const assay_matmul_t* p) {
  for (int64_t t = 0; t < p->batch; t++) {
    if (p->b_offsets[t] != 0 || p->a_offsets[t] != t * p->m * p->a.row_stride) return false;
  }
  return true;
}

assay_status_t assay_matmul_f64(const assay_eval_t* c, const assay_matmul_t* p, double* out) {
  if (p->batch == 0) return NULL;
  if (is_tall(p)) {
    return assay_gemm(c, p->batch * p->m, p->n, p->k, &p->a, &p->b, out, p->n, false);
  }
  const assay_gemm_batch_t batch = {p->batch, p->a_offsets, p->b_offsets};
  return assay_gemm_batched(c, p->m, p->n, p->k, &p->a, &p->b, &batch, out);
}

// Rows are independent; modulo 2^64 the order of a sum does not matter.
void assay_matmul_i64(const assay_matmul_t* p, int64_t* out) {
  const double work = (double)p->batch * (double)p->m * (double)p->n * (double)p->k;
  const int64_t rows = p->batch * p->m;
#pragma omp parallel for schedule(static) if (work > 1e5)
  for (int64_t r = 0; r < rows; r++) {
    const int64_t t = r / p->m, i = r % p->m;
    const int64_t* a = (const int64_t*)p->a.data + p->a_offsets[t] + i * p->a.row_stride;
    const int64_t* b = (const int64_t*)p->b.data + p->b_offsets[t];
    int64_t* y = out + r * p->n;
    memset(y, 0, (size_t)p->n * sizeof *y);
    for (int64_t l = 0; l < p->k; l++) {
      const uint64_t x = (uint64_t)a[l * p->a.col_stride];
      const int64_t* row = b + l * p->b.row_stride;
      if (x == 0) continue;
      for (int64_t j = 0; j < p->n; j++) {
        y[j] = (int64_t)((uint64_t)y[j] + x * (uint64_t)row[j * p->b.col_stride]);
      }
    }
  }
}

// ---- inference --------------------------------------------------------------------------------

assay_status_t assay_matmul_shape(const assay_infer_t* c, size_t ia, assay_matmul_form_t a_form,
                                  size_t ib, assay_matmul_form_t b_form, assay_shape_t* out) {
  ASSAY_TRY(assay_infer_want_rank(c, ia, 1, ASSAY_MAX_RANK));
  ASSAY_TRY(assay_infer_want_rank(c, ib, 1, ASSAY_MAX_RANK));
  const assay_shape_t a = assay_infer_shape(c, ia), b = assay_infer_shape(c, ib);
  assay_shape_t y = {0};
  if (!a.known || !b.known) {
    *out = y;
    return NULL;
  }
  const places_t pa = find_places(a.rank, a_form), pb = find_places(b.rank, b_form);
  const assay_dim_t* ka = a.dims[a.rank == 1 ? 0 : pa.cols];
  const assay_dim_t* kb = b.dims[b.rank == 1 ? 0 : pb.rows];
  if (assay_dim_differ(ka, kb)) {
    char ta[128], tb[128];
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "first input has rows of %s, second input has columns of %s; expected "
                            "the same",
                            assay_dim_text(ka, ta, sizeof ta), assay_dim_text(kb, tb, sizeof tb));
  }
  assay_shape_t batch_a = {.known = true, .rank = a.rank > 2 ? a.rank - 2 : 0};
  assay_shape_t batch_b = {.known = true, .rank = b.rank > 2 ? b.rank - 2 : 0};
  for (int i = 0; i < batch_a.rank; i++) batch_a.dims[i] = a.dims[pa.batch + i];
  for (int i = 0; i < batch_b.rank; i++) batch_b.dims[i] = b.dims[pb.batch + i];
  ASSAY_TRY(assay_infer_broadcast(c, &batch_a, &batch_b, &y));
  if (a.rank > 1) y.dims[y.rank++] = a.dims[pa.rows];
  if (b.rank > 1) y.dims[y.rank++] = b.dims[pb.cols];
  *out = y;
  return NULL;
}

void assay_matmul_cost(const assay_eval_t* c, size_t ia, assay_matmul_form_t a_form, size_t ib,
                       assay_matmul_form_t b_form, assay_cost_t* out) {
  if (!assay_eval_has(c, ia) || !assay_eval_has(c, ib) || c->in[ia]->rank < 1 ||
      c->in[ib]->rank < 1) {
    return;
  }
  operand_t a = read_operand(c->in[ia], a_form, true), b = read_operand(c->in[ib], b_form, false);
  assay_matmul_t p = {0};
  int64_t sa[ASSAY_MAX_RANK], sb[ASSAY_MAX_RANK];
  if (!broadcast_batch(&a, &b, &p, sa, sb)) return;
  double batch = 1;
  for (int i = 0; i < p.rank; i++) batch *= (double)p.dims[i];
  out->flops += 2 * batch * (double)a.rows * (double)a.cols * (double)b.cols;
}
