// The small languages of trtexec's values: lists of NAME:VALUE, shapes, sizes, types, patterns.
#ifndef ASSAY_FRONTENDS_TRTEXEC_SPECS_H_
#define ASSAY_FRONTENDS_TRTEXEC_SPECS_H_

#include <assay/types.h>

#include "base/alloc.h"
#include "ir/ir.h"

// NAME:VALUE. The name ends at the last ':', or stands in single quotes.
typedef struct trt_item {
  const char *name, *value;
} trt_item_t;

// Cuts at ',' outside quotes. flag: for messages. What comes out lies in the arena. Errors:
// INVALID_ARGUMENT an element without ':', without a name, or with another number of quotes than
// two.
assay_status_t trt_items_parse(assay_arena_t* arena, const char* flag, const char* text,
                               trt_item_t** out, size_t* out_n) ASSAY_MUST_USE;
// The same of a list without values.
assay_status_t trt_words_parse(assay_arena_t* arena, const char* flag, const char* text,
                               const char*** out, size_t* out_n) ASSAY_MUST_USE;

// A name may hold one '*', which matches any text; nothing else in it is special.
bool trt_has_wildcard(const char* name);
bool trt_name_matches(const char* name, const char* text);
assay_status_t trt_name_check(const char* flag, const char* name) ASSAY_MUST_USE;

// Whether a text begins like a number and is none of C's in hexadecimal digits.
bool trt_is_decimal(const char* text);

// "1x3x224x224"; "scalar" or "" for rank 0. Dimensions are positive.
assay_status_t trt_dims_parse(const char* flag, const trt_item_t* item, int* out_rank,
                              int64_t* out_dims) ASSAY_MUST_USE;

// "0.25M": B, K, M or G after it, in powers of 1024; without one, times `unit`.
assay_status_t trt_size_parse(const char* flag, const char* text, double unit,
                              uint64_t* out) ASSAY_MUST_USE;

// Percentiles, 0 to 100.
assay_status_t trt_percentiles_parse(assay_arena_t* arena, const char* flag, const char* text,
                                     double** out, size_t* out_n) ASSAY_MUST_USE;

// An element of --inputIOFormats: a type (UNDEFINED: the model's), and layouts joined by '+'.
typedef struct trt_io_format {
  assay_type_t type;
  const char* layouts;
} trt_io_format_t;
assay_status_t trt_io_formats_parse(assay_arena_t* arena, const char* flag, const char* text,
                                    trt_io_format_t** out, size_t* out_n) ASSAY_MUST_USE;

// A type of --layerPrecisions; NONE if it is none.
assay_format_t trt_layer_type(const char* word);
// As --inputIOFormats and raw files call a type: "fp32", "int64"; "" for others.
const char* trt_type_word(assay_type_t type);

// A name as part of a file's: what is not a letter, digit, '.', '_', '-' or ',' becomes '_'; of
// more than 150 characters the middle becomes "...".
void trt_file_name(const char* name, assay_str_t* out);

#endif  // ASSAY_FRONTENDS_TRTEXEC_SPECS_H_
