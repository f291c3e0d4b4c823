// Texts that several outputs of trtexec have in common.
#ifndef ASSAY_FRONTENDS_TRTEXEC_TEXT_H_
#define ASSAY_FRONTENDS_TRTEXEC_TEXT_H_

#include "base/str.h"
#include "exec/backend.h"

// "1x3x224x224"; "" for rank 0.
void trt_put_dims(assay_str_t* out, int rank, const int64_t* dims);
// A string of JSON, with its quotes.
void trt_put_json(assay_str_t* out, const char* text);
// Element i of a canonical tensor, with as many digits as it takes to read it back.
void trt_put_element(assay_str_t* out, const assay_tensor_t* t, int64_t i);
// The name of a layer: its nodes', with " + " between; of a profile but the first, that after it.
void trt_put_layer_name(assay_str_t* out, const assay_layer_t* l, int profile);
// Writes a text that was put together without checks, and frees it.
assay_status_t trt_write_text(const char* flag, const char* path,
                              assay_str_t* take_text) ASSAY_MUST_USE;

#endif  // ASSAY_FRONTENDS_TRTEXEC_TEXT_H_
