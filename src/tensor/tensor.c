// Host tensors, and the sequences, optionals and maps of them that ONNX has.
#include "tensor/tensor.h"

#include <float.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/spill.h"
#include "formats/format.h"

assay_store_t assay_type_store(assay_type_t type) {
  if (assay_type_is_float(type)) return ASSAY_STORE_F64;
  if (assay_type_is_complex(type)) return ASSAY_STORE_C128;
  return type == ASSAY_TYPE_STRING ? ASSAY_STORE_STR : ASSAY_STORE_I64;
}

size_t assay_store_elem_bytes(assay_store_t store) {
  switch (store) {
    case ASSAY_STORE_C128:
      return 2 * sizeof(double);
    case ASSAY_STORE_STR:
      return sizeof(assay_string_t);
    default:
      return sizeof(double);
  }
}

bool assay_dims_size(int rank, const int64_t* dims, int64_t* out_size) {
  int64_t size = 1;
  bool empty = false;
  for (int i = 0; i < rank; i++) {
    if (dims[i] < 0) return false;
    if (!dims[i]) {
      empty = true;
    } else if (!assay_mul_i64(size, dims[i], &size)) {
      return false;
    }
  }
  *out_size = empty ? 0 : size;
  return true;
}

const char* assay_dims_text(int rank, const int64_t* dims, char* buffer, size_t capacity) {
  size_t used = 0;
  for (int i = 0; i <= rank && used < capacity; i++) {
    int n = i < rank ? snprintf(buffer + used, capacity - used, "%s%lld", i ? ", " : "[",
                                (long long)dims[i])
                     : snprintf(buffer + used, capacity - used, "%s", rank ? "]" : "[]");
    if (n < 0) break;
    used += (size_t)n;
  }
  return buffer;
}

// ---- life and death -------------------------------------------------------------------------

static void strings_free(void* owner) {
  assay_tensor_t* t = owner;
  assay_string_t* s = t->data;
  for (int64_t i = 0; i < t->size; i++) assay_free((void*)(uintptr_t)s[i].text);
  assay_free(s);
}

static void release_tensor(void* owner) { assay_tensor_release(owner); }

assay_tensor_t* assay_tensor_retain(assay_tensor_t* t) {
  if (t) atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed);
  return t;
}

void assay_tensor_release(assay_tensor_t* t) {
  if (!t || atomic_fetch_sub_explicit(&t->refs, 1, memory_order_acq_rel) != 1) return;
  for (int64_t i = 0; i < t->n_items; i++) assay_tensor_release(t->items[i]);
  assay_free(t->items);
  if (t->release)
    t->release(t->owner);
  else
    assay_free(t->owner);
  assay_free(t);
}

// A tensor without bytes. Checks the shape; *out_size gets its elements.
static assay_status_t create_head(assay_type_t type, int rank, const int64_t* dims,
                                  assay_tensor_t** out) {
  int64_t size = 0;
  if (type <= ASSAY_TYPE_UNDEFINED || type >= ASSAY_TYPE_COUNT)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "element type %d is not one that ONNX defines",
                       (int)type);
  if (rank < 0 || rank > ASSAY_MAX_RANK)
    return ASSAY_ERROR(ASSAY_UNSUPPORTED, "rank %d; tensors of up to %d dimensions are supported",
                       rank, ASSAY_MAX_RANK);
  if (!assay_dims_size(rank, dims, &size))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "shape %s has a negative dimension or more elements than can be counted",
                       assay_dims_text(rank, dims, (char[512]){0}, 512));
  assay_tensor_t* t = NULL;
  ASSAY_TRY(ASSAY_NEW(&t));
  t->refs = 1;
  t->type = type;
  t->rank = rank;
  if (rank) memcpy(t->dims, dims, (size_t)rank * sizeof *dims);
  t->size = size;
  *out = t;
  return NULL;
}

static assay_status_t no_memory_for(const assay_tensor_t* t) {
  return assay_status_note(assay_status_no_memory(), "tensor %s%s", assay_type_name(t->type),
                           ASSAY_DIMS_TEXT(t));
}

