// Engines by the flags of the line, built as trtexec's front end builds them.
#ifndef ASSAY_FRONTENDS_POLYGRAPHY_BUILD_H_
#define ASSAY_FRONTENDS_POLYGRAPHY_BUILD_H_

#include "frontends/polygraphy/job.h"
#include "io/saved.h"

// What is built, beyond what the flags say. Zero: the flags alone.
typedef struct pg_build {
  assay_model_t* model;  // as it was read; NULL: the line's, without --onnx-outputs
  // Of the model's inputs, iterations of them: they give open dimensions their sizes and int8 its
  // ranges. NULL: --input-shapes, and inputs as the line makes them.
  const assay_saved_t* inputs;
  // "name:type" of layers besides --layer-precisions; an error where one cannot be met. NULL: none.
  const pg_words_t* layers;
  // Times of kernels: what is there is not timed again, and what was is put there. NULL: the
  // line's.
  assay_str_t* timings;
  bool aside;  // an engine beside the line's own: tactic replays are not for it
} pg_build_t;

// What came of a build.
typedef struct pg_built {
  assay_engine_t* engine;
  const char** tactics;  // by layer of the plan
  size_t n_layers;
} pg_built_t;
void pg_built_deinit(pg_built_t* b);

// Builds an engine. Warnings and errors speak of the flags of this line.
assay_status_t pg_build_engine(pg_job_t* j, const pg_build_t* b, pg_built_t* out) ASSAY_MUST_USE;
// Prints the commands of 'assay' that do the same, which write `plan`.
assay_status_t pg_build_print_native(pg_job_t* j, const pg_build_t* b,
                                     const char* plan) ASSAY_MUST_USE;
// Loads a plan; warns of flags that are for a build. UNSUPPORTED: it is TensorRT's.
assay_status_t pg_load_engine(pg_job_t* j, const char* path, assay_engine_t** out) ASSAY_MUST_USE;

// ---- the line in trtexec's words (build_line.c) -------------------------------------------------

// Words for trt_options_parse, in the arena. model: prepared.
assay_status_t pg_build_line(pg_job_t* j, const pg_build_t* b, const assay_model_t* model,
                             pg_words_t* out) ASSAY_MUST_USE;
// A text with trtexec's flags called as this line calls them.
void pg_rename_flags(const char* text, assay_str_t* out);

#endif  // ASSAY_FRONTENDS_POLYGRAPHY_BUILD_H_
