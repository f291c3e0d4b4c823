// Models: read from ONNX files, checked, their types and shapes inferred.
#ifndef ASSAY_MODEL_H_
#define ASSAY_MODEL_H_

#include <assay/status.h>
#include <assay/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

// A shape of an input: rank dims; -1 keeps what the model declares.
typedef struct assay_input_shape {
  const char* name;
  int rank;
  const int64_t* dims;
} assay_input_shape_t;

// The size of all dimensions that a model calls by a name, such as "seq".
typedef struct assay_dim_size {
  const char* name;
  int64_t size;
} assay_dim_size_t;

// What sizes that a model leaves open are to be; others stay open. Shapes go before the batch.
typedef struct assay_model_options {
  size_t struct_size;
  const assay_input_shape_t* shapes;
  size_t n_shapes;
  const assay_dim_size_t* dims;
  size_t n_dims;
  int64_t batch;       // leading dimension of every input that leaves it open; 0: it stays open
  bool allow_unknown;  // operators that are not known stay as they are: such a model can be audited
                       // and edited, not run
} assay_model_options_t;
#define ASSAY_MODEL_OPTIONS_INIT \
  { sizeof(assay_model_options_t), 0, 0, 0, 0, 0, false }

// assay_model_load() with options, which may be NULL.
// Errors: as there; INVALID_ARGUMENT a shape that does not fit, a dimension that no input has
ASSAY_API assay_status_t assay_model_load_with(const char* path,
                                               const assay_model_options_t* options,
                                               assay_model_t** out);
// A model that was loaded, with what its file leaves open as the options say: sizes that were given
// when it was loaded are open again. One that was not read (assay_engine_model) has its own sizes.
// The model is not changed. options may be NULL.
// Errors:  those of assay_model_load_with()
// Threads: any
ASSAY_API assay_status_t assay_model_resize(assay_model_t* model,
                                            const assay_model_options_t* options,
                                            assay_model_t** out);
// Writes the model as it was read, or as an edit made it (assay/edit.h): functions are functions,
// and sizes that were given are open. Large initializers stay in files beside it if they came from
// such. Readers of the path see the old file or the new one.
// Errors: NOT_FOUND no such folder; UNSUPPORTED it does not come from a file or an edit
ASSAY_API assay_status_t assay_model_save(const assay_model_t* model, const char* path);
ASSAY_API assay_model_t* assay_model_retain(assay_model_t* model);
ASSAY_API void assay_model_release(assay_model_t* model);  // NULL is allowed

// What is wrong with the model though it can be run, such as an output whose declared shape is not
// the one that its node makes: line number i, which lives as long as the model; NULL past the end.
ASSAY_API const char* assay_model_warning(const assay_model_t* model, size_t i);
// The path that it was read from; "" if it was not.
ASSAY_API const char* assay_model_path(const assay_model_t* model);
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
// Whether options.batch is the size of an input's leading dimension; false if none was given.
ASSAY_API bool assay_model_batch_used(const assay_model_t* model);
// Which sizes of its inputs are open, and so 1 where inputs are made up, such as "'N', dimension 2
// of 'x'"; "": none. The caller frees the text (assay_text_free). Errors: NO_MEMORY
ASSAY_API assay_status_t assay_model_open_sizes(const assay_model_t* model, char** out);
// Whether it has operators that quantize (QuantizeLinear, QLinearConv ...): such a model may be
// asked for in INT8, which takes it as it declares.
ASSAY_API bool assay_model_quantizes(const assay_model_t* model);
// Element type of an input, UNDEFINED for sequences and the like.
ASSAY_API assay_type_t assay_model_input_elem(const assay_model_t* model, size_t i);

#ifdef __cplusplus
}
#endif
#endif  // ASSAY_MODEL_H_
