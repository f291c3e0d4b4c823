// Weights of 4 and 8 bits with scales in a device's memory.
#include "backends/cuda/coded/weights.h"

#include "backends/cuda/bytes.h"
#include "backends/cuda/product/constants.h"
#include "base/alloc.h"

enum { GROUP = 8 };  // codes of a word

// Codes of 4 bits are read as they are packed, from 0 on: signed ones are 8 more, and so are their
// zero points.
static int shift_of(const assay_coded_matrix_t* m) { return m->bits == 4 && m->is_signed ? 8 : 0; }

static assay_status_t bring_codes(const assay_sized_layer_t* l, const assay_coded_matrix_t* m,
                                  assay_device_ptr_t* out) {
  assay_tensor_t* given = NULL;
  uint32_t* words = NULL;
  const int64_t groups = (m->k + GROUP - 1) / GROUP;
  const int64_t bytes = m->bits == 4 ? groups * m->n * 4 : (m->k * m->n + 3) / 4 * 4;
  assay_status_t st = assay_tensor_pack(m->codes->constant, &given);
  if (!st) st = assay_new_array((size_t)bytes, 1, &words);
  uint8_t* to = (uint8_t*)words;
  for (int64_t i = 0; !st && i < m->k; i++)
    for (int64_t j = 0; j < m->n; j++) {
      const int code = assay_coded_at(m, given->data, i * m->k_step + j * m->n_step) + shift_of(m);
      if (m->bits == 4)
        words[i / GROUP * m->n + j] |= ((uint32_t)code & 15) << i % GROUP * 4;
      else
        to[i * m->n + j] = (uint8_t)code;
    }
  if (!st) st = cuda_bytes_bring(l, "codes by terms", words, (size_t)bytes, out);
  assay_tensor_release(given);
  assay_free(words);
  return st;
}

static assay_status_t bring_scales(const assay_sized_layer_t* l, const assay_coded_matrix_t* m,
                                   assay_device_ptr_t* out) {
  float *given = NULL, *all = NULL;
  const int64_t n = m->blocks * m->n;
  assay_status_t st = assay_operand_floats(assay_sized_input(l, m->scales), &given);
  if (!st) st = assay_new_array((size_t)n, sizeof *all, &all);
  for (int64_t i = 0; !st && i < n; i++)
    all[i] = given[i / m->n * m->scale_block_step + i % m->n * m->scale_n_step];
  if (!st) st = cuda_bytes_bring(l, "scales of codes", all, (size_t)n * sizeof *all, out);
  assay_free(given);
  assay_free(all);
  return st;
}

static assay_status_t bring_zeros(const assay_sized_layer_t* l, const assay_coded_matrix_t* m,
                                  assay_device_ptr_t* out, bool* ok) {
  assay_tensor_t* packed = NULL;
  float *given = NULL, *all = NULL;
  const int64_t n = m->blocks * m->n;
  assay_status_t st = assay_new_array((size_t)n, sizeof *all, &all);
  if (!st && m->zeros && m->packed_zeros) st = assay_tensor_pack(m->zeros->constant, &packed);
  if (!st && m->zeros && !m->packed_zeros)
    st = assay_operand_floats(assay_sized_input(l, m->zeros), &given);
  for (int64_t i = 0; !st && i < n; i++) {
    const int64_t at = i / m->n * m->zero_block_step + i % m->n * m->zero_n_step;
    const double zero = given    ? (double)given[at]
                        : packed ? assay_coded_at(m, packed->data, at)
                                 : m->no_zero;
    all[i] = (float)(zero + shift_of(m));
    *ok = *ok && (double)all[i] == zero + shift_of(m);
  }
  if (!st && *ok) st = cuda_bytes_bring(l, "zeros of codes", all, (size_t)n * sizeof *all, out);
  assay_tensor_release(packed);
  assay_free(given);
  assay_free(all);
  return st;
}

assay_status_t cuda_coded_bring(const assay_sized_layer_t* l, const assay_coded_matrix_t* m,
                                coded_args_t* args, bool* ok) {
  *ok = true;
  ASSAY_TRY(bring_zeros(l, m, &args->zeros, ok));
  if (!*ok) return NULL;
  ASSAY_TRY(bring_scales(l, m, &args->scales));
  ASSAY_TRY(bring_codes(l, m, &args->product.w));
  args->block = m->block < m->k ? m->block : m->k;
  const assay_operand_t* bias = m->bias ? assay_sized_input(l, m->bias) : NULL;
  return bias ? cuda_bias_get(l, bias, m->n, &args->bias) : NULL;
}
