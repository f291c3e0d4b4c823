// Models: read from ONNX files, checked, their types and shapes inferred.
#ifndef ASSAY_MODEL_H_
#define ASSAY_MODEL_H_

#include <assay/status.h>
#include <assay/types.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct assay_model assay_model_t;  // counted

// Reads a model and makes it ready to run: checked against the operator sets that it imports, its
// functions inlined, types and shapes inferred. Weights stay in the mapped file, which must not
// change while the model lives.
// Errors: NOT_FOUND no such file; CORRUPT not valid ONNX; UNSUPPORTED operators that are not known
ASSAY_API assay_status_t assay_model_load(const char* path, assay_model_t** out);
// The same from bytes, which are copied. folder: of external data; NULL refuses external data.
ASSAY_API assay_status_t assay_model_load_bytes(const void* data, size_t size, const char* folder,
                                                assay_model_t** out);
ASSAY_API assay_model_t* assay_model_retain(assay_model_t* model);
ASSAY_API void assay_model_release(assay_model_t* model);  // NULL is allowed

// Inputs that have no initializer, and outputs, in the model's order. Names and texts live as long
// as the model; NULL past the end. Types as "float[N, 3, 224, 224]", "seq(int64[])".
ASSAY_API size_t assay_model_input_count(const assay_model_t* model);
ASSAY_API const char* assay_model_input_name(const assay_model_t* model, size_t i);
ASSAY_API assay_status_t assay_model_input_type(const assay_model_t* model, size_t i,
                                                char* out_text, size_t capacity);
ASSAY_API size_t assay_model_output_count(const assay_model_t* model);
ASSAY_API const char* assay_model_output_name(const assay_model_t* model, size_t i);
ASSAY_API assay_status_t assay_model_output_type(const assay_model_t* model, size_t i,
                                                 char* out_text, size_t capacity);
// Element type of an input, UNDEFINED for sequences and the like.
ASSAY_API assay_type_t assay_model_input_elem(const assay_model_t* model, size_t i);

#ifdef __cplusplus
}
#endif
#endif  // ASSAY_MODEL_H_
