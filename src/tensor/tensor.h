// Host tensors, and the sequences, optionals and maps of them that ONNX has.
//
// A tensor has an element type (what the model says) and a store (how the elements lie in memory):
//
//   store   element                  for
//   F64     double                   every float type; what kernels read and write
//   I64     int64_t                  every integer type and bool (0 or 1); uint64 by its bits
//   C128    double[2]                complex types
//   STR     assay_string_t           strings
//   PACKED  as in ONNX's raw_data    weights as they lie in the file, inputs as they came
//   LATE    none yet                 one of many samples: made each time that the tensor is widened
//   NARROW  float16 or bfloat16       float32 constants of a plan file that 16 bits hold
//
// The first four are called canonical. Elements are contiguous, row-major, always.
#ifndef ASSAY_TENSOR_TENSOR_H_
#define ASSAY_TENSOR_TENSOR_H_

#include <assay/tensor.h>
#include <assay/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum { ASSAY_MAX_RANK = 32 };

typedef enum assay_store {
  ASSAY_STORE_F64 = 0,
  ASSAY_STORE_I64,
  ASSAY_STORE_C128,
  ASSAY_STORE_STR,
  ASSAY_STORE_PACKED,
  ASSAY_STORE_LATE,
  ASSAY_STORE_NARROW,
} assay_store_t;

// Makes the elements of a tensor of store LATE: a canonical one of its type and shape.
typedef assay_status_t assay_tensor_make_t(void* owner, assay_tensor_t** out);

typedef struct assay_string {
  const char* text;  // not NUL-terminated for sure; may hold NULs
  size_t len;
} assay_string_t;

// Counted and, once shared, not changed. Fields are read freely; only src/tensor writes them,
// and a kernel writes the elements of the outputs that it creates.
struct assay_tensor {
  _Atomic int refs;
  assay_kind_t kind;
  // TENSOR. For the other kinds `type` is the element type of the tensors within, or UNDEFINED.
  assay_type_t type;
  assay_store_t store;
  assay_type_t narrow;  // of store NARROW: FLOAT16 or BFLOAT16; its `type` is FLOAT
  int rank;
  int64_t dims[ASSAY_MAX_RANK];
  int64_t size;  // elements; 1 for a scalar
  void* data;    // never NULL, even without elements
  // SEQUENCE: n items. OPTIONAL: 0 or 1. MAP: keys (int64 or string, 1-D) and values (1-D).
  struct assay_tensor** items;
  int64_t n_items;
  assay_tensor_make_t* make;  // of store LATE
  // Who owns the bytes.
  void (*release)(void* owner);  // NULL: owner was allocated with assay_malloc, or is NULL
  void* owner;
};

// The store that holds a type canonically.
assay_store_t assay_type_store(assay_type_t type);
// Bytes of one canonical element.
size_t assay_store_elem_bytes(assay_store_t store);

// A canonical tensor whose elements are not set (strings: empty). Dims are checked: each 0 or
// more, the product and its bytes not past what the machine can hold.
assay_status_t assay_tensor_create(assay_type_t type, int rank, const int64_t* dims,
                                   assay_tensor_t** out) ASSAY_MUST_USE;
// The same, zeroed.
assay_status_t assay_tensor_create_zero(assay_type_t type, int rank, const int64_t* dims,
                                        assay_tensor_t** out) ASSAY_MUST_USE;
// A packed tensor over `data`, which is not copied. With `release`, one claim on `owner` goes over
// to
// the tensor: release(owner) is called once, when the tensor dies, or at once if this fails.
// Without (NULL), the bytes are borrowed: `owner` is not looked at, nothing is freed, and the
// caller keeps them alive and unchanged until the last reference to the tensor or to a view of it
// is gone. bytes must be exactly what the shape takes: CORRUPT otherwise. data may be NULL if that
// is 0.
assay_status_t assay_tensor_wrap_packed(assay_type_t type, int rank, const int64_t* dims,
                                        const void* data, int64_t bytes,
                                        void (*release)(void* owner), void* owner,
                                        assay_tensor_t** out) ASSAY_MUST_USE;
// A packed tensor with room of its own, elements not set.
assay_status_t assay_tensor_create_packed(assay_type_t type, int rank, const int64_t* dims,
                                          assay_tensor_t** out) ASSAY_MUST_USE;
// A tensor whose elements are made when it is widened or packed, and not kept. One claim on `owner`
// goes over to it: release(owner) is called once, also if this fails.
assay_status_t assay_tensor_create_late(assay_type_t type, int rank, const int64_t* dims,
                                        assay_tensor_make_t* make, void (*release)(void* owner),
                                        void* owner, assay_tensor_t** out) ASSAY_MUST_USE;
// A float32 tensor over elements that lie as `narrow`, FLOAT16 or BFLOAT16; else as
// assay_tensor_wrap_packed.
assay_status_t assay_tensor_wrap_narrow(assay_type_t narrow, int rank, const int64_t* dims,
                                        const void* data, int64_t bytes,
                                        void (*release)(void* owner), void* owner,
                                        assay_tensor_t** out) ASSAY_MUST_USE;
// A float32 tensor rounded to such a type (ties to even, overflow to infinity) and lying so. *out
// stays NULL where not every engine rounds its elements alike: NaN has bits besides its sign, and
// numbers below float32's normal ones are zero to some.
assay_status_t assay_tensor_narrow(assay_tensor_t* t, assay_type_t narrow,
                                   assay_tensor_t** out) ASSAY_MUST_USE;
