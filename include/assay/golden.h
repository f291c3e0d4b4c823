// Golden: what a user knows from elsewhere of a model's outputs, and of values within it.
#ifndef ASSAY_GOLDEN_H_
#define ASSAY_GOLDEN_H_

#include <assay/samples.h>

#ifdef __cplusplus
extern "C" {
#endif

// Named arrays, each held against the model's value of that name. One owner.
// Threads: a check that is given golden changes it; one at a time.
typedef struct assay_golden assay_golden_t;

typedef struct assay_golden_options {
  size_t struct_size;
  const assay_samples_options_t* reading;  // dtypes; NULL: as files are
  // A JSON file {"name in the files": "name in the model"}; '|' may stand for '/' in names. NULL:
  // names are the model's. A check matches arrays without a known name by their contents.
  const char* name_map;
} assay_golden_options_t;
#define ASSAY_GOLDEN_OPTIONS_INIT \
  { sizeof(assay_golden_options_t), 0, 0 }

// Reads outputs from a file of any format that assay_samples_load() knows: a run for each of
// n_samples samples of inputs, or rows that are cut into as many; one sample stands for all.
//   options  may be NULL; read during the call only
// Errors:  as of assay_samples_load(); INVALID_ARGUMENT it holds another number of samples, or the
//          name map's sides look exchanged; NOT_FOUND the name map names a value that the model
//          does not have
ASSAY_API assay_status_t assay_golden_load(assay_model_t* model, const char* file, size_t n_samples,
                                           const assay_golden_options_t* options,
                                           assay_golden_t** out);
// The same from several files: those with the same arrays are more samples, in their order, as the
// inputs' are; files with other arrays complete them.
// Errors:  those, and INVALID_ARGUMENT files that do not go together
ASSAY_API assay_status_t assay_golden_load_files(assay_model_t* model, size_t n_files,
                                                 const char* const* files, size_t n_samples,
                                                 const assay_golden_options_t* options,
                                                 assay_golden_t** out);
// The same from tensors of the caller's; tensor k of run r is tensors[r * n_names + k].
ASSAY_API assay_status_t assay_golden_create(assay_model_t* model, size_t n_runs, size_t n_names,
                                             const char* const* names,
                                             assay_tensor_t* const* tensors, size_t n_samples,
                                             const assay_golden_options_t* options,
                                             assay_golden_t** out);
// What another model makes of the same inputs in float64: a path of an ONNX file. Inputs and
// outputs go by name, those that are left by position. Of a single sample there are inner values,
// too.
ASSAY_API assay_status_t assay_golden_run(assay_model_t* model, const char* reference,
                                          const assay_samples_t* inputs, uint64_t seed,
                                          const assay_golden_options_t* options,
                                          assay_golden_t** out);
// Adds inner values of the first sample from a file; names that golden has already stay as they
// are. golden may be of no outputs: then it is made, and *golden was NULL.
ASSAY_API assay_status_t assay_golden_add_intermediates(assay_model_t* model, const char* file,
                                                        const assay_golden_options_t* options,
                                                        assay_golden_t** golden);
ASSAY_API void assay_golden_destroy(assay_golden_t* golden);  // NULL is allowed

// Samples of outputs: 0, if golden has inner values only, or outputs of other shapes than the
// model's, which are held against truth as they are.
ASSAY_API size_t assay_golden_count(const assay_golden_t* golden);
// Lines for the user; "": none. After a check also what was found by its contents. Valid until
// golden changes.
ASSAY_API const char* assay_golden_notes(const assay_golden_t* golden);
// Whether an array had the name of reading->dtypes[i].
ASSAY_API bool assay_golden_dtype_used(const assay_golden_t* golden, size_t i);

#ifdef __cplusplus
}
#endif
#endif  // ASSAY_GOLDEN_H_
