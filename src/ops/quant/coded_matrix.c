// Constant matrices of weights that a model stores as integer codes of 4 or 8 bits with scales:
// what MatMulNBits multiplies by, and DequantizeLinear of a constant in front of MatMul or Gemm.
#include "ops/quant/coded_matrix.h"

#include <string.h>

enum { NB_A, NB_B, NB_SCALES, NB_ZEROS, NB_GROUPS, NB_BIAS };

static const assay_value_t* input(const assay_node_t* n, size_t i) {
  return i < n->n_inputs ? n->inputs[i] : NULL;
}

static const assay_tensor_t* constant(const assay_value_t* v) {
  return v && v->constant && !v->is_input && v->constant->kind == ASSAY_KIND_TENSOR ? v->constant
                                                                                    : NULL;
}

static bool is_real(assay_type_t t) {
  return t == ASSAY_TYPE_FLOAT || t == ASSAY_TYPE_FLOAT16 || t == ASSAY_TYPE_BFLOAT16;
}

static bool is_microsoft(const assay_node_t* n) { return strcmp(n->domain, "com.microsoft") == 0; }

// Whether a value is a float tensor of at least so many dimensions.
static bool has_rank(const assay_value_t* v, int min) {
  const assay_valtype_t* t = v ? v->type : NULL;
  return t && t->kind == ASSAY_KIND_TENSOR && is_real(t->elem) && t->has_shape && t->rank >= min;
}

// A row that is the same for all rows of the product, or none.
static bool read_bias(const assay_value_t* v, assay_coded_matrix_t* m) {
  const assay_tensor_t* t = constant(v);
  m->bias = v;
  return !v ||
         (t && is_real(t->type) && t->size == m->n && t->rank >= 1 && t->dims[t->rank - 1] == m->n);
}

// ---- MatMulNBits ------------------------------------------------------------------------------

static bool read_nbits_sizes(const assay_node_t* n, assay_coded_matrix_t* m) {
  const int64_t bits = assay_attr_i64(n, "bits", 4), limit = INT64_C(1) << 31;
  m->bits = (int)bits;
  m->n = assay_attr_i64(n, "N", 0);
  m->k = assay_attr_i64(n, "K", 0);
  m->block = assay_attr_i64(n, "block_size", 0);
  if ((bits != 4 && bits != 8) || assay_attr_i64(n, "weight_prepacked", 0) || m->n < 1 ||
      m->n >= limit || m->k < 1 || m->k >= limit || m->block < ASSAY_CODED_MIN_BLOCK ||
      m->block >= limit || m->block & (m->block - 1))
    return false;
  m->blocks = (m->k + m->block - 1) / m->block;
  return true;
}

// Zero points are packed as the codes are, each row filled up to whole bytes, or are numbers.
static bool read_nbits_zeros(const assay_value_t* v, assay_coded_matrix_t* m) {
  const assay_tensor_t* t = constant(v);
  const int64_t row_bytes = (m->blocks * m->bits + 7) / 8;
  m->zeros = v;
  m->no_zero = 1 << (m->bits - 1);
  if (!v) return true;
  m->zero_block_step = 1;
  m->packed_zeros = t && t->type == ASSAY_TYPE_UINT8;
  m->zero_n_step = m->packed_zeros ? row_bytes * 8 / m->bits : m->blocks;
  if (m->packed_zeros) return t->size == m->n * row_bytes;
  return t && is_real(t->type) && t->size == m->n * m->blocks;
}

bool assay_coded_is_nbits(const assay_node_t* n, assay_coded_matrix_t* out) {
  assay_coded_matrix_t m = {.x = input(n, NB_A),
                            .codes = input(n, NB_B),
                            .scales = input(n, NB_SCALES),
                            .k_step = 1,
                            .scale_block_step = 1};
  if (!is_microsoft(n) || strcmp(n->op_type, "MatMulNBits") != 0 || !read_nbits_sizes(n, &m) ||
      input(n, NB_GROUPS) || !has_rank(m.x, 1))
    return false;
  const assay_tensor_t *codes = constant(m.codes), *scales = constant(m.scales);
  m.n_step = m.blocks * m.block;
  m.scale_n_step = m.blocks;
  if (!codes || codes->type != ASSAY_TYPE_UINT8 || codes->size != m.n * (m.n_step * m.bits / 8) ||
      !scales || !is_real(scales->type) || scales->size != m.n * m.blocks ||
      !read_nbits_zeros(input(n, NB_ZEROS), &m) || !read_bias(input(n, NB_BIAS), &m))
    return false;
  *out = m;
  return true;
}

// ---- DequantizeLinear -------------------------------------------------------------------------

static bool read_code_type(assay_type_t t, assay_coded_matrix_t* m) {
  m->bits = t == ASSAY_TYPE_INT4 || t == ASSAY_TYPE_UINT4 ? 4 : 8;
  m->is_signed = t == ASSAY_TYPE_INT4 || t == ASSAY_TYPE_INT8;
  return m->is_signed || t == ASSAY_TYPE_UINT4 || t == ASSAY_TYPE_UINT8;
}

