// Experiments: what is to blame for a result, found by running a model in many ways. A layer that
// needs more precision, a node that makes samples depend on their batch.
//
//   assay_debug_t* debug;
//   assay_debug_create(model, &options, &debug);       what is wrong with the options shows here
//   assay_precision_search_t* found;
//   assay_debug_precision(debug, NULL, inputs, golden, &found);    golden may be NULL
//   if (assay_precision_search_found(found)) assay_precision_search_write_model(found, "m.onnx");
//
// A result holds a reference to what it was made by. Texts that its functions return live as long
// as the result.
#ifndef ASSAY_DEBUG_H_
#define ASSAY_DEBUG_H_

#include <assay/golden.h>
#include <assay/report.h>
#include <assay/samples.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct assay_debug assay_debug_t;  // counted, immutable

// How the model is run; as in assay_check_options_t, where a field is there, too.
typedef struct assay_debug_options {
  size_t struct_size;
  assay_format_t precision;     // of float32 values; NONE: as declared
  assay_format_t accumulator;   // NONE: fp32
  const char* layer_precision;  // "PATTERN:FORMAT,..."; NULL: none
  const char* target;           // NULL: "emu"
  assay_fusion_t fusion;
  const char* const* passes_off;
  size_t n_passes_off;
  assay_fp32_t fp32;
  const char* const* requirements;  // what outputs have to keep; none: cosine at least 0.999
  size_t n_requirements;
  bool unquantized;
  uint64_t seed;                  // of random operators, and of samples that are drawn
  const char* inject;             // for tests
  assay_progress_fn_t* progress;  // NULL: no reports of progress
  void* user;
} assay_debug_options_t;
#define ASSAY_DEBUG_OPTIONS_INIT                                                              \
  {                                                                                           \
    sizeof(assay_debug_options_t), ASSAY_FORMAT_NONE, ASSAY_FORMAT_NONE, 0, 0,                \
        ASSAY_FUSION_TARGET, 0, 0, ASSAY_FP32_TIGHT, 0, 0, false, 0, 0, 0, 0                  \
  }

// The model is retained. What options point at is read during the call only, but for `user`.
// Errors:  as of assay_check_create()
// Threads: any; of one model's experiments, one at a time
ASSAY_API assay_status_t assay_debug_create(assay_model_t* model,
                                            const assay_debug_options_t* options,
                                            assay_debug_t** out);
ASSAY_API assay_debug_t* assay_debug_retain(assay_debug_t* debug);
ASSAY_API void assay_debug_release(assay_debug_t* debug);  // NULL is allowed
// Whether a requirement is about golden, which experiments then have to be given.
ASSAY_API bool assay_debug_needs_golden(const assay_debug_t* debug);
// Whether a precision is asked for at all: by the options, or by types of 16 bits and fewer that
// the model declares.
ASSAY_API bool assay_debug_has_precision(const assay_debug_t* debug);

// What reports (report.h) call things, and how much they say; all may be NULL.
typedef struct assay_debug_report_options {
  size_t struct_size;
  const char* model;          // its path; NULL: "model"
  const char* precision;      // as the user wrote it; NULL: its name
  const char* saved_model;    // files that were written, of a precision search
  const char* saved_options;
} assay_debug_report_options_t;
#define ASSAY_DEBUG_REPORT_OPTIONS_INIT \
  { sizeof(assay_debug_report_options_t), 0, 0, 0, 0 }

// ---- precision: the layers that need more than was asked for -------------------------------------

typedef enum assay_precision_mode {
  ASSAY_PRECISION_ACCOUNT = 0,  // the fewest layers, by what truth and the account tell: at most
                                // three runs
  ASSAY_PRECISION_BISECT,       // the shortest prefix of layers that is enough, by bisection
  ASSAY_PRECISION_LINEAR,       // the same, one more layer each time
} assay_precision_mode_t;

typedef struct assay_precision_search_options {
  size_t struct_size;
  assay_precision_mode_t mode;
  bool from_end;        // prefixes begin at the last layer
  bool as_asked;        // ACCOUNT: run the model as asked also where ranges told what to keep
  const char* rebuild;  // prefixes: the model's file, to build everything anew for each run; NULL:
                        // as little as can be
} assay_precision_search_options_t;
#define ASSAY_PRECISION_SEARCH_OPTIONS_INIT \
  { sizeof(assay_precision_search_options_t), ASSAY_PRECISION_ACCOUNT, false, false, 0 }

typedef struct assay_precision_search assay_precision_search_t;  // one owner, immutable

// Looks for layers to keep in higher precision so that the outputs meet the requirements, and runs
// the model with them. Finding none is not an error.
//   options  may be NULL
//   inputs   of the model; borrowed during the call
//   golden   for requirements that are about it; NULL: none
// Errors:  INVALID_ARGUMENT inputs that do not fit the model or do not run, golden without outputs,
//          a requirement on golden without any, a mode that does not exist or does not go with the
//          other options; NO_MEMORY
ASSAY_API assay_status_t assay_debug_precision(assay_debug_t* debug,
                                               const assay_precision_search_options_t* options,
                                               const assay_samples_t* inputs,
                                               assay_golden_t* golden,
                                               assay_precision_search_t** out);
ASSAY_API void assay_precision_search_destroy(assay_precision_search_t* search);  // NULL is allowed

// Whether the model is enough as it was asked for: no layer needs more.
ASSAY_API bool assay_precision_search_enough(const assay_precision_search_t* search);
// Whether layers were found with which the outputs meet the requirements, as a run has shown.
ASSAY_API bool assay_precision_search_found(const assay_precision_search_t* search);
// The nodes to keep, also where they were not enough, and the format that they are kept in.
ASSAY_API size_t assay_precision_search_node_count(const assay_precision_search_t* search);
ASSAY_API const char* assay_precision_search_node(const assay_precision_search_t* search, size_t i);
ASSAY_API assay_format_t assay_precision_search_format(const assay_precision_search_t* search);
// Runs of the model that the search took.
ASSAY_API size_t assay_precision_search_runs(const assay_precision_search_t* search);

// The model in mixed precision, with explicit Casts.
// Errors: NOT_FOUND there are no nodes to keep; UNSUPPORTED formats other than fp16, bf16 and fp32
ASSAY_API assay_status_t
assay_precision_search_write_model(const assay_precision_search_t* search, const char* path);
// The nodes as options of `assay` (--fix-file) and of trtexec. Errors: NOT_FOUND there are none
ASSAY_API assay_status_t
assay_precision_search_write_options(const assay_precision_search_t* search, const char* path);

// TEXT and JSON, "assay.debug.precision/1". Errors: as in report.h
ASSAY_API assay_status_t assay_precision_search_report(const assay_precision_search_t* search,
                                                       assay_report_kind_t kind,
                                                       const assay_debug_report_options_t* names,
                                                       assay_report_fn_t* write, void* user);
ASSAY_API assay_status_t assay_precision_search_write_report(
    const assay_precision_search_t* search, assay_report_kind_t kind,
    const assay_debug_report_options_t* names, const char* path);

#ifdef __cplusplus
}
#endif
#endif  // ASSAY_DEBUG_H_
