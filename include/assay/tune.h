// Tuning: the fastest assignment of formats to layers whose outputs meet what is required, verified
// by running it.
//
//   assay_tune_t* tune;
//   assay_tune_create(model, &options, &tune);      what is wrong with the options shows here
//   assay_tune_run(tune, inputs, golden);           golden may be NULL
//   if (assay_tune_met(tune)) assay_tune_write_model(tune, "mixed.onnx");
//
// Numbers and texts that functions return are those of the run; before it there are none. Texts
// live as long as the tuning.
#ifndef ASSAY_TUNE_H_
#define ASSAY_TUNE_H_

#include <assay/check.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct assay_tune assay_tune_t;  // one owner

// Devices whose times are estimated by their rooflines: the name of number i, which lives as long
// as the library; NULL after the last. The first is a generic one.
ASSAY_API const char* assay_tune_device_name(size_t i);

// Runs an assignment somewhere else (options.elsewhere): hands its bytes to others, who give them,
// with some of the samples each, to assay_tune_run_part(), and adds what these hand over, in the
// order of the samples. A failure ends the tuning with it.
typedef struct assay_tune_parts assay_tune_parts_t;  // borrowed for the call
typedef assay_status_t assay_tune_elsewhere_fn_t(void* user, const void* assignment, size_t size,
                                                 assay_tune_parts_t* parts);

typedef struct assay_tune_options {
  size_t struct_size;
  const assay_format_t* formats;  // below fp32, one to three; NULL: fp16
  size_t n_formats;
  const char* layer_precision;  // rules that stand: "PATTERN:FORMAT,..."; NULL: none
  const char* target;           // that outputs are measured on; NULL: "emu"
  assay_fusion_t fusion;        // these six as in assay_check_options_t
  const char* const* passes_off;
  size_t n_passes_off;
  assay_fp32_t fp32;
  const char* const* requirements;
  size_t n_requirements;
  bool unquantized;
  // Whose time is to be small: a name that assay_tune_device_name() gives, or "here", which is
  // measured and goes with target "cpu". NULL: "here" for that, else the first device.
  const char* device;
  bool fewest_layers;             // as few layers in fp32 as possible, rather than the least time
  size_t front;                   // points of the front of time against error; 0: none
  size_t max_runs;                // of assignments, besides all in one format; 0: 8
  double seconds;                 // to measure each format here; 0: 0.5
  const char* timing_cache;       // read, and what is measured is added; NULL: none
  uint64_t seed;                  // of random operators
  const char* inject;             // for tests, as in assay_check_options_t
  assay_progress_fn_t* progress;  // NULL: no reports of progress
  void* user;                     // of both functions
  // Samples in parts: who runs assignments; truth of the samples, and what errors the layers make
  // in a few of them, is found here. What is found is the same to the bit. NULL: they run here.
  assay_tune_elsewhere_fn_t* elsewhere;
} assay_tune_options_t;
#define ASSAY_TUNE_OPTIONS_INIT                                                                  \
  {                                                                                              \
    sizeof(assay_tune_options_t), 0, 0, 0, 0, ASSAY_FUSION_TARGET, 0, 0, ASSAY_FP32_TIGHT, 0, 0, \
        false, 0, false, 0, 0, 0, 0, 0, 0, 0, 0, 0                                               \
  }

// The model is retained. What options point at is read during the call only, but for `user`.
// Errors:  as of assay_check_create(); INVALID_ARGUMENT formats that are none below fp32, a device
//          that there is not, or that does not go with the target
// Threads: any; of one tuning, one call at a time
ASSAY_API assay_status_t assay_tune_create(assay_model_t* model,
                                           const assay_tune_options_t* options, assay_tune_t** out);
ASSAY_API void assay_tune_destroy(assay_tune_t* tune);  // NULL is allowed
// Whether a requirement is about golden, which the run then has to be given.
ASSAY_API bool assay_tune_needs_golden(const assay_tune_t* tune);

// Searches, once for each tuning. It is not an error if the requirements are not met.
//   inputs  of the model; borrowed during the call
//   golden  for requirements that are about it; NULL: none
// Errors:  INVALID_ARGUMENT inputs that do not fit the model, golden without outputs, requirements
//          that cannot be judged, a second run; UNSUPPORTED plans that differ from format to
//          format; NO_MEMORY
// Threads: kernels are timed with device "here", so nothing else should run beside it
ASSAY_API assay_status_t assay_tune_run(assay_tune_t* tune, const assay_samples_t* inputs,
                                        assay_golden_t* golden);

