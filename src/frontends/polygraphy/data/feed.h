// The inputs of a run: from files, from a script, or made up as Polygraphy makes them.
#ifndef ASSAY_FRONTENDS_POLYGRAPHY_DATA_FEED_H_
#define ASSAY_FRONTENDS_POLYGRAPHY_DATA_FEED_H_

#include "frontends/polygraphy/job.h"
#include "io/saved.h"

// The iterations that the line asks for, of these inputs; those with an initializer are left out.
assay_status_t pg_feed_make(pg_job_t* j, assay_value_t* const* inputs, size_t n,
                            assay_saved_t* out) ASSAY_MUST_USE;
// The first iteration for a model: *out (assay_free) has a tensor for each graph input, NULL where
// an initializer stands in; `keep` owns them.
assay_status_t pg_feed_first(pg_job_t* j, const assay_graph_t* g, assay_saved_t* keep,
                             assay_tensor_t*** out) ASSAY_MUST_USE;
// --save-inputs and --save-input-blob.
assay_status_t pg_feed_save(pg_job_t* j, const assay_saved_t* inputs) ASSAY_MUST_USE;

// Of a script FILE.py[:FUNCTION]: what it yields (feed_script.c).
assay_status_t pg_feed_script(pg_job_t* j, const char* script, assay_saved_t* out) ASSAY_MUST_USE;

#endif  // ASSAY_FRONTENDS_POLYGRAPHY_DATA_FEED_H_
