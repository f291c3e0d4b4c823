// Element types and number formats.
#ifndef ASSAY_TYPES_H_
#define ASSAY_TYPES_H_

#include <assay/export.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

// The element type of a tensor. Numbers as in ONNX's TensorProto.DataType.
typedef enum assay_type {
  ASSAY_TYPE_UNDEFINED = 0,
  ASSAY_TYPE_FLOAT = 1,
  ASSAY_TYPE_UINT8 = 2,
  ASSAY_TYPE_INT8 = 3,
  ASSAY_TYPE_UINT16 = 4,
  ASSAY_TYPE_INT16 = 5,
  ASSAY_TYPE_INT32 = 6,
  ASSAY_TYPE_INT64 = 7,
  ASSAY_TYPE_STRING = 8,
  ASSAY_TYPE_BOOL = 9,
  ASSAY_TYPE_FLOAT16 = 10,
  ASSAY_TYPE_DOUBLE = 11,
  ASSAY_TYPE_UINT32 = 12,
  ASSAY_TYPE_UINT64 = 13,
  ASSAY_TYPE_COMPLEX64 = 14,
  ASSAY_TYPE_COMPLEX128 = 15,
  ASSAY_TYPE_BFLOAT16 = 16,
  ASSAY_TYPE_FLOAT8E4M3FN = 17,
  ASSAY_TYPE_FLOAT8E4M3FNUZ = 18,
  ASSAY_TYPE_FLOAT8E5M2 = 19,
  ASSAY_TYPE_FLOAT8E5M2FNUZ = 20,
  ASSAY_TYPE_UINT4 = 21,
  ASSAY_TYPE_INT4 = 22,
  ASSAY_TYPE_FLOAT4E2M1 = 23,
  ASSAY_TYPE_FLOAT8E8M0 = 24,
  ASSAY_TYPE_UINT2 = 25,
  ASSAY_TYPE_INT2 = 26,
  ASSAY_TYPE_FLOAT6E2M3 = 27,
  ASSAY_TYPE_FLOAT6E3M2 = 28,
  ASSAY_TYPE_COUNT = 29,
} assay_type_t;

// A number format: what a layer computes in or stores.
typedef enum assay_format {
  ASSAY_FORMAT_NONE = 0,  // not a number: strings
  ASSAY_FORMAT_FP64,
  ASSAY_FORMAT_FP32,
  ASSAY_FORMAT_TF32,
  ASSAY_FORMAT_BF16,
  ASSAY_FORMAT_FP16,
  ASSAY_FORMAT_FP8E4M3,      // E4M3FN: no infinities
  ASSAY_FORMAT_FP8E4M3FNUZ,  // no infinities, no negative zero
  ASSAY_FORMAT_FP8E5M2,
  ASSAY_FORMAT_FP8E5M2FNUZ,
  ASSAY_FORMAT_FP8E8M0,  // a power of two; no sign, no zero
  ASSAY_FORMAT_FP6E2M3,  // no infinities, no NaN
  ASSAY_FORMAT_FP6E3M2,
  ASSAY_FORMAT_FP4E2M1,
  ASSAY_FORMAT_INT64,
  ASSAY_FORMAT_INT32,
  ASSAY_FORMAT_INT16,
  ASSAY_FORMAT_INT8,
  ASSAY_FORMAT_INT4,
  ASSAY_FORMAT_INT2,
  ASSAY_FORMAT_UINT64,
  ASSAY_FORMAT_UINT32,
  ASSAY_FORMAT_UINT16,
  ASSAY_FORMAT_UINT8,
  ASSAY_FORMAT_UINT4,
  ASSAY_FORMAT_UINT2,
  ASSAY_FORMAT_BOOL,
  ASSAY_FORMAT_COUNT,
} assay_format_t;

// What may serve layers of fp32 besides plain chains of fused multiply-adds, where it is faster.
typedef enum assay_fp32 {
  // What errs at most twice as much, root mean square: Winograd F(2,3), six products of bf16 parts
  ASSAY_FP32_TIGHT = 0,
  ASSAY_FP32_PLAIN,  // nothing
  // Also what stays, with six standard deviations, within the guaranteed bound of sums of fp32 in
  // any order: Winograd F(4,3), three products of bf16 parts
  ASSAY_FP32_BOUND,
} assay_fp32_t;

// Whether a plan is the model as it is, a layer a node, or as the passes rewrite it: several nodes
// in a layer.
typedef enum assay_fusion {
  ASSAY_FUSION_TARGET = 0,  // what fits the purpose and the target: each options struct says it
  ASSAY_FUSION_ON,
  ASSAY_FUSION_OFF,
} assay_fusion_t;

// The name that ONNX uses in text, such as "float", "bfloat16", "int64"; "undefined" if unknown.
ASSAY_API const char* assay_type_name(assay_type_t type);

// Whether a type's elements are real floating-point numbers: float64 down to float4.
ASSAY_API bool assay_type_is_float(assay_type_t type);

// The name that Assay uses, such as "fp16", "int8"; "none" if unknown.
ASSAY_API const char* assay_format_name(assay_format_t format);
// The format of a name ("fp16", "float16", "half", "bf16" ...), NONE if unknown.
ASSAY_API assay_format_t assay_format_parse(const char* name);
// Whether a format's values are floating-point numbers.
ASSAY_API bool assay_format_is_float(assay_format_t format);

// Told how far long work is: what is being done, and which part of it, 0 to 1. What it gets is
// valid during the call, which is in the thread that works.
typedef void assay_progress_fn_t(void* user, const char* what, double fraction);

#ifdef __cplusplus
}
#endif
#endif  // ASSAY_TYPES_H_