// Runs an assignment of another tuning, of the same model and options, on some of its samples.
//   golden  of these samples, one of its own for each; NULL: none
//   write   takes what is to be added there (report.h)
// Errors:  CORRUPT no assignment, or damaged; INVALID_ARGUMENT of another tuning; UNSUPPORTED a
//          requirement that is a command; as of the run
// Threads: any; of one tuning, one call at a time
ASSAY_API assay_status_t assay_tune_run_part(assay_tune_t* tune, const void* assignment,
                                             size_t size, const assay_samples_t* inputs,
                                             assay_golden_t* golden, assay_report_fn_t* write,
                                             void* user);
// Adds what samples gave that follow those before. Errors: CORRUPT; INVALID_ARGUMENT of another
// assignment
ASSAY_API assay_status_t assay_tune_add_part(assay_tune_parts_t* parts, const void* data,
                                             size_t size);

// ---- what was found -----------------------------------------------------------------------------

// Whether some assignment meets the requirements.
ASSAY_API bool assay_tune_met(const assay_tune_t* tune);

// The formats: those that were asked for, and fp32; NONE past the end.
ASSAY_API assay_format_t assay_tune_format(const assay_tune_t* tune, size_t i);

// An assignment that was run.
typedef struct assay_tune_assignment {
  size_t struct_size;
  bool met;        // the requirements hold
  bool chosen;     // the fastest of those
  double seconds;  // of a run, estimated or by the times of its layers
} assay_tune_assignment_t;
#define ASSAY_TUNE_ASSIGNMENT_INIT \
  { sizeof(assay_tune_assignment_t), false, false, 0 }
// All in fp32 comes first, then all in each other format, then what was searched for.
ASSAY_API size_t assay_tune_assignment_count(const assay_tune_t* tune);
// Errors: INVALID_ARGUMENT i is out of range. struct_size says how much the caller can hold.
ASSAY_API assay_status_t assay_tune_assignment(const assay_tune_t* tune, size_t i,
                                               assay_tune_assignment_t* out);
// How many of its layers that make or read floats are in format f (assay_tune_format).
ASSAY_API size_t assay_tune_assignment_layers(const assay_tune_t* tune, size_t i, size_t f);

// The nodes that the chosen assignment has in format f; 0: none, or none was chosen.
ASSAY_API size_t assay_tune_node_count(const assay_tune_t* tune, size_t f);
ASSAY_API const char* assay_tune_node(const assay_tune_t* tune, size_t f, size_t i);

// ---- files and reports --------------------------------------------------------------------------

// The model in mixed precision, with explicit Casts.
// Errors: NOT_FOUND nothing was chosen; UNSUPPORTED formats other than fp16, bf16 and fp32
ASSAY_API assay_status_t assay_tune_write_model(const assay_tune_t* tune, const char* path);
// A plan file for the target, its kernels chosen by time.
ASSAY_API assay_status_t assay_tune_write_plan(const assay_tune_t* tune, const char* path);
// The assignment as options of `assay` (--fix-file) and of trtexec.
ASSAY_API assay_status_t assay_tune_write_options(const assay_tune_t* tune, const char* path);

// What reports (report.h) call things; all may be NULL.
typedef struct assay_tune_report_options {
  size_t struct_size;
  const char* model;        // its path; NULL: "model"
  const char* saved_model;  // files that were written
  const char* saved_plan;
  const char* saved_options;
} assay_tune_report_options_t;
#define ASSAY_TUNE_REPORT_OPTIONS_INIT \
  { sizeof(assay_tune_report_options_t), 0, 0, 0, 0 }

// TEXT and JSON. Errors: as in report.h; INVALID_ARGUMENT before the run
ASSAY_API assay_status_t assay_tune_report(const assay_tune_t* tune, assay_report_kind_t kind,
                                           const assay_tune_report_options_t* names,
                                           assay_report_fn_t* write, void* user);
ASSAY_API assay_status_t assay_tune_write_report(const assay_tune_t* tune, assay_report_kind_t kind,
                                                 const assay_tune_report_options_t* names,
                                                 const char* path);

#ifdef __cplusplus
}
#endif
#endif  // ASSAY_TUNE_H_
