// Experiments: what is to blame for a result, found by running a model in many ways. Layers that
// need more precision, a node that makes samples depend on their batch, a graph pass or a kernel
// that changes the result.
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

#include <assay/check.h>
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
#define ASSAY_DEBUG_OPTIONS_INIT                                               \
  {                                                                            \
    sizeof(assay_debug_options_t), ASSAY_FORMAT_NONE, ASSAY_FORMAT_NONE, 0, 0, \
        ASSAY_FUSION_TARGET, 0, 0, ASSAY_FP32_TIGHT, 0, 0, false, 0, 0, 0, 0   \
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
// Whether the plan is a fused one.
ASSAY_API bool assay_debug_is_fused(const assay_debug_t* debug);

// What reports (report.h) call things, and how much they say; all may be NULL.
typedef struct assay_debug_report_options {
  size_t struct_size;
  const char* model;        // its path; NULL: "model"
  const char* precision;    // as the user wrote it; NULL: its name
  const char* saved_model;  // files that were written, of a precision search
  const char* saved_options;
  bool all;  // TEXT: passes that change no bits, too; all layers with their tactics
} assay_debug_report_options_t;
#define ASSAY_DEBUG_REPORT_OPTIONS_INIT \
  { sizeof(assay_debug_report_options_t), 0, 0, 0, 0, false }

// ---- precision: the layers that need more than was asked for
// -------------------------------------

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
  assay_fix_choice_t fix;  // ACCOUNT: which fix is looked for (check.h)
} assay_precision_search_options_t;
#define ASSAY_PRECISION_SEARCH_OPTIONS_INIT                                             \
  {                                                                                     \
    sizeof(assay_precision_search_options_t), ASSAY_PRECISION_ACCOUNT, false, false, 0, \
        ASSAY_FIX_ANY                                                                   \
  }

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
ASSAY_API assay_status_t assay_precision_search_write_model(const assay_precision_search_t* search,
                                                            const char* path);
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

// ---- batch: the node that makes a sample's result depend on its batch ---------------------------

typedef enum assay_batch_verdict {
  ASSAY_BATCH_SOUND = 0,
  ASSAY_BATCH_BITS,    // the engine's bits differ, by no more than rounding explains
  ASSAY_BATCH_ENGINE,  // the engine's results depend on the batch
  ASSAY_BATCH_MODEL,   // truth does
} assay_batch_verdict_t;
// "sound", "bits", "engine", "model".
ASSAY_API const char* assay_batch_verdict_name(assay_batch_verdict_t verdict);

typedef struct assay_batch_search_options {
  size_t struct_size;
  const char* axis;  // the batch: a number, 0 is the first axis, or the name of an open size; NULL:
                     // one named after a batch, the first axis, or an open one
  // An engine of somebody else's, that a shell command runs for each batch, with {model} {inputs}
  // {outputs} {precision} put in, as in assay_check_use_command(). NULL: Assay's.
  const char* command;
  const char* model;  // the path that is put in for {model}
  double seconds;     // that one run may take; 0: 600
} assay_batch_search_options_t;
#define ASSAY_BATCH_SEARCH_OPTIONS_INIT \
  { sizeof(assay_batch_search_options_t), 0, 0, 0, 0 }

typedef struct assay_batch_search assay_batch_search_t;  // one owner, immutable

// Runs one sample alone and in batches of several sizes, at each place, among other samples and
// among padding: its part of every value has to stay the same. Truth is run first; the engine is
// held to what truth keeps. Requirements are not looked at.
//   options  may be NULL; read during the call only
//   inputs   of the model; samples that are missing are drawn. Borrowed during the call
// Errors:  UNSUPPORTED the model has no batch; INVALID_ARGUMENT samples that do not go together, an
//          axis that there is not, {inputs} or {outputs} are missing in the command, or it has no
//          model; DEVICE the command failed; NO_MEMORY
ASSAY_API assay_status_t assay_debug_batch(assay_debug_t* debug,
                                           const assay_batch_search_options_t* options,
                                           const assay_samples_t* inputs,
                                           assay_batch_search_t** out);
ASSAY_API void assay_batch_search_destroy(assay_batch_search_t* search);  // NULL is allowed

