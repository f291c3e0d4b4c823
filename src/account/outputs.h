// Graph outputs over all samples: the engine's against truth and golden, and whether they do.
#ifndef ASSAY_ACCOUNT_OUTPUTS_H_
#define ASSAY_ACCOUNT_OUTPUTS_H_

#include "account/require.h"
#include "account/verdict/slices.h"
#include "data/script.h"
#include "eval/evaluator.h"
#include "formats/exact_sum.h"

// How quantized integers differ from truth's, in steps; sums are of float64.
typedef struct assay_step_sum {
  int64_t n, largest;             // elements; the largest difference
  double difference2, sum, sum2;  // sums: of squared differences, of truth, of its squares
} assay_step_sum_t;

// The sums behind the statistics, before they are rounded: parts of the samples, joined, give all
// of them to the bit.
typedef struct assay_output_sums {
  assay_error_exact_t error, golden, engine_golden;
  assay_exact_sum_t difference2, sum, sum2;  // of steps
} assay_output_sums_t;

enum { ASSAY_OUTPUT_WHY = 120 };

// One graph output over all samples, or a part of one that a requirement is about.
typedef struct assay_output_check {
  const assay_value_t* value;
  assay_error_sum_t error;          // engine against truth
  assay_error_sum_t golden;         // truth against golden, if has_golden
  assay_error_sum_t engine_golden;  // engine against golden
  bool float_range;  // nothing of the engine is below float32: an infinity that golden has, too, is
                     // the network's then, and not what a format does to it; set by the caller
  int64_t unfinite_as_golden;  // of error.mismatched, such infinities
  // Golden is what the hardware gave that the engine is like: elements that both have, those that
  // differ, and by how many units in the last place of this format at most (infinities and NaN:
  // INT64_MAX). NONE: it is not.
  assay_format_t bits;
  int64_t bits_of, bits_differ, bits_ulps;
  bool has_golden, is_float, faithful;
  bool quantized;             // integers that stand for numbers: made by quantizing
  int64_t differing;          // elements, where not float
  assay_step_sum_t steps;     // of differing, where quantized
  int64_t rows, top1, top5;   // along the last dimension: how many; with the same largest
                              // element, the same five largest in any order
  int64_t samples, elements;  // that were added; elements: of truth
  bool unfinite_in;           // a sample's inputs hold NaN or infinities
  // Samples of which golden has the output; rows of golden that were held against several samples,
  // one after the other, and how many there are; why golden could not be compared ("": it could).
  int64_t golden_samples, golden_used, golden_rows;
  const assay_tensor_t* golden_from;  // the one that rows are taken of
  int64_t golden_at;
  char golden_why[ASSAY_OUTPUT_WHY];
  struct assay_output_check* parts;  // that requirements are about; of the same allocation
  size_t n_parts;
  assay_slices_t* slices;  // engine against golden, or truth; the caller's; NULL: none are wanted
  bool slices_of_truth;
  double part_ratio;  // of a forecast: what the parts' errors are to be resized by; 0: nothing
  const assay_slice_t* part;        // of a part: which
  char part_why[ASSAY_OUTPUT_WHY];  // why it could not be taken; "": it could
  assay_output_sums_t sums;
} assay_output_check_t;

// Statistics for each output of a graph, and after them for the parts that are required (NULL:
// none); empty (assay_free).
assay_status_t assay_output_checks_create(const assay_graph_t* g,
                                          const assay_requirements_t* require,
                                          assay_output_check_t** out) ASSAY_MUST_USE;
// Slices for the graph's outputs, which are freed by assay_outputs_free, with the statistics.
assay_status_t assay_outputs_want_slices(assay_output_check_t* outputs, size_t n,
                                         bool of_truth) ASSAY_MUST_USE;
// Keeps slices of every shape: before these samples there may be others.
void assay_outputs_keep_slices(assay_output_check_t* outputs, size_t n);
void assay_outputs_free(assay_output_check_t* outputs, size_t n);  // NULL is allowed
// Notes what entered before a sample is added.
void assay_outputs_note_inputs(assay_output_check_t* outputs, size_t n, size_t n_inputs,
                               assay_tensor_t* const* inputs);
// Adds one sample of one output: canonical tensors. NULL: nothing is added.
assay_status_t assay_output_add(assay_output_check_t* o, const assay_tensor_t* engine,
                                const assay_tensor_t* truth) ASSAY_MUST_USE;
// The same against golden, after that; exported: truth that golden is held against. Golden with
// more rows than the sample is that of several samples: each takes its rows, one after the other.
assay_status_t assay_output_add_golden(assay_output_check_t* o, const assay_tensor_t* engine,
                                       const assay_tensor_t* exported,
                                       assay_tensor_t* golden) ASSAY_MUST_USE;
// The statistics as bytes, and back: those of parts of the samples, added in the order of the
// samples to empty ones of the same model and requirements, are those of all of them, to the bit.
// Errors: UNSUPPORTED outputs of too many shapes to keep slices of each; CORRUPT.
assay_status_t assay_outputs_save_part(const assay_output_check_t* outputs, size_t n,
                                       assay_packing_t* to) ASSAY_MUST_USE;
assay_status_t assay_outputs_add_part(assay_output_check_t* outputs, size_t n,
                                      assay_packing_t* from) ASSAY_MUST_USE;
// Whether the statistics of all outputs meet what is required; each is told, too. require may be
// NULL: cosine at least 0.999, the same NaN and infinities, none of them by what came in.
bool assay_outputs_hold(assay_output_check_t* outputs, size_t n,
                        const assay_requirements_t* require);
bool assay_output_holds(const assay_output_check_t* o, const assay_requirements_t* require);
// Whether what is required cannot be judged, in whatever precision the engine runs: truth is not
// finite, golden is missing. Appends why (may be NULL).
bool assay_outputs_are_open(const assay_output_check_t* outputs, size_t n,
                            const assay_requirements_t* require, assay_str_t* why);
// Errors: INVALID_ARGUMENT no output has an element in any sample: there is nothing to judge.
assay_status_t assay_outputs_want_any(const assay_output_check_t* outputs, size_t n) ASSAY_MUST_USE;
// As if the error's energy were so many times as large.
void assay_output_resize(assay_output_check_t* o, double ratio);
// Asks the user's commands; what they have against the outputs is appended to *unmet, and what each
// said is set in met, by requirement (both may be NULL).
assay_status_t assay_outputs_ask(const assay_requirements_t* require,
                                 const assay_script_data_t* data, bool* out_yes, bool* met,
                                 assay_str_t* unmet) ASSAY_MUST_USE;

// Truth without quantization, of a model that quantizes (assay_model_quantizes): golden is then
// that of the network before, and this is held against it, so that the quantization's error is not
// taken for the export's. NULL inputs have initializers. The machine holds the outputs.
assay_status_t assay_truth_unquantized(const assay_model_t* m, assay_tensor_t* const* inputs,
                                       assay_evaluator_t** out) ASSAY_MUST_USE;

#endif  // ASSAY_ACCOUNT_OUTPUTS_H_