// A canonical tensor; zeroed if asked, or if its elements are pointers.
static assay_status_t create(assay_type_t type, int rank, const int64_t* dims, bool zero,
                             assay_tensor_t** out) {
  assay_tensor_t* t = NULL;
  ASSAY_TRY(create_head(type, rank, dims, &t));
  t->store = assay_type_store(type);
  size_t elem = assay_store_elem_bytes(t->store);
  int64_t bytes = 0;
  if (!assay_mul_i64(t->size, (int64_t)elem, &bytes)) {
    assay_status_t st =
        ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "shape %s has more elements than any machine holds",
                    ASSAY_DIMS_TEXT(t));
    assay_free(t);
    return st;
  }
  t->data = zero || t->store == ASSAY_STORE_STR ? assay_calloc((size_t)t->size, elem)
                                                : assay_malloc((size_t)bytes);
  if (!t->data) {
    assay_status_t st = no_memory_for(t);
    assay_free(t);
    return st;
  }
  t->owner = t->data;
  if (t->store == ASSAY_STORE_STR) {
    t->owner = t;
    t->release = strings_free;
  }
  *out = t;
  return NULL;
}

assay_status_t assay_tensor_create(assay_type_t type, int rank, const int64_t* dims,
                                   assay_tensor_t** out) {
  return create(type, rank, dims, false, out);
}

assay_status_t assay_tensor_create_zero(assay_type_t type, int rank, const int64_t* dims,
                                        assay_tensor_t** out) {
  return create(type, rank, dims, true, out);
}

assay_status_t assay_tensor_wrap_packed(assay_type_t type, int rank, const int64_t* dims,
                                        const void* data, int64_t bytes,
                                        void (*release)(void* owner), void* owner,
                                        assay_tensor_t** out) {
  assay_tensor_t* t = NULL;
  int64_t want = 0;
  assay_status_t st = create_head(type, rank, dims, &t);
  if (!st && (!assay_type_packed_bytes(type, t->size, &want) || want != bytes))
    st = ASSAY_ERROR(ASSAY_CORRUPT, "data has %lld bytes, but %s%s takes %lld", (long long)bytes,
                     assay_type_name(type), ASSAY_DIMS_TEXT(t), (long long)want);
  if (st) {
    assay_free(t);
    if (release) release(owner);
    return st;
  }
  t->store = ASSAY_STORE_PACKED;
  t->data = (void*)(uintptr_t)(data ? data : "");
  t->release = release;
  t->owner = release ? owner : NULL;
  *out = t;
  return NULL;
}

assay_status_t assay_tensor_wrap_narrow(assay_type_t narrow, int rank, const int64_t* dims,
                                        const void* data, int64_t bytes,
                                        void (*release)(void* owner), void* owner,
                                        assay_tensor_t** out) {
  ASSAY_TRY(assay_tensor_wrap_packed(narrow, rank, dims, data, bytes, release, owner, out));
  (*out)->type = ASSAY_TYPE_FLOAT;
  (*out)->store = ASSAY_STORE_NARROW;
  (*out)->narrow = narrow;
  return NULL;
}

assay_status_t assay_tensor_create_packed(assay_type_t type, int rank, const int64_t* dims,
                                          assay_tensor_t** out) {
  assay_tensor_t* t = NULL;
  int64_t bytes = 0;
  ASSAY_TRY(create_head(type, rank, dims, &t));
  if (assay_type_packed_bytes(type, t->size, &bytes)) t->data = assay_malloc((size_t)bytes);
  if (!t->data) {
    assay_status_t st = no_memory_for(t);
    assay_free(t);
    return st;
  }
  t->store = ASSAY_STORE_PACKED;
  t->owner = t->data;
  *out = t;
  return NULL;
}

assay_status_t assay_tensor_create_late(assay_type_t type, int rank, const int64_t* dims,
                                        assay_tensor_make_t* make, void (*release)(void* owner),
                                        void* owner, assay_tensor_t** out) {
  assay_tensor_t* t = NULL;
  assay_status_t st = create_head(type, rank, dims, &t);
  if (st) return release(owner), st;
  t->store = ASSAY_STORE_LATE;
  t->data = (void*)(uintptr_t) "";
  t->make = make;
  t->release = release;
  t->owner = owner;
  *out = t;
  return NULL;
}

