// Checks: a model in a precision beside its float64 reference (truth), what went wrong, which layer
// is to blame, and a fix that was verified by running it.
//
//   assay_check_t* check;
//   assay_check_create(model, &options, &check);     what is wrong with the options shows here
//   assay_check_run(check, inputs, golden);          golden may be NULL
//   if (!assay_check_faithful(check)) ...            verdict, culprits, fix, reports
//
// Numbers and texts that functions return are those of the last run; before one there are none (0,
// NULL). Texts live until the next run, or as long as the check.
#ifndef ASSAY_CHECK_H_
#define ASSAY_CHECK_H_

#include <assay/golden.h>
#include <assay/report.h>
#include <assay/samples.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct assay_check assay_check_t;  // one owner

// What a layer did to the numbers, from harmless to worst.
typedef enum assay_verdict {
  ASSAY_VERDICT_EXACT = 0,
  ASSAY_VERDICT_ROUNDING,   // what rounding in the layer's formats explains
  ASSAY_VERDICT_UNCERTAIN,  // what truth's own rounding leaves open: layers in float64
  // An engine that is not ours is less accurate than IEEE arithmetic by a few units of the value's
  // full scale, as functions by polynomials and divisions by reciprocals are, and no output shows
  // it.
  ASSAY_VERDICT_LESS_ACCURATE,
  ASSAY_VERDICT_UNCLASSIFIED,  // an operator without a bound, or NaN that what came in explains
  ASSAY_VERDICT_AMPLIFIED,     // ill-conditioned: a small error that came in left as a large one
  ASSAY_VERDICT_FLIPPED,       // a comparison, an index or a rounding to integer came out otherwise
  ASSAY_VERDICT_UNDERFLOW,
  ASSAY_VERDICT_OVERFLOW,
  ASSAY_VERDICT_INVALID,  // NaN originates here
  ASSAY_VERDICT_DEFECT,   // more than rounding can do
} assay_verdict_t;
ASSAY_API const char* assay_verdict_name(assay_verdict_t verdict);

typedef enum assay_blame {
  ASSAY_BLAME_NONE = 0,
  ASSAY_BLAME_PRECISION,
  ASSAY_BLAME_ENGINE,
  ASSAY_BLAME_EXPORT,  // truth differs from golden
  ASSAY_BLAME_MODEL,   // ill-conditioned, or NaN and infinities in truth
  ASSAY_BLAME_INPUT,
} assay_blame_t;
// Such as "precision".
ASSAY_API const char* assay_blame_name(assay_blame_t blame);

// Which fix is looked for.
typedef enum assay_fix_choice {
  ASSAY_FIX_ANY = 0,  // the fewest layers in fp32 that meet the requirements, and nothing else
  // These look for both; files and functions without a choice are about the one that is named.
  ASSAY_FIX_FEWEST,
  ASSAY_FIX_BEST,  // the fewest layers whose outputs are within 3 dB of those with all in fp32
} assay_fix_choice_t;
ASSAY_API const char* assay_fix_choice_name(assay_fix_choice_t choice);  // "any", "fewest", "best"

typedef struct assay_check_options {
  size_t struct_size;
  // Of float32 values; NONE: as declared. INT8: of a model that has its quantizers.
  assay_format_t precision;
  assay_format_t accumulator;     // what sums are kept in; NONE: fp32
  const char* layer_precision;    // "PATTERN:FORMAT,..." on names of nodes and outputs; NULL: none
  const char* target;             // a name that assay_target_name() gives; NULL: "emu"
  assay_fusion_t fusion;          // TARGET: on, but for emu, which judges the model's own values
  const char* const* passes_off;  // names of passes that do not run; some: the plan is fused
  size_t n_passes_off;
  assay_fp32_t fp32;  // which kernels fp32 layers may use
  // "[OUTPUT:] STATISTIC OP VALUE", such as "logits: top1 >= 0.99", or a command with {outputs};
  // none: cosine at least 0.999 for every output.
  const char* const* requirements;
  size_t n_requirements;
  bool unquantized;       // quantizers are the identity in truth: quantization counts as error
  bool no_fix;            // do not look for a fix
  bool shares;            // split outputs' errors over the layers, also where they are faithful
  bool pictures;          // keep what pages and annotated models show of values
  double search_seconds;  // for what an exporter did wrong; 0: 40
  uint64_t seed;          // of random operators
  const char* inject;     // for tests: a node computes something else, "NODE:FAULT"; NULL: none
  assay_progress_fn_t* progress;  // NULL: no reports of progress
  // Called once all but the fix is known: functions of the check may be called.
  void (*judged)(void* user, const assay_check_t* check);
  void* user;  // of both
  assay_fix_choice_t fix;
} assay_check_options_t;
#define ASSAY_CHECK_OPTIONS_INIT                                                                   \
  {                                                                                                \
    sizeof(assay_check_options_t), ASSAY_FORMAT_NONE, ASSAY_FORMAT_NONE, 0, 0,                     \
        ASSAY_FUSION_TARGET, 0, 0, ASSAY_FP32_TIGHT, 0, 0, false, false, false, false, 0, 0, 0, 0, \
        0, 0, ASSAY_FIX_ANY                                                                        \
  }

