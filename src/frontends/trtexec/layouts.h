// Layouts of a caller's buffers at inputs and outputs, as TensorRT's TensorFormat has them. Within
// a plan, and wherever values have a shape of their own (npy, JSON), tensors are rows.
#ifndef ASSAY_FRONTENDS_TRTEXEC_LAYOUTS_H_
#define ASSAY_FRONTENDS_TRTEXEC_LAYOUTS_H_

#include <assay/types.h>

#include "base/alloc.h"
#include "base/str.h"

// Channels are the dimension before the last `spatial` ones; those before them are a batch.
typedef struct trt_layout {
  const char* word;  // "chw4"
  int spatial;       // dimensions after the channels: 2 or 3; 0: rows, of any rank
  int multiple;      // channels are padded with zeros to a multiple of so many
  bool last;         // all channels of a place lie together; else `multiple` of them do
} trt_layout_t;
extern const trt_layout_t trt_layouts[];  // ends with a row without word; the first one: rows

// NULL: it is none of them.
const trt_layout_t* trt_layout_find(const char* word, size_t n);
// Whether these are words of layouts, joined by '+'. flag: for messages. Errors: INVALID_ARGUMENT.
assay_status_t trt_layouts_check(const char* flag, const char* text) ASSAY_MUST_USE;
// Whether a tensor can be in a layout; rank -1: not known.
bool trt_layout_fits(const trt_layout_t* l, int rank, assay_type_t type);
// Of layouts joined by '+', which were checked, the first that tensor `name` can be in; with
// `rows_first` rows, where they are among them. rank: -1 where it is not known, which only rows
// fit. Errors: INVALID_ARGUMENT none fits.
assay_status_t trt_layout_choose(const char* flag, const char* text, const char* name, int rank,
                                 assay_type_t type, bool rows_first,
                                 const trt_layout_t** out) ASSAY_MUST_USE;

// How many elements a buffer has, with its padding; false: too many, or this rank does not fit.
bool trt_layout_elems(const trt_layout_t* l, int rank, const int64_t* dims, int64_t* out);
// Between rows of elements of so many bytes, and a buffer of trt_layout_elems of them: padding is
// written as zeros, and not read.
void trt_layout_put(const trt_layout_t* l, int rank, const int64_t* dims, size_t width,
                    const void* rows, void* out_buffer);
void trt_layout_take(const trt_layout_t* l, int rank, const int64_t* dims, size_t width,
                     const void* buffer, void* out_rows);

// As layers tell of it: "Four wide channel vectorized row major FP32 format", of type word "FP32".
void trt_layout_report(assay_str_t* out, const trt_layout_t* l, const char* type);

// ---- of a plan ----------------------------------------------------------------------------------

// An input or output whose buffer is not rows. (One value can be both.)
typedef struct trt_end {
  const char* name;
  bool output;
  const trt_layout_t* layout;
} trt_end_t;
typedef struct trt_ends {
  trt_end_t* items;
  size_t n, capacity;
} trt_ends_t;

// The name is borrowed.
assay_status_t trt_ends_add(trt_ends_t* ends, const char* name, bool output,
                            const trt_layout_t* layout) ASSAY_MUST_USE;
void trt_ends_deinit(trt_ends_t* ends);
// The layout of an input or output: rows, where nothing else is said.
const trt_layout_t* trt_ends_find(const trt_ends_t* ends, const char* name, bool output);

#endif  // ASSAY_FRONTENDS_TRTEXEC_LAYOUTS_H_
