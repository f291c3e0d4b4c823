// Graph outputs over all samples: the engine's against truth and golden, and whether they do.
#ifndef ASSAY_ACCURACY_OUTPUTS_H_
#define ASSAY_ACCURACY_OUTPUTS_H_

#include "accuracy/require.h"
#include "accuracy/script.h"
#include "truth/machine.h"

// How quantized integers differ from truth's, in steps; sums are of float64.
typedef struct assay_step_sum {
  int64_t n, largest;             // elements; the largest difference
  double difference2, sum, sum2;  // sums: of squared differences, of truth, of its squares
} assay_step_sum_t;

// One graph output over all samples.
typedef struct assay_output_check {
  const assay_value_t* value;
  assay_error_sum_t error;          // engine against truth
  assay_error_sum_t golden;         // truth against golden, if has_golden
  assay_error_sum_t engine_golden;  // engine against golden
  bool has_golden, is_float, faithful;
  bool quantized;            // integers that stand for numbers: made by quantizing
  int64_t differing;         // elements, where not float
  assay_step_sum_t steps;    // of differing, where quantized
  int64_t rows, top1, top5;  // along the last dimension: how many; with the same largest
                             // element, the same five largest in any order
} assay_output_check_t;

// Statistics for each output of a graph, empty (assay_free).
assay_status_t assay_outputs_create(const assay_graph_t* g,
                                    assay_output_check_t** out) ASSAY_MUST_USE;
// Adds one sample of one output: canonical tensors. NULL: nothing is added.
void assay_output_add(assay_output_check_t* o, const assay_tensor_t* engine,
                      const assay_tensor_t* truth);
// The same against golden; exported: truth that golden is held against.
assay_status_t assay_output_add_golden(assay_output_check_t* o, const assay_tensor_t* engine,
                                       const assay_tensor_t* exported,
                                       assay_tensor_t* golden) ASSAY_MUST_USE;
// Whether the statistics of all outputs meet what is required; each is told, too. require may be
// NULL: cosine at least 0.999, the same NaN and infinities.
bool assay_outputs_hold(assay_output_check_t* outputs, size_t n,
                        const assay_requirements_t* require);
// Asks the user's commands; what they have against the outputs is appended to *unmet (may be NULL).
assay_status_t assay_outputs_ask(const assay_requirements_t* require,
                                 const assay_script_data_t* data, bool* out_yes,
                                 assay_str_t* unmet) ASSAY_MUST_USE;

// Whether a model has operators that quantize: golden is then that of the network before, and truth
// without quantization is held against it, so that the quantization's error is not taken for the
// export's.
bool assay_model_quantizes(const assay_model_t* m);
// Truth without quantization; NULL inputs have initializers. The machine holds the outputs.
assay_status_t assay_truth_unquantized(const assay_model_t* m, assay_tensor_t* const* inputs,
                                       assay_machine_t** out) ASSAY_MUST_USE;

#endif  // ASSAY_ACCURACY_OUTPUTS_H_