assay_status_t assay_tensor_part(assay_tensor_t* t, int64_t first, int rank, const int64_t* dims,
                                 assay_tensor_t** out) {
  assay_tensor_t* v = NULL;
  int64_t offset = 0;
  const bool packed = t->store == ASSAY_STORE_PACKED || t->store == ASSAY_STORE_NARROW;
  if (t->kind != ASSAY_KIND_TENSOR || t->store == ASSAY_STORE_STR || t->store == ASSAY_STORE_LATE ||
      (packed && first % 8 && assay_type_bits(t->type) % 8))
    return ASSAY_ERROR(ASSAY_UNSUPPORTED, "the tensor cannot be cut without copying it");
  ASSAY_TRY(create_head(t->type, rank, dims, &v));
  const bool fits = first >= 0 && first <= t->size && v->size <= t->size - first &&
                    (!packed || assay_type_packed_bytes(assay_tensor_lies_as(t), first, &offset));
  if (!fits) {
    assay_free(v);
    return ASSAY_ERROR(ASSAY_INTERNAL, "elements %lld and on are none of a tensor of %lld",
                       (long long)first, (long long)t->size);
  }
  if (!packed) offset = first * (int64_t)assay_store_elem_bytes(t->store);
  v->store = t->store;
  v->narrow = t->narrow;
  v->data = (char*)t->data + offset;
  v->release = release_tensor;
  v->owner = assay_tensor_retain(t);
  *out = v;
  return NULL;
}

assay_status_t assay_tensor_view(assay_tensor_t* t, int rank, const int64_t* dims,
                                 assay_tensor_t** out) {
  assay_tensor_t* v = NULL;
  if (t->store == ASSAY_STORE_LATE) {
    assay_tensor_t* made = NULL;
    ASSAY_TRY(t->make(t->owner, &made));
    assay_status_t st = assay_tensor_view(made, rank, dims, out);
    assay_tensor_release(made);
    return st;
  }
  ASSAY_TRY(create_head(t->type, rank, dims, &v));
  if (v->size != t->size) {
    assay_status_t st =
        ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "shape %s has %lld elements, the tensor %s has %lld",
                    ASSAY_DIMS_TEXT(v), (long long)v->size, ASSAY_DIMS_TEXT(t), (long long)t->size);
    assay_free(v);
    return st;
  }
  v->store = t->store;
  v->narrow = t->narrow;
  v->data = t->data;
  v->release = release_tensor;
  v->owner = assay_tensor_retain(t);
  *out = v;
  return NULL;
}

void assay_tensor_forget(const assay_tensor_t* t) {
  int64_t bytes = 0;
  const void* data = t->data;
  if ((t->store != ASSAY_STORE_PACKED && t->store != ASSAY_STORE_NARROW) ||
      !assay_type_packed_bytes(assay_tensor_lies_as(t), t->size, &bytes))
    return;
  while (t->release == release_tensor) t = t->owner;
  if (t->release == assay_mapping_release_owner)
    assay_mapping_forget(t->owner, data, (size_t)bytes);
}

void assay_tensor_forget_whole(const assay_tensor_t* t) {
  while (t->kind == ASSAY_KIND_TENSOR && t->release == release_tensor) t = t->owner;
  assay_tensor_forget(t);
}

void assay_tensor_spill(assay_tensor_t* t) {
  int64_t bytes = 0;
  if (!assay_tensor_is_sole(t) || t->store == ASSAY_STORE_STR || t->store > ASSAY_STORE_PACKED)
    return;
  if (t->store == ASSAY_STORE_PACKED)
    (void)assay_type_packed_bytes(t->type, t->size, &bytes);
  else
    bytes = t->size * (int64_t)assay_store_elem_bytes(t->store);
  if (!assay_spill_is_due((size_t)bytes)) return;
  assay_spilled_t* s = assay_spill(t->data, (size_t)bytes);
  if (!s) return;
  assay_free(t->data);
  t->data = assay_spilled_data(s);
  t->owner = s;
  t->release = assay_spilled_release;
}

assay_status_t assay_tensor_retype(assay_tensor_t* t, assay_type_t type, assay_tensor_t** out) {
  if (t->type == type) {
    *out = assay_tensor_retain(t);
    return NULL;
  }
  if (!assay_tensor_is_canonical(t) || assay_type_store(type) != t->store)
    return ASSAY_ERROR(ASSAY_INTERNAL, "a %s tensor cannot pass as %s", assay_type_name(t->type),
                       assay_type_name(type));
  ASSAY_TRY(assay_tensor_view(t, t->rank, t->dims, out));
  (*out)->type = type;
  return NULL;
}