// The elements of store NARROW as a packed tensor of the type that they lie as; shares the bytes.
assay_status_t assay_tensor_narrowed(assay_tensor_t* t, assay_tensor_t** out) ASSAY_MUST_USE;
// The elements from number `first` on, under a shape of their own; shares the bytes. Errors:
// UNSUPPORTED strings and LATE tensors, or packed elements that do not begin on a whole byte.
assay_status_t assay_tensor_part(assay_tensor_t* t, int64_t first, int rank, const int64_t* dims,
                                 assay_tensor_t** out) ASSAY_MUST_USE;
// The same elements under another shape of as many elements; shares the bytes.
assay_status_t assay_tensor_view(assay_tensor_t* t, int rank, const int64_t* dims,
                                 assay_tensor_t** out) ASSAY_MUST_USE;
// The same elements under another type with the same store (for a declared type that differs).
assay_status_t assay_tensor_retype(assay_tensor_t* t, assay_type_t type,
                                   assay_tensor_t** out) ASSAY_MUST_USE;
// Canonical form: the tensor itself, retained, or a converted copy. Sequences etc. the same: with
// all that they hold canonical.
assay_status_t assay_tensor_widen(assay_tensor_t* t, assay_tensor_t** out) ASSAY_MUST_USE;
// Packed form of numbers: the tensor itself, retained, or a copy rounded to the type (ties to even,
// overflow to infinity). Errors: INVALID_ARGUMENT strings, sequences, optionals.
assay_status_t assay_tensor_pack(assay_tensor_t* t, assay_tensor_t** out) ASSAY_MUST_USE;
// For a tensor whose elements have been read and will hardly be again: where they lie in a file,
// they need not stay in memory (assay_mapping_forget).
void assay_tensor_forget(const assay_tensor_t* t);
// The same of all elements of the tensor that this one shows a part of.
void assay_tensor_forget_whole(const assay_tensor_t* t);
// For a tensor that stays for long: its elements move into a file once memory gets short (spill.h).
// Nothing where another has the tensor, or a part of it, too.
void assay_tensor_spill(assay_tensor_t* t);
// A copy in the same store that may be written.
assay_status_t assay_tensor_copy(const assay_tensor_t* t, assay_tensor_t** out) ASSAY_MUST_USE;

// Small tensors.
assay_status_t assay_tensor_scalar_f64(assay_type_t type, double x,
                                       assay_tensor_t** out) ASSAY_MUST_USE;
assay_status_t assay_tensor_scalar_i64(assay_type_t type, int64_t x,
                                       assay_tensor_t** out) ASSAY_MUST_USE;
assay_status_t assay_tensor_vector_i64(assay_type_t type, int64_t n, const int64_t* x,
                                       assay_tensor_t** out) ASSAY_MUST_USE;

// Sets an element of a string tensor to a copy of the text.
assay_status_t assay_tensor_set_string(assay_tensor_t* t, int64_t i, const char* text,
                                       size_t len) ASSAY_MUST_USE;

// Containers. The items are retained. A sequence of 0 items has the type that is given.
assay_status_t assay_sequence_create(assay_type_t type, int64_t n, assay_tensor_t* const* items,
                                     assay_tensor_t** out) ASSAY_MUST_USE;
assay_status_t assay_optional_create(assay_type_t type, assay_tensor_t* item_or_null,
                                     assay_tensor_t** out) ASSAY_MUST_USE;
assay_status_t assay_map_create(assay_tensor_t* keys, assay_tensor_t* values,
                                assay_tensor_t** out) ASSAY_MUST_USE;

// Whether a tensor, or all that a container holds, is canonical.
bool assay_tensor_is_canonical(const assay_tensor_t* t);
// Whether both are tensors (not NULL, no sequences) of the same shape; alike: and of the same
// store.
bool assay_tensor_same_shape(const assay_tensor_t* a, const assay_tensor_t* b);
bool assay_tensor_alike(const assay_tensor_t* a, const assay_tensor_t* b);
// Whether the holder of the only reference may write the elements: nobody else can see them.
bool assay_tensor_is_sole(const assay_tensor_t* t);
// Makes *t a container of the same items that may be given others: itself if nobody else holds it.
assay_status_t assay_container_unshare(assay_tensor_t** t) ASSAY_MUST_USE;

// The type as which the elements of a PACKED or NARROW tensor lie.
static inline assay_type_t assay_tensor_lies_as(const assay_tensor_t* t) {
  return t->store == ASSAY_STORE_NARROW ? t->narrow : t->type;
}
// Element i of a tensor of real numbers or integers that is F64, I64, PACKED or NARROW: for who
// reads a few.
double assay_tensor_element(const assay_tensor_t* t, int64_t i);

// Elements of canonical tensors.
static inline double* assay_f64(const assay_tensor_t* t) { return (double*)t->data; }
static inline int64_t* assay_i64(const assay_tensor_t* t) { return (int64_t*)t->data; }
static inline double* assay_c128(const assay_tensor_t* t) { return (double*)t->data; }
static inline assay_string_t* assay_strings(const assay_tensor_t* t) {
  return (assay_string_t*)t->data;
}

// Product of dims[from..to); 1 if empty. Dims of an existing tensor cannot overflow.
static inline int64_t assay_dims_product(const int64_t* dims, int from, int to) {
  int64_t p = 1;
  for (int i = from; i < to; i++) p *= dims[i];
  return p;
}

// Checked number of elements of a shape: false if a dim is negative or the product overflows.
bool assay_dims_size(int rank, const int64_t* dims, int64_t* out_size);

// "[1, 3, 224, 224]" into buffer; returns buffer.
const char* assay_dims_text(int rank, const int64_t* dims, char* buffer, size_t capacity);
#define ASSAY_DIMS_TEXT(t) assay_dims_text((t)->rank, (t)->dims, (char[512]){0}, 512)

#endif  // ASSAY_TENSOR_TENSOR_H_