// What was found.
ASSAY_API assay_batch_verdict_t assay_batch_search_verdict(const assay_batch_search_t* search);
// Runs in other batches than the reference's.
ASSAY_API size_t assay_batch_search_runs(const assay_batch_search_t* search);

// A node whose inputs stay and whose result does not.
typedef struct assay_batch_node {
  size_t struct_size;
  const char *name, *op;  // "": a batch that the model allows does not run
  const char* why;
  bool guilty;    // the first of the worst
  bool in_truth;  // the model itself; else the engine
  bool rounding;  // of the engine: no more than rounding explains
  bool declared;  // what the model declares anyway, or never promised: no fault
  double moved;   // the largest difference, as a part of the largest value; NaN: not known
} assay_batch_node_t;
#define ASSAY_BATCH_NODE_INIT \
  { sizeof(assay_batch_node_t), 0, 0, 0, false, false, false, false, 0 }
ASSAY_API size_t assay_batch_search_node_count(const assay_batch_search_t* search);
// Errors: INVALID_ARGUMENT i is out of range. struct_size says how much the caller can hold.
ASSAY_API assay_status_t assay_batch_search_node(const assay_batch_search_t* search, size_t i,
                                                 assay_batch_node_t* out);

// TEXT and JSON, "assay.debug.batch/1". Errors: as in report.h
ASSAY_API assay_status_t assay_batch_search_report(const assay_batch_search_t* search,
                                                   assay_report_kind_t kind,
                                                   const assay_debug_report_options_t* names,
                                                   assay_report_fn_t* write, void* user);
ASSAY_API assay_status_t assay_batch_search_write_report(const assay_batch_search_t* search,
                                                         assay_report_kind_t kind,
                                                         const assay_debug_report_options_t* names,
                                                         const char* path);

// ---- passes: the graph pass that changes the result ---------------------------------------------

typedef enum assay_pass_effect {
  ASSAY_EFFECT_NONE = 0,  // the same bits
  ASSAY_EFFECT_ROUNDING,  // what rounding explains
  ASSAY_EFFECT_COARSER,   // the outputs do, but their error has grown several times
  ASSAY_EFFECT_ENGINE,    // truth stays, but the engine's outputs do not do any more
  ASSAY_EFFECT_TRUTH,     // truth changes by more than rounding explains: a defect of the pass
} assay_pass_effect_t;
// "none", "rounding", "coarser", "engine", "truth".
ASSAY_API const char* assay_pass_effect_name(assay_pass_effect_t effect);

typedef struct assay_pass_search assay_pass_search_t;  // one owner, immutable

// Switches the passes that do something to the model on, one after the other, and holds what comes
// of each against what there was before. The plan is to be a fused one (assay_debug_options_t).
// Parameters and errors are those of assay_debug_precision(); INVALID_ARGUMENT the plan is not
// fused.
ASSAY_API assay_status_t assay_debug_passes(assay_debug_t* debug, const assay_samples_t* inputs,
                                            assay_golden_t* golden, assay_pass_search_t** out);
ASSAY_API void assay_pass_search_destroy(assay_pass_search_t* search);  // NULL is allowed

// The number of the first pass whose effect is ENGINE or TRUTH; assay_pass_search_count(): none.
ASSAY_API size_t assay_pass_search_guilty(const assay_pass_search_t* search);

// What came of one pass more.
typedef struct assay_pass_step {
  size_t struct_size;
  const char* pass;  // its name; NULL: the first step, without any
  assay_pass_effect_t effect;
  size_t changes;      // that it made, with all passes on
  size_t layers;       // of the plan
  double truth_moved;  // the largest difference of an output, as a part of its largest value
  bool faithful;       // the outputs meet the requirements
} assay_pass_step_t;
#define ASSAY_PASS_STEP_INIT \
  { sizeof(assay_pass_step_t), 0, ASSAY_EFFECT_NONE, 0, 0, 0, false }
ASSAY_API size_t assay_pass_search_count(const assay_pass_search_t* search);
// Errors: INVALID_ARGUMENT i is out of range. struct_size says how much the caller can hold.
ASSAY_API assay_status_t assay_pass_search_step(const assay_pass_search_t* search, size_t i,
                                                assay_pass_step_t* out);
