// The range of an input's shapes that an engine is built for, and the one it is built best for. An
// engine may have several profiles; a run fits one of them with all of its inputs.
#ifndef ASSAY_RUNTIME_PROFILE_H_
#define ASSAY_RUNTIME_PROFILE_H_

#include "base/str.h"
#include "ir/ir.h"
#include "onnx/load.h"
#include "tensor/tensor.h"

enum { ASSAY_PROFILE_MAX_RANK = 8, ASSAY_MAX_PROFILES = 64 };

// What a profile says of one input.
typedef struct assay_profile {
  const char* input;
  int profile;  // which one, from 0
  // Of an input that holds a shape: what is below are its elements, in order, and not its sizes.
  bool values;
  int rank;  // how many numbers
  // 1 <= min[i] <= opt[i] <= max[i]
  int64_t min[ASSAY_PROFILE_MAX_RANK], opt[ASSAY_PROFILE_MAX_RANK], max[ASSAY_PROFILE_MAX_RANK];
} assay_profile_t;

// "1x3x224x224:4x3x224x224:8x3x224x224" (min, opt, max) or one shape for all three; values in
// brackets: "[1,3]:[4,3]:[8,3]". `input` is borrowed. Errors: INVALID_ARGUMENT.
assay_status_t assay_profile_parse(const char* input, const char* text,
                                   assay_profile_t* out) ASSAY_MUST_USE;
// INVALID_ARGUMENT unless the shape is within the range.
assay_status_t assay_profile_check(const assay_profile_t* p, int rank,
                                   const int64_t* dims) ASSAY_MUST_USE;
// Whether a tensor of this input is within the range.
bool assay_profile_takes(const assay_profile_t* p, const assay_tensor_t* t);
// Which profiles (bit i: number i) take a tensor of an input, of those that say something of it;
// `all` where none does.
uint64_t assay_profiles_take(const assay_profile_t* p, size_t n, const assay_value_t* input,
                             const assay_tensor_t* t);
// Appends " [1, 3] to [8, 3]", or " values [1, 3] to [8, 3]".
void assay_profile_print(const assay_profile_t* p, assay_str_t* out);
// The same of what a tensor has there: "[9, 3]".
void assay_profile_print_given(const assay_profile_t* p, const assay_tensor_t* t, assay_str_t* out);
// How many profiles there are: 1 + the highest number; 0 of none.
int assay_profiles_count(const assay_profile_t* p, size_t n);
// The shape of an input in all profiles, for assay_onnx_reshape: -1 where sizes differ. dims: room
// for ASSAY_PROFILE_MAX_RANK; what comes out borrows them. input NULL: the model has none, as will
// be said there.
void assay_profiles_shape(const assay_profile_t* p, size_t n, const char* name,
                          const assay_value_t* input, int64_t* dims, assay_input_shape_t* out);
// What an input says in profile number `profile`; NULL: nothing.
const assay_profile_t* assay_profiles_find(const assay_profile_t* p, size_t n, const char* input,
                                           int profile);
// A tensor of the values that a profile gives an input (min, opt or max), canonical.
assay_status_t assay_profile_values(const assay_profile_t* p, const assay_value_t* input,
                                    const int64_t* values, assay_tensor_t** out) ASSAY_MUST_USE;

#endif  // ASSAY_RUNTIME_PROFILE_H_
