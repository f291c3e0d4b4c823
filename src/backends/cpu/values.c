#include "backends/cpu/values.h"

#include <string.h>

#include "base/alloc.h"
#include "formats/format.h"

void cpu_value_clear(cpu_value_t* v) {
  assay_tensor_release(v->canonical);
  for (int i = 0; i < v->n_packed; i++) assay_tensor_release(v->packed[i]);
  *v = (cpu_value_t){0};
}

bool cpu_value_is_set(const cpu_value_t* v) { return v->canonical || v->n_packed; }

const assay_tensor_t* cpu_value_any(const cpu_value_t* v) {
  return v->canonical ? v->canonical : v->n_packed ? v->packed[0] : NULL;
}

cpu_layout_t cpu_value_layout(const cpu_value_t* v) {
  if (v->canonical || !v->n_packed) return CPU_PLAIN;
  for (int i = 0; i < v->n_packed; i++)
    if (v->layout[i] == CPU_PLAIN) return CPU_PLAIN;
  return v->layout[0];
}

void cpu_value_put(cpu_value_t* v, assay_tensor_t* take_tensor, cpu_layout_t layout) {
  cpu_value_clear(v);
  if (take_tensor->kind == ASSAY_KIND_TENSOR && take_tensor->store == ASSAY_STORE_PACKED) {
    v->packed[0] = take_tensor;
    v->layout[0] = layout;
    v->through[0] = take_tensor->type;
    v->n_packed = 1;
  } else {
    v->canonical = take_tensor;
  }
}

// ---- layouts -----------------------------------------------------------------------------------

// to[j * rows + i] = from[i * columns + j], in tiles that stay in the first cache.
#define TRANSPOSE(type)                                                                     \
  static void transpose_##type(const type* from, int64_t rows, int64_t columns, type* to) { \
    enum { TILE = 16 };                                                                     \
    for (int64_t i0 = 0; i0 < rows; i0 += TILE)                                             \
      for (int64_t j0 = 0; j0 < columns; j0 += TILE)                                        \
        for (int64_t j = j0; j < columns && j < j0 + TILE; j++)                             \
          for (int64_t i = i0; i < rows && i < i0 + TILE; i++)                              \
            to[j * rows + i] = from[i * columns + j];                                       \
  }
TRANSPOSE(uint8_t)
TRANSPOSE(uint16_t)
TRANSPOSE(uint32_t)
TRANSPOSE(uint64_t)

static void transpose(const char* from, int64_t rows, int64_t columns, size_t elem, char* to) {
  switch (elem) {
    case 1:
      transpose_uint8_t((const uint8_t*)from, rows, columns, (uint8_t*)to);
      break;
    case 2:
      transpose_uint16_t((const void*)from, rows, columns, (void*)to);
      break;
    case 4:
      transpose_uint32_t((const void*)from, rows, columns, (void*)to);
      break;
    default:
      transpose_uint64_t((const void*)from, rows, columns, (void*)to);
      break;
  }
}

// Each image is a matrix of channels by places; rows of places are shared out among the threads.
void cpu_reorder(const void* from, cpu_layout_t from_layout, int rank, const int64_t* dims,
                 size_t elem, void* to) {
  const int64_t places = assay_dims_product(dims, 2, rank), channels = dims[1];
  const int64_t rows = from_layout == CPU_PLAIN ? channels : places;
  const int64_t columns = from_layout == CPU_PLAIN ? places : channels;
  const size_t image = (size_t)(places * channels) * elem;
  const bool parallel = dims[0] > 1 && dims[0] * places * channels > 100000;
#pragma omp parallel for schedule(static) if (parallel)
  for (int64_t n = 0; n < dims[0]; n++)
    transpose((const char*)from + (size_t)n * image, rows, columns, elem,
              (char*)to + (size_t)n * image);
}

static assay_status_t in_layout(assay_tensor_t* t, cpu_layout_t layout, cpu_layout_t wanted,
                                assay_tensor_t** out) {
  if (layout == wanted || t->rank < 3 || !t->size) {
    *out = assay_tensor_retain(t);
    return NULL;
  }
  ASSAY_TRY(assay_tensor_create_packed(t->type, t->rank, t->dims, out));
  cpu_reorder(t->data, layout, t->rank, t->dims, (size_t)assay_type_bits(t->type) / 8,
              (*out)->data);
  return NULL;
}

// ---- forms -------------------------------------------------------------------------------------

