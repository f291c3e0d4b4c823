// Moves on the host (exec/segment/reformat.h).
#include "backends/cpu/data/move.h"

#include <string.h>

#include "backends/cpu/data/copies.h"
#include "backends/cpu/pointwise/convert.h"

enum { CHUNK = 1024, PARALLEL = 1 << 16 };

// ---- layouts -----------------------------------------------------------------------------------

// A copy between the strides of both layouts.
void cpu_reorder(const void* from, assay_layout_t from_layout, int rank, const int64_t* dims,
                 size_t elem, void* to) {
  const assay_layout_t to_layout =
      from_layout == ASSAY_LAYOUT_PLAIN ? ASSAY_LAYOUT_CHANNELS_LAST : ASSAY_LAYOUT_PLAIN;
  box_t b = {.rank = rank};
  for (int i = 0; i < rank; i++) b.dims[i] = dims[i];
  box_layout_strides(rank, dims, from_layout, b.from_strides);
  box_layout_strides(rank, dims, to_layout, b.to_strides);
  box_prepare(&b);
  cpu_box_copy(&b, elem, &from, NULL, &to);
}

// ---- types -------------------------------------------------------------------------------------

static void convert_chunk(const assay_reformat_t* m, const void* from, int64_t at, int64_t n,
                          void* to) {
  float wide[CHUNK];
  uint16_t rounded[CHUNK];
  const bool twice =
      m->through != m->from.type && m->through != m->to.type && m->through != ASSAY_TYPE_FLOAT;
  if (!twice && m->from.type == ASSAY_TYPE_FLOAT) {
    cpu_narrow((const float*)from + at, n, m->to.type, at, to);
    return;
  }
  cpu_widen(from, m->from.type, at, n, wide);
  if (twice) {
    cpu_narrow(wide, n, m->through, 0, rounded);
    cpu_widen(rounded, m->through, 0, n, wide);
  }
  cpu_narrow(wide, n, m->to.type, at, to);
}

static void convert(const assay_reformat_t* m, const void* from, void* to) {
  const int64_t chunks = (m->size + CHUNK - 1) / CHUNK;
#pragma omp parallel for schedule(static) if (m->size > PARALLEL)
  for (int64_t i = 0; i < chunks; i++) {
    const int64_t at = i * CHUNK, n = m->size - at < CHUNK ? m->size - at : CHUNK;
    convert_chunk(m, from, at, n, to);
  }
}

// ---- both --------------------------------------------------------------------------------------

static bool same_elements(const assay_reformat_t* m) {
  return m->from.type == m->to.type &&
         (m->through == m->from.type ||
          (m->through == ASSAY_TYPE_FLOAT && assay_type_is_kernel_float(m->from.type)));
}

static bool same_layout(const assay_reformat_t* m) {
  return m->from.layout == m->to.layout || m->rank < 3;
}

bool cpu_move_is_possible(const assay_reformat_t* m) {
  if (same_elements(m)) return same_layout(m) || assay_type_bits(m->from.type) >= 8;
  return assay_type_is_kernel_float(m->from.type) && assay_type_is_kernel_float(m->to.type) &&
         assay_type_is_kernel_float(m->through);
}

static size_t bytes_of(const assay_reformat_t* m, assay_type_t type) {
  int64_t bytes = 0;
  return assay_type_packed_bytes(type, m->size, &bytes) ? (size_t)bytes : 0;
}

size_t cpu_move_scratch(const assay_reformat_t* m) {
  return same_elements(m) || same_layout(m) ? 0 : bytes_of(m, m->to.type);
}

void cpu_move_run(const assay_reformat_t* m, const void* from, void* to, void* scratch) {
  const size_t elem = (size_t)(assay_type_bits(m->to.type) + 7) / 8;
  if (!m->size) return;
  if (same_elements(m) && same_layout(m)) {
    memcpy(to, from, bytes_of(m, m->to.type));
  } else if (same_elements(m)) {
    cpu_reorder(from, m->from.layout, m->rank, m->dims, elem, to);
  } else if (same_layout(m)) {
    convert(m, from, to);
  } else {
    convert(m, from, scratch);
    cpu_reorder(scratch, m->from.layout, m->rank, m->dims, elem, to);
  }
}