// Makes a plan of the model, which is retained. What options point at is read during the call only,
// but for `user`.
// Errors:  INVALID_ARGUMENT a format that is not a float, a requirement that makes no sense;
// NOT_FOUND
//          a pattern, a pass or an output that there is not; UNSUPPORTED INT8 of a model without
//          quantizers
// Threads: any; of one check, one call at a time
ASSAY_API assay_status_t assay_check_create(assay_model_t* model,
                                            const assay_check_options_t* options,
                                            assay_check_t** out);
ASSAY_API void assay_check_destroy(assay_check_t* check);  // NULL is allowed
// Whether a requirement is about golden, which the run then has to be given.
ASSAY_API bool assay_check_needs_golden(const assay_check_t* check);

// ---- engines that are not Assay's; before the run -----------------------------------------------

// The target is an engine of somebody else's, that a shell command runs: once for each sample, with
// {model} {inputs} {outputs} {precision} put in. It gives all outputs, and values within the model
// that it likes to show: npz files. Runs the first sample now. No fix is looked for.
//   model    path that is put in for {model}
//   seconds  that one run may take; 0: 600
//   inputs   those of the run; borrowed until it has ended
//   name_map  as of golden; NULL: none
// Errors:  DEVICE the command failed, or gave something else; INVALID_ARGUMENT {inputs} or
//          {outputs} are missing in it, or the check's options are of Assay's own plans
ASSAY_API assay_status_t assay_check_use_command(assay_check_t* check, const char* command,
                                                 const char* model, double seconds,
                                                 const assay_samples_t* inputs,
                                                 const char* name_map);
// The same of what such an engine gave elsewhere for these inputs: a file in any format that
// assay_samples_load() knows.
ASSAY_API assay_status_t assay_check_use_outputs(assay_check_t* check, const char* file,
                                                 const assay_samples_options_t* reading,
                                                 const assay_samples_t* inputs,
                                                 const char* name_map);

// Whether an array of the file had the name of reading->dtypes[i].
ASSAY_API bool assay_check_dtype_used(const assay_check_t* check, size_t i);

// ---- running ------------------------------------------------------------------------------------

// Runs all samples, once for each check. An unfaithful model is not an error. A model that cannot
// take a whole batch may still be right row by row, and is run so; assay_check_notes() says it.
//   inputs  of the check's model; borrowed during the call
//   golden  NULL: none; arrays without a known name are matched by their contents
// Errors:  INVALID_ARGUMENT inputs that do not fit the model or do not run, golden that is of none
//          of its values, a requirement on golden without any, a second run; UNSUPPORTED; NO_MEMORY
ASSAY_API assay_status_t assay_check_run(assay_check_t* check, const assay_samples_t* inputs,
                                         assay_golden_t* golden);
// ---- samples in parts ---------------------------------------------------------------------------
//
// The account of many samples can be taken in parts, by several processes or machines, or one after
// the other where memory is short. Sums are exact until they are read, so parts that are added in
// the order of their samples make the same check as one run of all samples, to the bit of its
// reports, wherever the samples were divided:
//
//   assay_check_create(model, &options, &check);                    each process: its own check
//   assay_check_add_samples(check, some_inputs, some_golden);       once or several times
//   assay_check_save_part(check, write, user);
//
//   assay_check_create(model, &options, &whole);                    the one who gathers
//   assay_check_add_part(whole, data, size);                        in the order of the samples
//   assay_check_run(whole, inputs, golden);                         of all samples
//
// That run takes no account again. It looks at the samples as far as findings ask for them: the
// inputs' NaN and infinities, the first samples where errors are split, all where a fix is tried or
// golden differs. Parts are of one model file, one set of options, one version and one kind of
// machine: truth's sums of products are in the order of the CPU's BLAS.