static assay_status_t create_container(assay_kind_t kind, assay_type_t type, int64_t n,
                                       assay_tensor_t* const* items, assay_tensor_t** out) {
  assay_tensor_t* t = NULL;
  ASSAY_TRY(ASSAY_NEW(&t));
  assay_status_t st = assay_new_array((size_t)n, sizeof *t->items, &t->items);
  if (st) return assay_free(t), st;
  t->refs = 1;
  t->kind = kind;
  t->type = type;
  t->n_items = n;
  for (int64_t i = 0; i < n; i++) t->items[i] = assay_tensor_retain(items[i]);
  *out = t;
  return NULL;
}

// ---- conversion -----------------------------------------------------------------------------

// Elements converted by one thread at a time; a multiple of 8, so that packed bits end on bytes.
enum { CHUNK = 1 << 16 };

bool assay_tensor_same_shape(const assay_tensor_t* a, const assay_tensor_t* b) {
  return a && b && a->kind == ASSAY_KIND_TENSOR && b->kind == ASSAY_KIND_TENSOR &&
         a->rank == b->rank &&
         (!a->rank || !memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims));
}

bool assay_tensor_alike(const assay_tensor_t* a, const assay_tensor_t* b) {
  return assay_tensor_same_shape(a, b) && a->store == b->store;
}

bool assay_tensor_is_canonical(const assay_tensor_t* t) {
  if (t->kind == ASSAY_KIND_TENSOR)
    return t->store != ASSAY_STORE_PACKED && t->store != ASSAY_STORE_LATE &&
           t->store != ASSAY_STORE_NARROW;
  for (int64_t i = 0; i < t->n_items; i++)
    if (!assay_tensor_is_canonical(t->items[i])) return false;
  return true;
}

static assay_status_t widen_items(const assay_tensor_t* t, assay_tensor_t** out) {
  assay_tensor_t* w = NULL;
  ASSAY_TRY(create_container(t->kind, t->type, t->n_items, t->items, &w));
  for (int64_t i = 0; i < w->n_items; i++) {
    assay_tensor_t* item = NULL;
    assay_status_t st = assay_tensor_widen(w->items[i], &item);
    if (st) return assay_tensor_release(w), st;
    assay_tensor_release(w->items[i]);
    w->items[i] = item;
  }
  *out = w;
  return NULL;
}

assay_status_t assay_tensor_widen(assay_tensor_t* t, assay_tensor_t** out) {
  if (assay_tensor_is_canonical(t)) {
    *out = assay_tensor_retain(t);
    return NULL;
  }
  if (t->kind != ASSAY_KIND_TENSOR) return widen_items(t, out);
  if (t->store == ASSAY_STORE_LATE) return t->make(t->owner, out);
  assay_tensor_t* w = NULL;
  ASSAY_TRY(assay_tensor_create(t->type, t->rank, t->dims, &w));
  size_t elem = assay_store_elem_bytes(w->store);
#pragma omp parallel for schedule(static) if (t->size > 4 * CHUNK)
  for (int64_t i = 0; i < t->size; i += CHUNK) {
    int64_t n = t->size - i < CHUNK ? t->size - i : CHUNK;
    assay_unpack(assay_tensor_lies_as(t), t->data, i, n, (char*)w->data + (size_t)i * elem);
  }
  *out = w;
  return NULL;
}

assay_status_t assay_tensor_narrowed(assay_tensor_t* t, assay_tensor_t** out) {
  if (t->kind != ASSAY_KIND_TENSOR || t->store != ASSAY_STORE_NARROW)
    return ASSAY_ERROR(ASSAY_INTERNAL, "the tensor does not lie in 16 bits");
  ASSAY_TRY(assay_tensor_view(t, t->rank, t->dims, out));
  (*out)->type = t->narrow;
  (*out)->store = ASSAY_STORE_PACKED;
  (*out)->narrow = ASSAY_TYPE_UNDEFINED;
  return NULL;
}

