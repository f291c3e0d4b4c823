// Sessions: a model being run.
#ifndef ASSAY_SESSION_H_
#define ASSAY_SESSION_H_

#include <assay/engine.h>
#include <assay/model.h>
#include <assay/tensor.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum assay_run_mode {
  ASSAY_RUN_NATIVE = 0,  // every node's outputs rounded to the types that the model declares
  ASSAY_RUN_TRUTH,       // float64 whatever the types say; integers exactly
  ASSAY_RUN_PLAN,        // a plan on a target, in the precision asked for
} assay_run_mode_t;

typedef struct assay_session_options {
  size_t struct_size;
  assay_run_mode_t mode;
  assay_format_t precision;       // PLAN: of float32 values; NONE: as declared; INT8: of a model
                                  // that quantizes, as declared
  assay_format_t accumulator;     // PLAN: what sums are kept in; NONE: fp32
  const char* layer_precision;    // PLAN: "PATTERN:FORMAT,..."; NULL: none
  uint64_t seed;                  // of random operators
  bool unquantized;               // TRUTH: quantizers, QLinear operators too, are the identity
  const char* target;             // PLAN: a name that assay_target_name() gives; NULL: "emu"
  assay_fusion_t fusion;          // PLAN: TARGET: off
  const char* const* passes_off;  // PLAN: names of passes that do not run; some: it is fused
  size_t n_passes_off;
  assay_fp32_t fp32;   // PLAN: which kernels fp32 layers may use
  const char* inject;  // PLAN, for tests: a node computes something else, "NODE:FAULT"; NULL: none
  bool all_values;     // NATIVE and TRUTH: keep what every node makes, not only the outputs
  assay_progress_fn_t* progress;  // NULL: no reports of progress
  void* user;
} assay_session_options_t;
#define ASSAY_SESSION_OPTIONS_INIT                                                                 \
  {                                                                                                \
    sizeof(assay_session_options_t), ASSAY_RUN_NATIVE, ASSAY_FORMAT_NONE, ASSAY_FORMAT_NONE, 0, 0, \
        0, 0, ASSAY_FUSION_TARGET, 0, 0, ASSAY_FP32_TIGHT, 0, false, 0, 0                          \
  }

typedef struct assay_session assay_session_t;  // one owner

// options may be NULL; what they point at is read during the call only, but for `user`. The session
// holds a reference to the model.
// Errors:  NOT_FOUND a pattern or a pass that there is not; INVALID_ARGUMENT a format that is not a
//          float, a target or setting that does not exist, all_values of a plan; UNSUPPORTED
//          operators that are not known, INT8 of a model without quantizers
ASSAY_API assay_status_t assay_session_create(assay_model_t* model,
                                              const assay_session_options_t* options,
                                              assay_session_t** out);
// A session of an engine, which is retained: everything about it was settled when it was built.
// progress, user  as in the options
// Errors: UNSUPPORTED an engine that misses weights; NO_MEMORY
ASSAY_API assay_status_t assay_session_of_engine(assay_engine_t* engine,
                                                 assay_progress_fn_t* progress, void* user,
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

// Runs once and keeps what came of it until the next run. inputs[i] is for input i of the model,
// those with an initializer among them, as assay_samples_tensor() has them; NULL: not given.
// Errors and threads as there; INVALID_ARGUMENT another number of inputs
ASSAY_API assay_status_t assay_session_evaluate(assay_session_t* session, size_t n_inputs,
                                                assay_tensor_t* const* inputs);
// What a run keeps: the model's outputs in their order, or with all_values what its nodes make, in
// theirs. Names live as long as the session; NULL past the end.
ASSAY_API size_t assay_session_value_count(const assay_session_t* session);
ASSAY_API const char* assay_session_value_name(const assay_session_t* session, size_t i);
// Value i of the last run: one reference goes to the caller. NULL: it was left empty, or there was
// no run (assay_session_run() keeps nothing).
// Errors: INVALID_ARGUMENT i is out of range; NO_MEMORY
ASSAY_API assay_status_t assay_session_value(assay_session_t* session, size_t i,
                                             assay_tensor_t** out);

#ifdef __cplusplus
}
#endif
#endif  // ASSAY_SESSION_H_
