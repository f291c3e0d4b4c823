// The sizes that inputs of a plan are made up in.
#ifndef ASSAY_CLI_VERBS_BENCH_BENCH_SIZES_H_
#define ASSAY_CLI_VERBS_BENCH_BENCH_SIZES_H_

#include "cli/verbs/engine_source.h"

// Parses --shape, --dim and --batch for a plan. What they leave open has the best size of the first
// profile that takes what they say (*out_profile; of the first, if none does: a run says so).
// Without any of them *out is empty. Errors: INVALID_ARGUMENT not such options; a batch that the
// plan has one size for; a name that no dimension has.
assay_status_t bench_sizes_of_plan(const cli_engine_args_t* args, const assay_engine_t* engine,
                                   cli_shapes_t* out, int* out_profile) ASSAY_MUST_USE;

#endif  // ASSAY_CLI_VERBS_BENCH_BENCH_SIZES_H_