// Elements of one type as those of another, both floats of kernels: piece by piece, since float64
// in between takes several times the room. Returns whether all are numbers that any engine rounds
// alike.
static bool convert(const assay_tensor_t* t, assay_type_t to_type, void* to) {
  enum { PIECE = 1 << 12 };
  const assay_type_t from_type = assay_tensor_lies_as(t);
  const size_t elem = to_type == ASSAY_TYPE_FLOAT ? 4 : 2;
  const bool packed = t->store != ASSAY_STORE_F64;
  bool alike = true;
#pragma omp parallel for schedule(static) reduction(&& : alike) if (t->size > 4 * CHUNK)
  for (int64_t i = 0; i < t->size; i += PIECE) {
    const int64_t n = t->size - i < PIECE ? t->size - i : PIECE;
    double piece[PIECE];
    if (packed) assay_unpack(from_type, t->data, i, n, piece);
    const double* x = packed ? piece : assay_f64(t) + i;
    bool normal = true;
    for (int64_t k = 0; k < n; k++) normal &= x[k] == 0 || fabs(x[k]) >= (double)FLT_MIN;
    assay_pack(to_type, x, n, (char*)to + (size_t)i * elem, ASSAY_OVERFLOW_IEEE);
    alike = alike && normal;
  }
  return alike;
}

assay_status_t assay_tensor_narrow(assay_tensor_t* t, assay_type_t narrow, assay_tensor_t** out) {
  assay_tensor_t* p = NULL;
  if (t->kind != ASSAY_KIND_TENSOR || t->type != ASSAY_TYPE_FLOAT || t->store == ASSAY_STORE_LATE ||
      (narrow != ASSAY_TYPE_FLOAT16 && narrow != ASSAY_TYPE_BFLOAT16))
    return ASSAY_ERROR(ASSAY_INTERNAL, "only float32 can lie in 16 bits");
  ASSAY_TRY(assay_tensor_create_packed(narrow, t->rank, t->dims, &p));
  const bool alike = convert(t, narrow, p->data);
  assay_tensor_forget(t);
  if (!alike) return assay_tensor_release(p), NULL;
  p->type = ASSAY_TYPE_FLOAT;
  p->store = ASSAY_STORE_NARROW;
  p->narrow = narrow;
  *out = p;
  return NULL;
}

assay_status_t assay_tensor_pack(assay_tensor_t* t, assay_tensor_t** out) {
  if (t->kind != ASSAY_KIND_TENSOR || t->store == ASSAY_STORE_STR)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "only tensors of numbers can be packed");
  if (t->store == ASSAY_STORE_PACKED) {
    *out = assay_tensor_retain(t);
    return NULL;
  }
  if (t->store == ASSAY_STORE_LATE) {
    assay_tensor_t* made = NULL;
    ASSAY_TRY(t->make(t->owner, &made));
    assay_status_t st = assay_tensor_pack(made, out);
    assay_tensor_release(made);
    return st;
  }
  assay_tensor_t* p = NULL;
  ASSAY_TRY(assay_tensor_create_packed(t->type, t->rank, t->dims, &p));
  if (t->store == ASSAY_STORE_NARROW) {
    (void)convert(t, t->type, p->data);
    return *out = p, NULL;
  }
  size_t elem = assay_store_elem_bytes(t->store);
#pragma omp parallel for schedule(static) if (t->size > 4 * CHUNK)
  for (int64_t i = 0; i < t->size; i += CHUNK) {
    int64_t n = t->size - i < CHUNK ? t->size - i : CHUNK, offset = 0;
    (void)assay_type_packed_bytes(t->type, i, &offset);
    assay_pack(t->type, (const char*)t->data + (size_t)i * elem, n, (char*)p->data + offset,
               ASSAY_OVERFLOW_IEEE);
  }
  *out = p;
  return NULL;
}