static int find(const cpu_value_t* v, assay_type_t through, cpu_form_t form) {
  for (int i = 0; i < v->n_packed; i++)
    if (v->packed[i]->type == form.type && v->layout[i] == form.layout && v->through[i] == through)
      return i;
  return -1;
}

static void keep(cpu_value_t* v, assay_tensor_t* take_tensor, assay_type_t through,
                 cpu_layout_t layout) {
  if (v->n_packed == CPU_FORMS) assay_tensor_release(v->packed[--v->n_packed]);
  v->packed[v->n_packed] = take_tensor;
  v->through[v->n_packed] = through;
  v->layout[v->n_packed++] = layout;
}

assay_status_t cpu_value_canonical(cpu_value_t* v, assay_type_t declared, assay_tensor_t** out) {
  if (!v->canonical) {
    assay_tensor_t *plain = NULL, *wide = NULL;
    // As it was made: others may have been rounded.
    ASSAY_TRY(in_layout(v->packed[0], v->layout[0], CPU_PLAIN, &plain));
    assay_status_t st = assay_tensor_widen(plain, &wide);
    if (!st) st = assay_tensor_retype(wide, declared, &v->canonical);
    assay_tensor_release(plain);
    assay_tensor_release(wide);
    if (st) return st;
  }
  *out = v->canonical;
  return NULL;
}

// A packed tensor of another element type, by way of the canonical form.
static assay_status_t convert(assay_tensor_t* t, assay_type_t type, assay_tensor_t** out) {
  assay_tensor_t *wide = NULL, *typed = NULL;
  if (t->type == type && t->store == ASSAY_STORE_PACKED) {
    *out = assay_tensor_retain(t);
    return NULL;
  }
  assay_status_t st = assay_tensor_widen(t, &wide);
  if (!st) st = assay_tensor_retype(wide, type, &typed);
  if (!st) st = assay_tensor_pack(typed, out);
  assay_tensor_release(wide);
  assay_tensor_release(typed);
  return st;
}

// What lies in a model's file may lie at any address; kernels read elements at multiples of their
// size.
static assay_status_t align(assay_tensor_t** t) {
  const size_t elem = (size_t)(assay_type_bits((*t)->type) + 7) / 8;
  assay_tensor_t* copy = NULL;
  if ((uintptr_t)(*t)->data % elem == 0) return NULL;
  ASSAY_TRY(assay_tensor_copy(*t, &copy));
  assay_tensor_release(*t);
  *t = copy;
  return NULL;
}

// The tensor that a form is made of, retained, and its layout: elements of the type that are
// rounded as wanted, in another order; or else what the value was made as, which comes first.
static assay_status_t source_of(cpu_value_t* v, assay_type_t through, assay_type_t type,
                                assay_tensor_t** out, cpu_layout_t* out_layout) {
  for (int i = 0; i < v->n_packed; i++)
    if (v->packed[i]->type == type && v->through[i] == through) {
      *out = assay_tensor_retain(v->packed[i]);
      *out_layout = v->layout[i];
      return NULL;
    }
  assay_tensor_t *from = v->n_packed ? v->packed[0] : v->canonical, *rounded = NULL;
  *out_layout = v->n_packed ? v->layout[0] : CPU_PLAIN;
  ASSAY_TRY(convert(from, through, &rounded));
  assay_status_t st = convert(rounded, type, out);
  assay_tensor_release(rounded);
  return st;
}

assay_status_t cpu_value_in_form(cpu_value_t* v, assay_type_t through, cpu_form_t form,
                                 assay_tensor_t** out) {
  const assay_tensor_t* any = cpu_value_any(v);
  if (!any || any->kind != ASSAY_KIND_TENSOR)
    return ASSAY_ERROR(ASSAY_UNSUPPORTED, "a value that is no tensor has no packed form");
  if (any->rank < 3) form.layout = CPU_PLAIN;
  for (int i = 0; i < v->n_packed; i++) ASSAY_TRY(align(&v->packed[i]));
  int at = find(v, through, form);
  if (at < 0) {
    assay_tensor_t *typed = NULL, *made = NULL;
    cpu_layout_t layout;
    ASSAY_TRY(source_of(v, through, form.type, &typed, &layout));
    assay_status_t st = in_layout(typed, layout, form.layout, &made);
    assay_tensor_release(typed);
    if (st) return st;
    keep(v, made, through, form.layout);
    at = v->n_packed - 1;
  }
  *out = v->packed[at];
  return NULL;
}
