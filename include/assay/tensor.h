// Tensors that go into and come out of models: counted, immutable once made.
#ifndef ASSAY_TENSOR_H_
#define ASSAY_TENSOR_H_

#include <assay/status.h>
#include <assay/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// A tensor, or a sequence, an optional or a map of tensors.
typedef struct assay_tensor assay_tensor_t;

typedef enum assay_kind {
  ASSAY_KIND_TENSOR = 0,
  ASSAY_KIND_SEQUENCE,
  ASSAY_KIND_OPTIONAL,  // 0 or 1 item
  ASSAY_KIND_MAP,       // 2 items: keys and values, both 1-D
} assay_kind_t;

// A tensor with a copy of these elements, which lie as in ONNX's raw_data: row-major, little
// endian, 4-bit and 2-bit elements packed with the first one in the lowest bits. Not for strings.
//   dims    rank of them, each 0 or more
//   bytes   exactly what the shape takes, else INVALID_ARGUMENT
ASSAY_API assay_status_t assay_tensor_make(assay_type_t type, int rank, const int64_t* dims,
                                           const void* data, size_t bytes, assay_tensor_t** out);
// A tensor of strings; texts[i] has lengths[i] bytes and is copied.
ASSAY_API assay_status_t assay_tensor_make_strings(int rank, const int64_t* dims,
                                                   const char* const* texts, const size_t* lengths,
                                                   assay_tensor_t** out);
// A sequence or an optional of these items, which are retained. type: of the items' elements.
ASSAY_API assay_status_t assay_tensor_make_container(assay_kind_t kind, assay_type_t type,
                                                     int64_t n, assay_tensor_t* const* items,
                                                     assay_tensor_t** out);

ASSAY_API assay_tensor_t* assay_tensor_retain(assay_tensor_t* t);  // NULL is allowed; returns t
ASSAY_API void assay_tensor_release(assay_tensor_t* t);            // NULL is allowed

// What a tensor is: a sequence has the type of its items' elements, no rank and no size.
ASSAY_API assay_kind_t assay_tensor_kind(const assay_tensor_t* t);
ASSAY_API assay_type_t assay_tensor_type(const assay_tensor_t* t);
ASSAY_API int assay_tensor_rank(const assay_tensor_t* t);
ASSAY_API const int64_t* assay_tensor_dims(const assay_tensor_t* t);  // valid while t lives
ASSAY_API int64_t assay_tensor_size(const assay_tensor_t* t);         // elements

// Bytes that the elements take as in raw_data; 0 for strings and containers.
ASSAY_API size_t assay_tensor_bytes(const assay_tensor_t* t);
// The elements where they lie, if they do as in raw_data: outputs of engines' kernels, and what
// assay_tensor_make() and assay_tensor_convert() make. Valid while t lives, not to be changed while
// others have it. NULL: strings, containers, and values of the evaluator, which
// assay_tensor_convert() and assay_tensor_read() give in this form.
ASSAY_API const void* assay_tensor_data(const assay_tensor_t* t);
// Copies the elements as in raw_data, rounded to the type. bytes: assay_tensor_bytes() or more.
ASSAY_API assay_status_t assay_tensor_read(assay_tensor_t* t, void* out_data, size_t bytes);
// The elements of a tensor of floats as they were computed, in float64: truth's values are not
// rounded to the type. n: assay_tensor_size() or more.
ASSAY_API assay_status_t assay_tensor_read_f64(assay_tensor_t* t, double* out_values, size_t n);
// The same tensor in another type of floats, or in its own: elements are rounded once, to nearest,
// ties to even, past the type's range to infinity. DOUBLE keeps what was computed, as
// assay_tensor_read_f64() has it; its own type takes no more memory than assay_tensor_bytes(). One
// reference goes to the caller.
// Errors: INVALID_ARGUMENT strings or no tensor; another type, where one of the two is not of
// floats; NO_MEMORY
ASSAY_API assay_status_t assay_tensor_convert(assay_tensor_t* t, assay_type_t type,
                                              assay_tensor_t** out);
// String i, not always NUL-terminated; NULL if i is out of range. Valid while t lives.
ASSAY_API const char* assay_tensor_string(const assay_tensor_t* t, int64_t i, size_t* out_length);
// Items of a sequence, optional or map; borrowed.
ASSAY_API int64_t assay_tensor_item_count(const assay_tensor_t* t);
ASSAY_API assay_tensor_t* assay_tensor_item(const assay_tensor_t* t, int64_t i);

#ifdef __cplusplus
}
#endif
#endif  // ASSAY_TENSOR_H_
