// Engines of the line's model with other precisions, again and again.
#ifndef ASSAY_FRONTENDS_POLYGRAPHY_DEBUG_DEBUG_BUILDER_H_
#define ASSAY_FRONTENDS_POLYGRAPHY_DEBUG_DEBUG_BUILDER_H_

#include "frontends/polygraphy/job.h"

typedef struct pg_builder {
  pg_job_t* job;
  assay_model_t* read;   // as it was read
  assay_model_t* model;  // ready to be run: nodes have the labels that flags name them by
  bool keeps_times;      // kernels that were timed in one build are not timed in the next
  assay_str_t timings;   // of kernels, then
} pg_builder_t;

// Loads the model of the line. keeps_times is left as it is.
assay_status_t pg_builder_open(pg_job_t* j, pg_builder_t* out) ASSAY_MUST_USE;
void pg_builder_close(pg_builder_t* b);
// Builds a plan as the flags say, with these nodes in a format, and writes it. The user's own
// --layer-precisions stay.
assay_status_t pg_builder_build(pg_builder_t* b, const assay_node_t* const* nodes, size_t n,
                                assay_format_t format, const char* path) ASSAY_MUST_USE;

#endif  // ASSAY_FRONTENDS_POLYGRAPHY_DEBUG_DEBUG_BUILDER_H_
