#include "backends/cpu/move.h"

#include <string.h>

#include "backends/cpu/convert.h"

enum { TILE = 16, CHUNK = 1024, PARALLEL = 1 << 16 };

// ---- layouts -----------------------------------------------------------------------------------

// to[j * rows + i] = from[i * columns + j] for j in [begin, end), in tiles that stay in the first
// cache.
#define TRANSPOSE(type)                                                                  \
  static void transpose_##type(const type* restrict from, int64_t rows, int64_t columns, \
                               int64_t begin, int64_t end, type* restrict to) {          \
    for (int64_t i0 = 0; i0 < rows; i0 += TILE)                                          \
      for (int64_t j = begin; j < end; j++)                                              \
        for (int64_t i = i0; i < rows && i < i0 + TILE; i++)                             \
          to[j * rows + i] = from[i * columns + j];                                      \
  }
TRANSPOSE(uint8_t)
TRANSPOSE(uint16_t)
TRANSPOSE(uint32_t)
TRANSPOSE(uint64_t)

static void transpose(const char* from, int64_t rows, int64_t columns, int64_t begin, int64_t end,
                      size_t elem, char* to) {
  switch (elem) {
    case 1:
      transpose_uint8_t((const void*)from, rows, columns, begin, end, (void*)to);
      break;
    case 2:
      transpose_uint16_t((const void*)from, rows, columns, begin, end, (void*)to);
      break;
    case 4:
      transpose_uint32_t((const void*)from, rows, columns, begin, end, (void*)to);
      break;
    default:
      transpose_uint64_t((const void*)from, rows, columns, begin, end, (void*)to);
      break;
  }
}

// Each image is a matrix of channels by places; tiles of its columns are shared out among the
// threads.
void cpu_reorder(const void* from, assay_layout_t from_layout, int rank, const int64_t* dims,
                 size_t elem, void* to) {
  const int64_t places = assay_dims_product(dims, 2, rank), channels = dims[1];
  const int64_t rows = from_layout == ASSAY_LAYOUT_PLAIN ? channels : places;
  const int64_t columns = from_layout == ASSAY_LAYOUT_PLAIN ? places : channels;
  const size_t image = (size_t)(places * channels) * elem;
  const int64_t tiles = (columns + TILE - 1) / TILE;
#pragma omp parallel for schedule(static) collapse(2) if (dims[0] * rows * columns > PARALLEL)
  for (int64_t n = 0; n < dims[0]; n++)
    for (int64_t t = 0; t < tiles; t++) {
      const int64_t end = (t + 1) * TILE < columns ? (t + 1) * TILE : columns;
      transpose((const char*)from + (size_t)n * image, rows, columns, t * TILE, end, elem,
                (char*)to + (size_t)n * image);
    }
}

// ---- types -------------------------------------------------------------------------------------

static void convert_chunk(const assay_move_t* m, const void* from, int64_t at, int64_t n,
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

static void convert(const assay_move_t* m, const void* from, void* to) {
  const int64_t chunks = (m->size + CHUNK - 1) / CHUNK;
#pragma omp parallel for schedule(static) if (m->size > PARALLEL)
  for (int64_t i = 0; i < chunks; i++) {
    const int64_t at = i * CHUNK, n = m->size - at < CHUNK ? m->size - at : CHUNK;
    convert_chunk(m, from, at, n, to);
  }
}

// ---- both --------------------------------------------------------------------------------------

static bool same_elements(const assay_move_t* m) {
  return m->from.type == m->to.type &&
         (m->through == m->from.type ||
          (m->through == ASSAY_TYPE_FLOAT && assay_type_is_kernel_float(m->from.type)));
}

static bool same_layout(const assay_move_t* m) {
  return m->from.layout == m->to.layout || m->rank < 3;
}

bool cpu_move_is_possible(const assay_move_t* m) {
  if (same_elements(m)) return same_layout(m) || assay_type_bits(m->from.type) >= 8;
  return assay_type_is_kernel_float(m->from.type) && assay_type_is_kernel_float(m->to.type) &&
         assay_type_is_kernel_float(m->through);
}

static size_t bytes_of(const assay_move_t* m, assay_type_t type) {
  int64_t bytes = 0;
  return assay_type_packed_bytes(type, m->size, &bytes) ? (size_t)bytes : 0;
}

size_t cpu_move_scratch(const assay_move_t* m) {
  return same_elements(m) || same_layout(m) ? 0 : bytes_of(m, m->to.type);
}

void cpu_move_run(const assay_move_t* m, const void* from, void* to, void* scratch) {
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
