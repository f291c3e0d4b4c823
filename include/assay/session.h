// Sessions: a model being run.
#ifndef ASSAY_SESSION_H_
#define ASSAY_SESSION_H_

#include <assay/model.h>
#include <assay/tensor.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum assay_run_mode {
  ASSAY_RUN_NATIVE = 0,  // every node's outputs rounded to the types that the model declares
  ASSAY_RUN_TRUTH,       // float64 whatever the types say; integers exactly
  ASSAY_RUN_PLAN,        // a plan on the emu backend, in the precision asked for
} assay_run_mode_t;

typedef struct assay_session_options {
  size_t struct_size;
  assay_run_mode_t mode;
  assay_format_t precision;     // PLAN: of float32 values; NONE: as declared; INT8: of a model
                                // that quantizes, as declared
  assay_format_t accumulator;   // PLAN: what sums are kept in; NONE: fp32
  const char* layer_precision;  // PLAN: "PATTERN:FORMAT,..."; NULL: none
  uint64_t seed;                // of random operators
  bool unquantized;             // TRUTH: quantizers, QLinear operators too, are the identity
} assay_session_options_t;
#define ASSAY_SESSION_OPTIONS_INIT                                                                 \
  {                                                                                                \
    sizeof(assay_session_options_t), ASSAY_RUN_NATIVE, ASSAY_FORMAT_NONE, ASSAY_FORMAT_NONE, 0, 0, \
        0                                                                                          \
  }

typedef struct assay_session assay_session_t;

// options may be NULL. The session holds a reference to the model.
// Errors: NOT_FOUND a pattern that matches nothing; INVALID_ARGUMENT a format that is not a float;
// UNSUPPORTED operators that are not known, INT8 of a model without quantizers
ASSAY_API assay_status_t assay_session_create(assay_model_t* model,
                                              const assay_session_options_t* options,
                                              assay_session_t** out);
ASSAY_API void assay_session_destroy(assay_session_t* session);  // NULL is allowed

// Runs once. inputs[i] is for assay_model_input_name(i); outputs[i] (of assay_model_output_count)
// get one reference each, NULL where the model leaves an optional output empty. On failure outputs
// are untouched.
// Errors: INVALID_ARGUMENT shapes or types that the model does not take; UNSUPPORTED; NO_MEMORY
// Threads: one call per session at a time; sessions are independent
ASSAY_API assay_status_t assay_session_run(assay_session_t* session, size_t n_inputs,
                                           assay_tensor_t* const* inputs, size_t n_outputs,
                                           assay_tensor_t** outputs);

#ifdef __cplusplus
}
#endif
#endif  // ASSAY_SESSION_H_
