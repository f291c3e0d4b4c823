// Edits: a model in, a changed one out, and a proof of what that does to its outputs.
#ifndef ASSAY_EDIT_H_
#define ASSAY_EDIT_H_

#include <assay/model.h>
#include <assay/report.h>
#include <assay/samples.h>
#include <assay/types.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// ---- the edits of this library ------------------------------------------------------------------
// All texts live as long as the library; NULL past the last.

// Edit i: its name, such as "cast", and what it does in some words.
ASSAY_API const char* assay_edit_name(size_t i);
ASSAY_API const char* assay_edit_summary(size_t i);

// Option k of edit i: its name, such as "nodes"; what its value is, such as "PATTERN" ("": it has
// none, being there is enough); what it says; whether it may be given again.
ASSAY_API const char* assay_edit_option_name(size_t i, size_t k);
ASSAY_API const char* assay_edit_option_value(size_t i, size_t k);
ASSAY_API const char* assay_edit_option_help(size_t i, size_t k);
ASSAY_API bool assay_edit_option_repeats(size_t i, size_t k);

// ---- editing ------------------------------------------------------------------------------------

// An option with its value; NULL where it has none.
typedef struct assay_edit_request {
  const char *option, *value;
} assay_edit_request_t;

typedef struct assay_edit_options {
  size_t struct_size;
  const assay_edit_request_t* requests;
  size_t n_requests;
  // For the proof, and for edits that calibrate: of the model's inputs; NULL: made from the seed,
  // in these shapes of inputs.
  const assay_samples_t* samples;
  const assay_input_shape_t* shapes;
  size_t n_shapes;
  int n_samples;  // to be made
  uint64_t seed;
  bool no_proof;                  // do not run the models
  bool force;                     // the model may be had and written whatever the proof says
  assay_progress_fn_t* progress;  // NULL: no reports of progress
  void* user;
} assay_edit_options_t;
#define ASSAY_EDIT_OPTIONS_INIT \
  { sizeof(assay_edit_options_t), 0, 0, 0, 0, 0, 1, 0, false, false, 0, 0 }

// What an edit made of a model. One owner. Threads: functions that take it const may be called from
// several at once.
typedef struct assay_edited assay_edited_t;

// Runs the edit of this name on the model as it was read: with its functions and open sizes. The
// model is not changed and may be released afterwards.
//   options   may be NULL; read during the call only
// Errors:  NOT_FOUND no such edit, or a name in the requests that the model does not have;
//          INVALID_ARGUMENT a request that makes no sense; UNSUPPORTED what the edit cannot do to
//          this model, or a model that was not read; CORRUPT the model, or a file of a request;
//          NO_MEMORY
// Threads: any
ASSAY_API assay_status_t assay_edit_run(assay_model_t* model, const char* edit,
                                        const assay_edit_options_t* options, assay_edited_t** out);
ASSAY_API void assay_edited_destroy(assay_edited_t* edited);  // NULL is allowed

// ---- the proof: outputs in float64 before and after, on the same inputs -------------------------

typedef enum assay_edit_verdict {
  ASSAY_EDIT_UNCHANGED = 0,  // outputs are what they were, to float64's own rounding
  ASSAY_EDIT_ROUNDED,        // they moved by what rounding explains
  ASSAY_EDIT_CHANGED,        // they moved by more, or became something else
  ASSAY_EDIT_NOT_PROVEN,     // the models could not be run, or were not to be
} assay_edit_verdict_t;

// What the proof came to.
ASSAY_API assay_edit_verdict_t assay_edited_verdict(const assay_edited_t* edited);
// "unchanged", "rounded", "changed", "not proven".
ASSAY_API const char* assay_edit_verdict_name(assay_edit_verdict_t verdict);
// Whether it did what the edit promises, and whether the model may be had: because it did, or
// because it was not to be proven, or was to be forced.
ASSAY_API bool assay_edited_kept_promise(const assay_edited_t* edited);
ASSAY_API bool assay_edited_may_write(const assay_edited_t* edited);
// How much was changed, and what, such as "Gelu 12, LayerNormalization 25"; why there is no proof
// ("": there is one). Texts live as long as the result.
ASSAY_API size_t assay_edited_changes(const assay_edited_t* edited);
ASSAY_API const char* assay_edited_done(const assay_edited_t* edited);
ASSAY_API const char* assay_edited_why_not_proven(const assay_edited_t* edited);
// What was left alone, and why: lines, each with a newline.
ASSAY_API const char* assay_edited_notes(const assay_edited_t* edited);

// Outputs that were compared; NULL and NaN past the end.
ASSAY_API size_t assay_edited_output_count(const assay_edited_t* edited);
ASSAY_API const char* assay_edited_output_name(const assay_edited_t* edited, size_t i);
// The largest difference of an element; infinity: the shapes differ, or one side is not finite.
ASSAY_API double assay_edited_output_moved(const assay_edited_t* edited, size_t i);
// The largest magnitude that an element had before.
ASSAY_API double assay_edited_output_scale(const assay_edited_t* edited, size_t i);

// ---- the new model ------------------------------------------------------------------------------

// The edited model, ready to run; one reference goes to the caller.
// Errors: UNSUPPORTED it may not be had (assay_edited_may_write); NO_MEMORY
ASSAY_API assay_status_t assay_edited_model(const assay_edited_t* edited, assay_model_t** out);
// Writes it, which reports say from then on. Readers of the path see the old file or the new one.
// Errors: as there; NOT_FOUND no such folder
ASSAY_API assay_status_t assay_edited_write(assay_edited_t* edited, const char* path);

// ---- reports ------------------------------------------------------------------------------------

typedef struct assay_edit_report_options {
  size_t struct_size;
  const char* path;  // TEXT: of the file that was to be written, which it says something of; NULL:
                     // that of assay_edited_write(), if there was one
  bool all;          // TEXT: all outputs and notes
} assay_edit_report_options_t;
#define ASSAY_EDIT_REPORT_OPTIONS_INIT \
  { sizeof(assay_edit_report_options_t), 0, false }

// TEXT: at most 15 lines, verdict first. JSON: everything, "assay.edit/1".
// Errors: as in report.h
ASSAY_API assay_status_t assay_edited_report(const assay_edited_t* edited, assay_report_kind_t kind,
                                             const assay_edit_report_options_t* options,
                                             assay_report_fn_t* write, void* user);
ASSAY_API assay_status_t assay_edited_write_report(const assay_edited_t* edited,
                                                   assay_report_kind_t kind,
                                                   const assay_edit_report_options_t* options,
                                                   const char* path);

#ifdef __cplusplus
}
#endif
#endif  // ASSAY_EDIT_H_