// For all, for each column, or for each block of a column. k_axis: the dimension of k.
static bool read_scales(const assay_node_t* n, const assay_tensor_t* codes,
                        const assay_tensor_t* scales, int k_axis, assay_coded_matrix_t* m) {
  const int64_t block = assay_attr_i64(n, "block_size", 0);
  int64_t axis = assay_attr_i64(n, "axis", 1);
  axis += axis < 0 ? codes->rank : 0;
  m->block = m->k;
  m->blocks = 1;
  if (scales->size == 1) return true;
  if (block == 0) {
    m->scale_n_step = 1;
    return axis == 1 - k_axis && scales->rank == 1 && scales->size == m->n;
  }
  if (axis != k_axis || block < ASSAY_CODED_MIN_BLOCK || scales->rank != 2) return false;
  m->block = block < m->k ? block : m->k;
  m->blocks = (m->k - 1) / m->block + 1;
  m->scale_block_step = k_axis ? 1 : m->n;
  m->scale_n_step = k_axis ? m->blocks : 1;
  return scales->dims[k_axis] == m->blocks && scales->dims[1 - k_axis] == m->n;
}

static bool read_dequantizer(const assay_node_t* n, bool turned, assay_coded_matrix_t* m) {
  m->codes = input(n, 0);
  m->scales = input(n, 1);
  m->zeros = input(n, 2);
  const assay_tensor_t *codes = constant(m->codes), *scales = constant(m->scales);
  const assay_tensor_t* zeros = constant(m->zeros);
  if ((*n->domain && !is_microsoft(n)) || strcmp(n->op_type, "DequantizeLinear") != 0 || !codes ||
      codes->rank != 2 || !codes->size || !read_code_type(codes->type, m) || !scales ||
      !is_real(scales->type) || n->n_outputs != 1 || !has_rank(n->outputs[0], 2))
    return false;
  const int k_axis = turned ? 1 : 0;
  m->k = codes->dims[k_axis];
  m->n = codes->dims[1 - k_axis];
  m->k_step = turned ? 1 : m->n;
  m->n_step = turned ? m->k : 1;
  if (!read_scales(n, codes, scales, k_axis, m)) return false;
  m->packed_zeros = true;
  m->zero_block_step = m->scale_block_step;
  m->zero_n_step = m->scale_n_step;
  return !m->zeros || (zeros && zeros->type == codes->type && zeros->size == scales->size);
}

static bool swaps(const assay_node_t* n) {
  size_t rank = 0;
  const int64_t* perm = assay_attr_ints(n, "perm", &rank);
  return rank == 0 || (rank == 2 && perm[0] == 1);
}

bool assay_coded_is_dequantized(const assay_node_t* dequantizer, const assay_node_t* transpose,
                                const assay_node_t* product, assay_coded_matrix_t* out) {
  assay_coded_matrix_t m = {.x = input(product, 0)};
  const bool gemm = strcmp(product->op_type, "Gemm") == 0;
  const assay_node_t* last = transpose ? transpose : dequantizer;
  if (*product->domain || (!gemm && strcmp(product->op_type, "MatMul") != 0) ||
      last->n_outputs != 1 || !last->outputs[0] || input(product, 1) != last->outputs[0] ||
      m.x == last->outputs[0] || !has_rank(m.x, 2))
    return false;
  if (gemm && (assay_attr_i64(product, "transA", 0) || assay_attr_f64(product, "alpha", 1) != 1 ||
               assay_attr_f64(product, "beta", 1) != 1))
    return false;
  if (transpose && (*transpose->domain || strcmp(transpose->op_type, "Transpose") != 0 ||
                    input(transpose, 0) != dequantizer->outputs[0] || !swaps(transpose)))
    return false;
  const bool turned = (transpose != NULL) != (gemm && assay_attr_i64(product, "transB", 0));
  if (!read_dequantizer(dequantizer, turned, &m) || !read_bias(gemm ? input(product, 2) : NULL, &m))
    return false;
  *out = m;
  return true;
}

size_t assay_coded_read(const assay_node_t* const* nodes, size_t n, assay_coded_matrix_t* out) {
  if (n >= 1 && assay_coded_is_nbits(nodes[0], out)) return 1;
  if (n >= 2 && assay_coded_is_dequantized(nodes[0], NULL, nodes[1], out)) return 2;
  if (n >= 3 && assay_coded_is_dequantized(nodes[0], nodes[1], nodes[2], out)) return 3;
  return 0;
}

int assay_coded_at(const assay_coded_matrix_t* m, const uint8_t* packed, int64_t i) {
  if (m->bits == 8) return m->is_signed ? (int8_t)packed[i] : packed[i];
  const int code = packed[i / 2] >> (i % 2 ? 4 : 0) & 15;
  return m->is_signed && code >= 8 ? code - 16 : code;
}