// Adds the account of samples that follow those which the check has. After a failure it has none.
//   golden  as of the run, of these samples: one of its own for each
// Errors:  as of the run; UNSUPPORTED options.pictures, a requirement that is a command, another
//          engine, golden of several samples in one
ASSAY_API assay_status_t assay_check_add_samples(assay_check_t* check,
                                                 const assay_samples_t* inputs,
                                                 assay_golden_t* golden);
// Hands over what has been added, as bytes (for `write`, see report.h).
// Errors:  INVALID_ARGUMENT nothing has been added, or the check has run; NO_MEMORY
ASSAY_API assay_status_t assay_check_save_part(const assay_check_t* check, assay_report_fn_t* write,
                                               void* user);
// Adds what was saved. After a failure the check has no samples.
// Errors:  CORRUPT no part, or damaged; INVALID_ARGUMENT of another check, or held against another
//          kind of golden than those before; as of assay_check_add_samples()
ASSAY_API assay_status_t assay_check_add_part(assay_check_t* check, const void* data, size_t size);
// Samples that have been added.
ASSAY_API size_t assay_check_added(const assay_check_t* check);

// Lines for the user; "": none.
ASSAY_API const char* assay_check_notes(const assay_check_t* check);

// ---- what was found -----------------------------------------------------------------------------

// Whether all requirements hold, no layer is defect, and truth agrees with golden.
ASSAY_API bool assay_check_faithful(const assay_check_t* check);
ASSAY_API assay_blame_t assay_check_blame(const assay_check_t* check);
// Requirements that do not hold, in words; "": none.
ASSAY_API const char* assay_check_unmet(const assay_check_t* check);

// An output over all samples, the engine's against truth. struct_size says how much of the struct
// there is room for.
typedef struct assay_check_output {
  size_t struct_size;
  const char* name;
  bool faithful;
  bool is_float;                                 // else only `elements` and `differing` are set
  int64_t elements;                              // of all samples
  int64_t differing;                             // of integers, or finite on one side only
  int64_t nan, inf;                              // of the engine's
  double max_abs, max_rel, rms, cosine, snr_db;  // NaN where `differing` is of floats
  bool has_golden;
  double golden_max_abs, golden_snr_db;  // truth against golden
} assay_check_output_t;
#define ASSAY_CHECK_OUTPUT_INIT \
  { sizeof(assay_check_output_t), 0, false, false, 0, 0, 0, 0, 0, 0, 0, 0, 0, false, 0, 0 }
ASSAY_API size_t assay_check_output_count(const assay_check_t* check);
// Errors (here and below): INVALID_ARGUMENT i is out of range.
ASSAY_API assay_status_t assay_check_output(const assay_check_t* check, size_t i,
                                            assay_check_output_t* out);

// The account of a layer of the plan. Own error: the engine's outputs minus truth of the layer on
// the engine's own inputs. Inherited: that truth minus truth on true inputs.
typedef struct assay_check_layer {
  size_t struct_size;
  const char* name;
  const char* op;  // the type of its last node
  assay_verdict_t verdict;
  assay_format_t format;  // what its floats are stored in; NONE: it makes none
  size_t n_nodes;         // of the model that it stands for
  int64_t runs;           // one a sample, more in loops
  double own_rms, own_max, inherited_rms, inherited_max;
  double truth_max;  // largest |output| in truth
  // Root mean square of own error over what rounding probably makes (6 sigma); NaN: not known.
  double own_over_probable;
  int64_t elements, beyond;  // of them: outside the guaranteed bound
  int64_t overflowed, underflowed, born_nan, flipped;
} assay_check_layer_t;
#define ASSAY_CHECK_LAYER_INIT                                                                   \
  {                                                                                              \
    sizeof(assay_check_layer_t), 0, 0, ASSAY_VERDICT_EXACT, ASSAY_FORMAT_NONE, 0, 0, 0, 0, 0, 0, \
        0, 0, 0, 0, 0, 0, 0, 0                                                                   \
  }
