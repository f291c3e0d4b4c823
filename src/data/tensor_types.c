// Arrays of types that NumPy lacks, as the unsigned integers of their bits, and back.
#include <string.h>

#include "data/tensor_files.h"
#include "formats/format.h"

static const struct {
  const char* name;
  assay_type_t type;
} bit_types[] = {{"bf16", ASSAY_TYPE_BFLOAT16},
                 {"fp16", ASSAY_TYPE_FLOAT16},
                 {"fp8e4m3", ASSAY_TYPE_FLOAT8E4M3FN},
                 {"fp8e5m2", ASSAY_TYPE_FLOAT8E5M2}};
enum { N_BIT_TYPES = sizeof bit_types / sizeof *bit_types };

static bool is_unsigned(assay_type_t type, int bits) {
  return type == (bits == 16 ? ASSAY_TYPE_UINT16 : ASSAY_TYPE_UINT8);
}

// The same bits under another type.
static assay_status_t with_type(assay_tensor_t* t, assay_type_t type, assay_tensor_t** out) {
  assay_tensor_t* packed = NULL;
  ASSAY_TRY(assay_tensor_pack(t, &packed));
  assay_status_t st =
      assay_tensor_make(type, t->rank, t->dims, packed->data, assay_tensor_bytes(packed), out);
  assay_tensor_release(packed);
  return st;
}

static assay_status_t retype(const char* name, assay_type_t type, assay_tensor_t** at) {
  assay_tensor_t *t = *at, *wide = NULL, *made = NULL;
  assay_status_t st = NULL;
  if (is_unsigned(t->type, assay_type_bits(type))) {
    st = with_type(t, type, &made);
  } else if (t->type == ASSAY_TYPE_FLOAT) {
    st = assay_tensor_widen(t, &wide);
    assay_tensor_t* retyped = NULL;
    if (!st) st = assay_tensor_retype(wide, type, &retyped);
    if (!st) st = assay_tensor_pack(retyped, &made);  // which rounds
    assay_tensor_release(retyped);
    assay_tensor_release(wide);
  } else if (t->type == type) {
    return NULL;
  } else {
    st = ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                     "--dtype: array '%s' is %s; it is to be uint%d, as bits of %s, or float32",
                     name, assay_type_name(t->type), assay_type_bits(type), assay_type_name(type));
  }
  if (st) return st;
  assay_tensor_release(t);
  *at = made;
  return NULL;
}

// Names may hold colons: the last one counts.
static assay_status_t parse(const char* request, size_t* out_name, assay_type_t* out_type) {
  const char* colon = strrchr(request, ':');
  size_t k = 0;
  while (colon && k < N_BIT_TYPES && strcmp(bit_types[k].name, colon + 1) != 0) k++;
  if (!colon || colon == request || k == N_BIT_TYPES)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "--dtype '%s' is not NAME:TYPE with bf16, fp16, fp8e4m3 or fp8e5m2",
                       request);
  *out_name = (size_t)(colon - request);
  *out_type = bit_types[k].type;
  return NULL;
}

assay_status_t assay_tensor_dtype_check(const char* request) {
  size_t n;
  assay_type_t type;
  return parse(request, &n, &type);
}

static assay_status_t retype_named(const char* request, assay_saved_t* runs, bool* met) {
  size_t n;
  assay_type_t type;
  ASSAY_TRY(parse(request, &n, &type));
  for (size_t i = 0; i < runs->n; i++)
    for (size_t a = 0; a < runs->runs[i].n; a++) {
      const char* name = runs->runs[i].names[a];
      if (strlen(name) != n || strncmp(name, request, n) != 0) continue;
      ASSAY_TRY(retype(name, type, &runs->runs[i].tensors[a]));
      *met = true;
    }
  return NULL;
}

assay_status_t assay_tensor_files_retype(const assay_tensor_reading_t* r, assay_saved_t* runs) {
  for (size_t i = 0; i < r->n_dtypes; i++) {
    bool met = false;
    ASSAY_TRY(retype_named(r->dtypes[i], runs, &met));
    if (r->met) r->met[i] |= met;
  }
  return NULL;
}

assay_status_t assay_tensor_files_raw_bits(assay_saved_t* runs) {
  for (size_t i = 0; i < runs->n; i++)
    for (size_t a = 0; a < runs->runs[i].n; a++) {
      assay_tensor_t **at = &runs->runs[i].tensors[a], *made = NULL;
      const assay_tensor_t* t = *at;
      const int bits = t->kind == ASSAY_KIND_TENSOR ? assay_type_bits(t->type) : 0;
      const bool lacks = t->kind == ASSAY_KIND_TENSOR && assay_type_is_float(t->type) &&
                         t->type != ASSAY_TYPE_FLOAT16 && (bits == 16 || bits == 8);
      if (!lacks) continue;
      ASSAY_TRY(with_type(*at, bits == 16 ? ASSAY_TYPE_UINT16 : ASSAY_TYPE_UINT8, &made));
      assay_tensor_release(*at);
      *at = made;
    }
  return NULL;
}
