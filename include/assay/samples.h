// Samples: what the inputs of a model are in one or several runs, or what its outputs should be.
#ifndef ASSAY_SAMPLES_H_
#define ASSAY_SAMPLES_H_

#include <assay/engine.h>
#include <assay/model.h>
#include <assay/tensor.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// For each sample a tensor for each input of a model (or for each output). One owner, immutable.
// Threads: reading from several at once is safe, but for assay_samples_tensor().
typedef struct assay_samples assay_samples_t;

typedef struct assay_samples_options {
  size_t struct_size;
  bool outputs;  // arrays are of the model's outputs, and none has to be there; else of its inputs
  bool partial;  // inputs without an array are allowed
  // "NAME:TYPE": the bits of an array of unsigned integers are those of this type (bf16, fp16,
  // fp8e4m3, fp8e5m2), float32 is rounded to it.
  const char* const* dtypes;
  size_t n_dtypes;
  // Images: resized to height and width, or so that the shorter side is `shorter`; cropped to the
  // middle; then each pixel of 0 to 255 becomes (pixel * scale - mean) / std. 0: not done.
  int64_t image_height, image_width, image_shorter, crop_height, crop_width;
  double image_scale;
  const double *image_mean, *image_std;  // 0, 1 or 3 (a channel each) of them
  int n_image_mean, n_image_std;
  const char* image_layout;  // "nchw", "nhwc"; NULL: as the input's shape says
} assay_samples_options_t;
#define ASSAY_SAMPLES_OPTIONS_INIT \
  { sizeof(assay_samples_options_t), false, false, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

// Reads samples from files of any format that `assay run --inputs` takes: npz, npy, safetensors,
// torch, ONNX tensors, JSON, text, raw bytes, images, folders of these. An array belongs to the
// input of its name; "NAME=FILE" gives it one. Files with other arrays complete the same samples,
// files with the same arrays are more samples. An array that holds several times what the model
// declares, or has one dimension more, is cut into samples. float64 given for float32 and the like
// is converted; assay_samples_notes() says so. The samples hold a reference to the model; files
// stay mapped, or are read again, and must not change while the samples live.
//   options   may be NULL; read during the call only
// Errors:  NOT_FOUND no such file, or an input has no array; CORRUPT not what it should be;
//          INVALID_ARGUMENT a shape or type does not fit; UNSUPPORTED no known format; NO_MEMORY
// Threads: any
ASSAY_API assay_status_t assay_samples_load(assay_model_t* model, size_t n_files,
                                            const char* const* files,
                                            const assay_samples_options_t* options,
                                            assay_samples_t** out);
// The same from tensors of the caller's, which are retained, with the names of inputs (or outputs).
// Tensor k of run r is tensors[r * n_names + k]. One run is cut into samples as a file is; several
// are a sample each, or more.
// Errors:  as there; INVALID_ARGUMENT a name that is given twice
ASSAY_API assay_status_t assay_samples_create(assay_model_t* model, size_t n_runs, size_t n_names,
                                              const char* const* names,
                                              assay_tensor_t* const* tensors,
                                              const assay_samples_options_t* options,
                                              assay_samples_t** out);
// One sample of random inputs: floats of the normal distribution, integers within the range of what
// they index. The same seed gives the same numbers. Such inputs have unrealistic ranges.
//   shapes   of inputs that are named; dimensions that stay open are 1; ranges are not looked at
// Errors:  UNSUPPORTED an input that is not a tensor of numbers; INVALID_ARGUMENT another rank
ASSAY_API assay_status_t assay_samples_random(assay_model_t* model, uint64_t seed, size_t n_shapes,
                                              const assay_engine_shape_t* shapes,
                                              assay_samples_t** out);
ASSAY_API void assay_samples_destroy(assay_samples_t* samples);  // NULL is allowed

// How many samples there are.
ASSAY_API size_t assay_samples_count(const assay_samples_t* samples);
// Tensors a sample: one for each of the model's inputs, those with an initializer among them, or
// for each of its outputs, in the model's order.
ASSAY_API size_t assay_samples_value_count(const assay_samples_t* samples);
// The name of value i; NULL past the end. Lives as long as the samples.
ASSAY_API const char* assay_samples_value_name(const assay_samples_t* samples, size_t i);
// Value i of a sample; NULL: not given, or no such value. Borrowed, valid while the samples live.
// Of many samples, asking in order lets those before leave memory.
// Threads: one call per samples at a time
ASSAY_API assay_tensor_t* assay_samples_tensor(const assay_samples_t* samples, size_t sample,
                                               size_t i);

// What a user should know of reading: arrays that are not used, types that were converted, what was
// done to images. Lines, each with a newline; "": nothing. Lives as long as the samples.
ASSAY_API const char* assay_samples_notes(const assay_samples_t* samples);
// What the first of the safetensors files that has it holds as "__metadata__": a JSON object whose
// values are strings; "": none has. Lives as long as the samples.
ASSAY_API const char* assay_samples_metadata(const assay_samples_t* samples);
// What of the samples is not finite, such as "'x' holds 3 NaN and 1 infinity"; "": all is. Goes
// over all elements. Cut off at capacity; returns out_text.
ASSAY_API const char* assay_samples_unfinite(const assay_samples_t* samples, char* out_text,
                                             size_t capacity);
// Whether an array had the name of options.dtypes[i], and how many images were read.
ASSAY_API bool assay_samples_dtype_used(const assay_samples_t* samples, size_t i);
ASSAY_API size_t assay_samples_image_count(const assay_samples_t* samples);

#ifdef __cplusplus
}
#endif
#endif  // ASSAY_SAMPLES_H_
