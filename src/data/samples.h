// The inputs of a run: from files or generated, one or several samples.
#ifndef ASSAY_DATA_SAMPLES_H_
#define ASSAY_DATA_SAMPLES_H_

#include <assay/samples.h>

#include "base/str.h"
#include "io/saved.h"
#include "ir/ir.h"
#include "onnx/load.h"

struct assay_samples_origin;

// Inside the library samples are held by value, and public ones (assay/samples.h) are these on the
// heap.
struct assay_samples {
  size_t n;             // samples
  size_t n_values;      // graph inputs (or outputs)
  assay_tensor_t** at;  // [sample * n_values + value]; NULL: not given (an initializer stands in)
  assay_str_t notes;    // lines for the user: arrays ignored, types converted
  struct assay_samples_origin* origin;  // of public ones (samples_public.c); NULL: not public
};

void assay_samples_deinit(assay_samples_t* s);
void assay_samples_origin_destroy(struct assay_samples_origin* origin);  // NULL is allowed
// INVALID_ARGUMENT unless these are samples of the model's inputs (or outputs): as many values, and
// of public ones the same names.
assay_status_t assay_samples_fit(const assay_samples_t* s, const assay_model_t* model,
                                 bool outputs) ASSAY_MUST_USE;
// The tensors of a sample: as they lie in their file, or made when they are widened (tensor.h).
// Whoever goes over all samples asks in order, so that those before may leave memory.
assay_tensor_t* const* assay_samples_get(const assay_samples_t* s, size_t sample);

// Cuts named arrays into samples for these values of a graph (its inputs, or its outputs for
// golden). Arrays are matched by name; others are ignored with a note. Where the model's leading
// dimension is fixed and an array holds several times as much, or has one dimension more, they are
// several samples; an array that holds one stands in all of them. float64 given for float32 and the
// like is converted with a note.
//   required  an array must be there for each value without initializer
// Errors: NOT_FOUND an input has no array; INVALID_ARGUMENT a shape or type does not fit.
assay_status_t assay_samples_from_set(const assay_set_t* set, assay_value_t* const* values,
                                      size_t n_values, bool required,
                                      assay_samples_t* out) ASSAY_MUST_USE;

// The same of several runs: their samples, one run's after the other's.
assay_status_t assay_samples_from_runs(const assay_saved_t* runs, assay_value_t* const* values,
                                       size_t n_values, bool required,
                                       assay_samples_t* out) ASSAY_MUST_USE;

// Cuts one sample of a batch into a sample for each of its rows: every tensor whose leading
// dimension the model leaves open and that holds n > 1 rows is cut, the others stand in all
// samples. n is that of the tensors, which must agree. False in *out_cut if there is nothing to
// cut; then *out is untouched.
assay_status_t assay_samples_cut_batch(const assay_samples_t* batch, assay_value_t* const* values,
                                       assay_samples_t* out, bool* out_cut) ASSAY_MUST_USE;

// One sample drawn from `seed`: normal floats, integers within the range of what they index.
// Dimensions without a number are 1.
assay_status_t assay_samples_generate(const assay_model_t* model, uint64_t seed,
                                      assay_samples_t* out) ASSAY_MUST_USE;
// The same with these shapes for the inputs that are named.
assay_status_t assay_samples_generate_shaped(const assay_model_t* model, size_t n_shapes,
                                             const assay_input_shape_t* shapes, uint64_t seed,
                                             assay_samples_t* out) ASSAY_MUST_USE;

// The number of rows that an integer input picks from, as far as Gathers that read it directly
// tell; 2 where they do not.
int64_t assay_samples_index_range(const assay_model_t* model, const assay_value_t* input);

// "3 NaN and 1 infinity"; gives `out` back.
const char* assay_unfinite_text(int64_t n_nan, int64_t n_inf, char* out, size_t size);
// Appends what of the samples is not finite: "'x' holds 3 NaN and 1 infinity"; nothing: all is.
void assay_samples_describe_unfinite(const assay_samples_t* s, assay_value_t* const* values,
                                     size_t n_values, assay_str_t* out);

#endif  // ASSAY_DATA_SAMPLES_H_