ASSAY_API size_t assay_check_layer_count(const assay_check_t* check);
ASSAY_API assay_status_t assay_check_layer(const assay_check_t* check, size_t i,
                                           assay_check_layer_t* out);
// The name of node k of layer i; NULL past the end. Nodes without a name are called by their
// outputs.
ASSAY_API const char* assay_check_layer_node(const assay_check_t* check, size_t i, size_t k);

// A layer that outputs' errors come from, most to blame first.
typedef struct assay_check_culprit {
  size_t struct_size;
  size_t layer;  // its number (assay_check_layer)
  assay_verdict_t verdict;
  bool seen;        // failed here; false: it would, once those before are mended
  double share;     // of an output's error; 0: not known
  const char* why;  // "overflow: 5.98e+05, fp16 ends at 65504"
  // A constant that the format cannot hold and whose fault it is; NULL: of none. Its value, what it
  // becomes, and the layer where that shows first.
  const char* constant;
  double constant_from, constant_becomes;
  size_t shows;
} assay_check_culprit_t;
#define ASSAY_CHECK_CULPRIT_INIT \
  { sizeof(assay_check_culprit_t), 0, ASSAY_VERDICT_EXACT, false, 0, 0, 0, 0, 0, 0 }
ASSAY_API size_t assay_check_culprit_count(const assay_check_t* check);
ASSAY_API assay_status_t assay_check_culprit(const assay_check_t* check, size_t i,
                                             assay_check_culprit_t* out);

// A node that differs from golden: what its exporter did wrong.
typedef struct assay_check_fault {
  size_t struct_size;
  const char *node, *op;
  const char* value;           // that differs
  const char *cause, *repair;  // NULL: none was found
  bool restored;               // the repair brings golden back
} assay_check_fault_t;
#define ASSAY_CHECK_FAULT_INIT \
  { sizeof(assay_check_fault_t), 0, 0, 0, 0, 0, false }
ASSAY_API size_t assay_check_fault_count(const assay_check_t* check);
ASSAY_API assay_status_t assay_check_fault(const assay_check_t* check, size_t i,
                                           assay_check_fault_t* out);

// ---- the fix ------------------------------------------------------------------------------------

// Nodes to be kept in a higher format; 0: no fix was found, or none was looked for.
ASSAY_API size_t assay_check_fix_count(const assay_check_t* check);
ASSAY_API const char* assay_check_fix_node(const assay_check_t* check, size_t i);
ASSAY_API assay_format_t assay_check_fix_format(const assay_check_t* check);
// Whether it was run and every output was faithful; in how many runs it was found.
ASSAY_API bool assay_check_fix_verified(const assay_check_t* check);
ASSAY_API int assay_check_fix_runs(const assay_check_t* check);
// An output of the verifying run.
ASSAY_API assay_status_t assay_check_fix_output(const assay_check_t* check, size_t i,
                                                assay_check_output_t* out);

// One of the two fixes that options.fix looks for: FEWEST or BEST. With ANY there is the first
// only.
typedef struct assay_check_fix {
  size_t struct_size;
  size_t n_nodes;
  bool verified;
  bool chosen;  // what files and the functions above are about
  double time;  // of a run, estimated, over one with all layers in fp32; 0: not known
} assay_check_fix_t;
#define ASSAY_CHECK_FIX_INIT \
  { sizeof(assay_check_fix_t), 0, false, false, 0 }
// Errors: NOT_FOUND there is none.
ASSAY_API assay_status_t assay_check_fix(const assay_check_t* check, assay_fix_choice_t which,
                                         assay_check_fix_t* out);
// The name of its node i; NULL past the end.
ASSAY_API const char* assay_check_fix_node_of(const assay_check_t* check, assay_fix_choice_t which,
                                              size_t i);
// An output of the run that verified it.
ASSAY_API assay_status_t assay_check_fix_output_of(const assay_check_t* check,
                                                   assay_fix_choice_t which, size_t i,
                                                   assay_check_output_t* out);