// Of the guilty pass: nodes that it changed where the result changes; NULL past the end.
ASSAY_API size_t assay_pass_search_node_count(const assay_pass_search_t* search);
ASSAY_API const char* assay_pass_search_node(const assay_pass_search_t* search, size_t i);

// TEXT and JSON, "assay.debug.passes/1". Errors: as in report.h
ASSAY_API assay_status_t assay_pass_search_report(const assay_pass_search_t* search,
                                                  assay_report_kind_t kind,
                                                  const assay_debug_report_options_t* names,
                                                  assay_report_fn_t* write, void* user);
ASSAY_API assay_status_t assay_pass_search_write_report(const assay_pass_search_t* search,
                                                        assay_report_kind_t kind,
                                                        const assay_debug_report_options_t* names,
                                                        const char* path);

// ---- tactics: each layer by all kernels that take it --------------------------------------------

typedef enum assay_tactic_fault {
  ASSAY_TACTIC_SOUND = 0,
  ASSAY_TACTIC_OUTLYING,  // within the bound, but far from what reruns show
  ASSAY_TACTIC_INVALID,   // NaN where truth is finite
  ASSAY_TACTIC_BEYOND,    // more error than rounding can make, or another shape
} assay_tactic_fault_t;
// "sound", "outlying", "invalid", "beyond bound".
ASSAY_API const char* assay_tactic_fault_name(assay_tactic_fault_t fault);

typedef struct assay_tactic_search_options {
  size_t struct_size;
  const char* layer;  // a pattern for names of layers, nodes and outputs; NULL: all
  bool untimed;       // do not measure how long each takes
} assay_tactic_search_options_t;
#define ASSAY_TACTIC_SEARCH_OPTIONS_INIT \
  { sizeof(assay_tactic_search_options_t), 0, false }

typedef struct assay_tactic_search assay_tactic_search_t;  // one owner, immutable

// Runs each layer by all tactics that take it, on the layer's real inputs, and judges each by the
// bound of its own way of rounding. Requirements are not looked at.
//   options  may be NULL; read during the call only
// Errors:  UNSUPPORTED the target has but one way to run a layer; NOT_FOUND no layer has the name;
//          INVALID_ARGUMENT inputs that do not fit the model; NO_MEMORY
ASSAY_API assay_status_t assay_debug_tactics(assay_debug_t* debug,
                                             const assay_tactic_search_options_t* options,
                                             const assay_samples_t* inputs,
                                             assay_tactic_search_t** out);
ASSAY_API void assay_tactic_search_destroy(assay_tactic_search_t* search);  // NULL is allowed

// Tactics that are at fault, over all layers.
ASSAY_API size_t assay_tactic_search_fault_count(const assay_tactic_search_t* search);

// A layer by one tactic.
typedef struct assay_tactic_trial {
  size_t struct_size;
  const char* layer;
  const char *tactic, *source;  // "onednn_conv", "onednn"
  assay_tactic_fault_t fault;
  bool chosen;      // by the plan
  bool same_bits;   // as the plan's
  double seconds;   // NaN: not measured
  double rms, max;  // error against truth on the same inputs
} assay_tactic_trial_t;
#define ASSAY_TACTIC_TRIAL_INIT \
  { sizeof(assay_tactic_trial_t), 0, 0, 0, ASSAY_TACTIC_SOUND, false, false, 0, 0, 0 }
ASSAY_API size_t assay_tactic_search_count(const assay_tactic_search_t* search);
// Errors: INVALID_ARGUMENT i is out of range. struct_size says how much the caller can hold.
ASSAY_API assay_status_t assay_tactic_search_trial(const assay_tactic_search_t* search, size_t i,
                                                   assay_tactic_trial_t* out);

// TEXT and JSON, "assay.debug.tactics/1". Errors: as in report.h
ASSAY_API assay_status_t assay_tactic_search_report(const assay_tactic_search_t* search,
                                                    assay_report_kind_t kind,
                                                    const assay_debug_report_options_t* names,
                                                    assay_report_fn_t* write, void* user);
ASSAY_API assay_status_t assay_tactic_search_write_report(const assay_tactic_search_t* search,
                                                          assay_report_kind_t kind,
                                                          const assay_debug_report_options_t* names,
                                                          const char* path);

// ---- reduction: the smallest part of a model that still fails -----------------------------------

