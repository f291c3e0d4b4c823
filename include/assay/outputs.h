// Outputs: named tensors of one or several runs, written to files that `assay run --inputs`,
// `--golden` and other tools read.
#ifndef ASSAY_OUTPUTS_H_
#define ASSAY_OUTPUTS_H_

#include <assay/tensor.h>
#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

// One owner. Threads: one call at a time.
typedef struct assay_outputs assay_outputs_t;

// An empty set. Errors: NO_MEMORY
ASSAY_API assay_status_t assay_outputs_create(assay_outputs_t** out);
ASSAY_API void assay_outputs_destroy(assay_outputs_t* outputs);  // NULL is allowed

// Begins a run: what is added from now on is of it.
ASSAY_API assay_status_t assay_outputs_begin_run(assay_outputs_t* outputs);
// Adds a tensor, which is retained, to the last run; the name is copied.
// Errors: INVALID_ARGUMENT no run was begun, or it has that name already; NO_MEMORY
ASSAY_API assay_status_t assay_outputs_add(assay_outputs_t* outputs, const char* name,
                                           assay_tensor_t* tensor);

// What safetensors files get as "__metadata__", copied: a JSON object whose values are strings,
// such as assay_samples_metadata() of the inputs. NULL or "": none. Other formats have no place for
// it. Errors: CORRUPT anything else, or not JSON; NO_MEMORY. Then what was set before stays.
ASSAY_API assay_status_t assay_outputs_set_metadata(assay_outputs_t* outputs, const char* json);

// All runs as one: each name's arrays one after the other, along the first dimension. Of a single
// run its own tensors. The three functions below ask for it.
// Errors: INVALID_ARGUMENT arrays of one name that differ in type or in another dimension
ASSAY_API assay_status_t assay_outputs_join(assay_outputs_t* outputs);
// What came of it. Names and tensors are borrowed until the next call that changes outputs; NULL
// past the end.
ASSAY_API size_t assay_outputs_joined_count(const assay_outputs_t* outputs);
ASSAY_API const char* assay_outputs_joined_name(const assay_outputs_t* outputs, size_t i);
ASSAY_API assay_tensor_t* assay_outputs_joined_tensor(const assay_outputs_t* outputs, size_t i);

// Whether a format is known by the end of a path's name, before anything is run.
// Errors: INVALID_ARGUMENT unknown ending; the message lists the known ones
ASSAY_API assay_status_t assay_outputs_check_path(const char* path);

typedef struct assay_outputs_options {
  size_t struct_size;
  bool raw_bits;  // bfloat16 and float8 as unsigned integers of their bits, not as float32
  bool compress;  // of .npz: deflated
} assay_outputs_options_t;
#define ASSAY_OUTPUTS_OPTIONS_INIT \
  { sizeof(assay_outputs_options_t), false, false }

// Writes all runs in the format that the end of the path's name stands for: .npz .npy .safetensors
// .pb .json (Polygraphy's) .trtexec.json .txt .raw, or FOLDER/. Formats of one run get all joined.
// Files are put in place when they are complete.
//   options   may be NULL
// Errors:  INVALID_ARGUMENT no known format, runs that cannot be joined, `compress` of another
//          format; UNSUPPORTED what the format cannot hold; NOT_FOUND no such folder; NO_MEMORY
ASSAY_API assay_status_t assay_outputs_save(assay_outputs_t* outputs, const char* path,
                                            const assay_outputs_options_t* options);
// Lines for the user about the last file: types that its format lacks; "": none.
ASSAY_API const char* assay_outputs_notes(const assay_outputs_t* outputs);

#ifdef __cplusplus
}
#endif
#endif  // ASSAY_OUTPUTS_H_