// Whether a model can be written with the fix: its layers below fp32 are of 16 bits, and its
// operators' set has bfloat16 (13 on) where that is the format.
ASSAY_API bool assay_check_fix_has_model(const assay_check_t* check);
// The model in mixed precision, with explicit Casts.
// Errors (here and below): NOT_FOUND no fix was found; those of writing
ASSAY_API assay_status_t assay_check_write_model(const assay_check_t* check, const char* path);
// The fix as options of `assay` (which reads the file with --fix-file) and of trtexec.
ASSAY_API assay_status_t assay_check_write_options(const assay_check_t* check, const char* path);
// Constants that the format cannot hold are culprits by themselves; where other numbers in their
// place mend the outputs, so that a run of that model meets what is required by truth of the model
// as it is, these are an alternative to the fix. How many constants change, in which nodes; 0: none
// do.
typedef struct assay_check_mended {
  size_t struct_size;
  const char* node;  // that reads it
  const char* name;  // of the constant
  double from, to;   // of its elements the one that the format holds worst
} assay_check_mended_t;
#define ASSAY_CHECK_MENDED_INIT \
  { sizeof(assay_check_mended_t), 0, 0, 0, 0 }
ASSAY_API size_t assay_check_mended_count(const assay_check_t* check);
ASSAY_API assay_status_t assay_check_mended(const assay_check_t* check, size_t i,
                                            assay_check_mended_t* out);
// An output of the run that verified them.
ASSAY_API assay_status_t assay_check_mended_output(const assay_check_t* check, size_t i,
                                                   assay_check_output_t* out);
// Writes the model with them. model: the file that the check's model was read from.
// Errors: NOT_FOUND none do; those of reading and writing
ASSAY_API assay_status_t assay_check_write_mended(const assay_check_t* check, const char* model,
                                                  const char* path);
// Makes the repairs that bring golden back, or the changes of quantizers that lose less of it, in
// the model as it is in its file, holds the result against golden, and tells reports of it.
//   model      the file that the check's model was read from
//   path       where the repaired model is written; NULL: nowhere
//   out_n      how many nodes were changed; 0: there is nothing to repair
//   out_holds  truth of the repaired model agrees with golden; both may be NULL
// inputs and golden: those of the run.
ASSAY_API assay_status_t assay_check_repair(assay_check_t* check, const char* model,
                                            const assay_samples_t* inputs,
                                            const assay_golden_t* golden, const char* path,
                                            size_t* out_n, bool* out_holds);

// ---- reports ------------------------------------------------------------------------------------

// What reports (report.h) call things; all may be NULL.
typedef struct assay_check_report_options {
  size_t struct_size;
  const char* model;          // its path; NULL: "model"
  const char* precision;      // as the user wrote it; NULL: its name
  const char* golden;         // where it is from
  const char* const* inputs;  // files
  size_t n_inputs;
  const char* const* files;  // that the fix was written to; a repaired model comes first
  size_t n_files;
  const char* to_write;  // the command that writes them
  const char* mended;    // the file with other constants (assay_check_write_mended)
} assay_check_report_options_t;
#define ASSAY_CHECK_REPORT_OPTIONS_INIT \
  { sizeof(assay_check_report_options_t), 0, 0, 0, 0, 0, 0, 0, 0, 0 }

// All kinds; PAGE has pictures if the check's options.pictures was set.
// Errors: as in report.h; INVALID_ARGUMENT before the run
ASSAY_API assay_status_t assay_check_report(const assay_check_t* check, assay_report_kind_t kind,
                                            const assay_check_report_options_t* names,
                                            assay_report_fn_t* write, void* user);
ASSAY_API assay_status_t assay_check_write_report(const assay_check_t* check,
                                                  assay_report_kind_t kind,
                                                  const assay_check_report_options_t* names,
                                                  const char* path);
// The model again, with what was found in metadata_props and doc_string of its nodes, for viewers.
//   model    the file that the check's model was read from
//   inputs   those of the run, which are hashed
//   command  that made it, page: the report's file; both may be NULL
//   mark_names  "!! " in front of the names of nodes that are to blame
ASSAY_API assay_status_t assay_check_annotate(const assay_check_t* check,
                                              const assay_check_report_options_t* names,
                                              const char* model, const assay_samples_t* inputs,
                                              const char* command, const char* page,
                                              bool mark_names, const char* path);

#ifdef __cplusplus
}
#endif
#endif  // ASSAY_CHECK_H_