assay_status_t assay_tensor_copy(const assay_tensor_t* t, assay_tensor_t** out) {
  assay_tensor_t* c = NULL;
  assay_status_t st = NULL;
  if (t->kind != ASSAY_KIND_TENSOR)
    return ASSAY_ERROR(ASSAY_INTERNAL, "only tensors can be copied");
  if (t->store == ASSAY_STORE_LATE) return t->make(t->owner, out);
  if (t->store == ASSAY_STORE_PACKED || t->store == ASSAY_STORE_NARROW) {
    const assay_type_t type = assay_tensor_lies_as(t);
    ASSAY_TRY(assay_tensor_create_packed(type, t->rank, t->dims, &c));
    int64_t bytes = 0;
    (void)assay_type_packed_bytes(type, t->size, &bytes);
    if (bytes) memcpy(c->data, t->data, (size_t)bytes);
    c->type = t->type;
    c->store = t->store;
    c->narrow = t->narrow;
  } else {
    ASSAY_TRY(assay_tensor_create(t->type, t->rank, t->dims, &c));
    if (t->store == ASSAY_STORE_STR) {
      const assay_string_t* s = assay_strings(t);
      for (int64_t i = 0; i < t->size && !st; i++)
        st = assay_tensor_set_string(c, i, s[i].text, s[i].len);
      if (st) return assay_tensor_release(c), st;
    } else if (t->size) {
      memcpy(c->data, t->data, (size_t)t->size * assay_store_elem_bytes(t->store));
    }
  }
  *out = c;
  return NULL;
}

double assay_tensor_element(const assay_tensor_t* t, int64_t i) {
  double x = 0;
  int64_t integer = 0;
  if (t->store == ASSAY_STORE_F64) return assay_f64(t)[i];
  if (t->store == ASSAY_STORE_I64) return (double)assay_i64(t)[i];
  const bool real = assay_type_store(t->type) == ASSAY_STORE_F64;
  assay_unpack(assay_tensor_lies_as(t), t->data, i, 1, real ? (void*)&x : (void*)&integer);
  return real ? x : (double)integer;
}

// ---- small tensors, strings, containers -------------------------------------------------------

assay_status_t assay_tensor_scalar_f64(assay_type_t type, double x, assay_tensor_t** out) {
  ASSAY_TRY(assay_tensor_create(type, 0, NULL, out));
  assay_f64(*out)[0] = x;
  return NULL;
}

assay_status_t assay_tensor_scalar_i64(assay_type_t type, int64_t x, assay_tensor_t** out) {
  ASSAY_TRY(assay_tensor_create(type, 0, NULL, out));
  assay_i64(*out)[0] = x;
  return NULL;
}

assay_status_t assay_tensor_vector_i64(assay_type_t type, int64_t n, const int64_t* x,
                                       assay_tensor_t** out) {
  ASSAY_TRY(assay_tensor_create(type, 1, &n, out));
  if (n) memcpy((*out)->data, x, (size_t)n * sizeof *x);
  return NULL;
}

assay_status_t assay_tensor_set_string(assay_tensor_t* t, int64_t i, const char* text, size_t len) {
  char* copy = len < SIZE_MAX ? assay_malloc(len + 1) : NULL;
  if (!copy) return assay_status_no_memory();
  if (len) memcpy(copy, text, len);
  copy[len] = 0;
  assay_string_t* s = &assay_strings(t)[i];
  assay_free((void*)(uintptr_t)s->text);
  *s = (assay_string_t){copy, len};
  return NULL;
}

// Views retain whose bytes they show, and borrowed bytes have no owner.
bool assay_tensor_is_sole(const assay_tensor_t* t) {
  return atomic_load_explicit(&t->refs, memory_order_acquire) == 1 &&
         t->kind == ASSAY_KIND_TENSOR && !t->release && t->owner == t->data;
}

assay_status_t assay_container_unshare(assay_tensor_t** t) {
  if (atomic_load_explicit(&(*t)->refs, memory_order_acquire) == 1) return NULL;
  assay_tensor_t* own = NULL;
  ASSAY_TRY(create_container((*t)->kind, (*t)->type, (*t)->n_items, (*t)->items, &own));
  assay_tensor_release(*t);
  *t = own;
  return NULL;
}

assay_status_t assay_sequence_create(assay_type_t type, int64_t n, assay_tensor_t* const* items,
                                     assay_tensor_t** out) {
  return create_container(ASSAY_KIND_SEQUENCE, type, n, items, out);
}

assay_status_t assay_optional_create(assay_type_t type, assay_tensor_t* item_or_null,
                                     assay_tensor_t** out) {
  return create_container(ASSAY_KIND_OPTIONAL, type, item_or_null ? 1 : 0, &item_or_null, out);
}

assay_status_t assay_map_create(assay_tensor_t* keys, assay_tensor_t* values,
                                assay_tensor_t** out) {
  assay_tensor_t* both[2] = {keys, values};
  return create_container(ASSAY_KIND_MAP, keys->type, 2, both, out);
}