typedef enum assay_reduce_verdict {
  ASSAY_REDUCE_REDUCED = 0,
  ASSAY_REDUCE_WHOLE,  // it fails, and no part of it was found that does
  ASSAY_REDUCE_SOUND,  // nothing fails
} assay_reduce_verdict_t;
// A word for reports.
ASSAY_API const char* assay_reduce_verdict_name(assay_reduce_verdict_t verdict);

typedef struct assay_reduction_options {
  size_t struct_size;
  // The caller's own judge in place of the requirements: a shell command with {model} {inputs}
  // {golden} {outputs} put in (files); exit code 0: it does not fail. NULL: none.
  const char* judge;
  double judge_seconds;  // that one run may take; 0: 600
  double seconds;        // begin no new part after them; 0: 60
  // An engine of somebody else's, as in assay_batch_search_options_t, that runs every part.
  const char* command;
  const char* model;
  double command_seconds;
} assay_reduction_options_t;
#define ASSAY_REDUCTION_OPTIONS_INIT \
  { sizeof(assay_reduction_options_t), 0, 0, 0, 0, 0, 0 }

typedef struct assay_reduction assay_reduction_t;  // one owner, immutable

// Cuts the model to what is needed for the failure, and runs each part. A model that does not fail
// is not an error.
//   options  may be NULL; read during the call only
//   golden   outputs, and inner values to cut at; where truth misses them, the export's fault is
//            reduced. NULL: none
// Errors:  INVALID_ARGUMENT inputs that do not fit the model or do not run, a judge that reads
//          neither {model} nor {outputs}, a requirement on golden, a command as in
//          assay_debug_batch(); DEVICE a judge or a command that cannot be run; NO_MEMORY
ASSAY_API assay_status_t assay_debug_reduce(assay_debug_t* debug,
                                            const assay_reduction_options_t* options,
                                            const assay_samples_t* inputs,
                                            const assay_golden_t* golden, assay_reduction_t** out);
ASSAY_API void assay_reduction_destroy(assay_reduction_t* reduction);  // NULL is allowed

// What was found.
ASSAY_API assay_reduce_verdict_t assay_reduction_verdict(const assay_reduction_t* reduction);
// Nodes of the part, and of the model, but for Constants; parts that were run.
ASSAY_API size_t assay_reduction_node_count(const assay_reduction_t* reduction);
ASSAY_API size_t assay_reduction_nodes_before(const assay_reduction_t* reduction);
ASSAY_API size_t assay_reduction_tries(const assay_reduction_t* reduction);
// What is wrong with the part, in words; "": nothing, or the judge did not say.
ASSAY_API const char* assay_reduction_why(const assay_reduction_t* reduction);

// Writes model.onnx, inputs.npz and golden.npz into a folder, which is made.
//   out_samples  how many samples are in the files; may be NULL
// Errors: NOT_FOUND the verdict is not REDUCED; DEVICE the folder cannot be written
ASSAY_API assay_status_t assay_reduction_write(const assay_reduction_t* reduction,
                                               const char* folder, size_t* out_samples);

// What reports call things; all may be NULL.
typedef struct assay_reduction_report_options {
  size_t struct_size;
  const char* model;      // its path; NULL: "model"
  const char* precision;  // as the user wrote it; NULL: its name
  const char* folder;     // that was written; NULL: none
  size_t samples;         // in it
  const char* command;    // that shows the failure again
} assay_reduction_report_options_t;
#define ASSAY_REDUCTION_REPORT_OPTIONS_INIT \
  { sizeof(assay_reduction_report_options_t), 0, 0, 0, 0, 0 }

// TEXT and JSON, "assay.debug.reduce/1". Errors: as in report.h
ASSAY_API assay_status_t assay_reduction_report(const assay_reduction_t* reduction,
                                                assay_report_kind_t kind,
                                                const assay_reduction_report_options_t* names,
                                                assay_report_fn_t* write, void* user);
ASSAY_API assay_status_t assay_reduction_write_report(const assay_reduction_t* reduction,
                                                      assay_report_kind_t kind,
                                                      const assay_reduction_report_options_t* names,
                                                      const char* path);

#ifdef __cplusplus
}
#endif
#endif  // ASSAY_DEBUG_H_
