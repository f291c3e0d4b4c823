// polygraphy debug build: the same plan again and again, to sort what comes out.
#include "frontends/polygraphy/debug/debug_builder.h"
#include "frontends/polygraphy/debug/debug_until.h"

typedef struct work {
  pg_builder_t builder;
  pg_debug_t debug;
  pg_until_t until;
} work_t;

static assay_status_t make(void* user, pg_iteration_t* i) {
  work_t* w = user;
  (void)i;
  return pg_builder_build(&w->builder, NULL, 0, ASSAY_FORMAT_FP32, w->debug.artifact);
}

static assay_status_t advance(void* user, const pg_iteration_t* i, bool* out_stop) {
  work_t* w = user;
  return pg_until_advance(&w->until, i, out_stop);
}

assay_status_t pg_run_debug_build(pg_job_t* j) {
  work_t w = {0};
  ASSAY_TRY(pg_until_read(j, &w.until));
  ASSAY_TRY(pg_debug_open(j, "polygraphy_debug.engine", &w.debug));
  const pg_loop_t loop = {.make = make, .advance = advance, .user = &w};
  assay_status_t st = pg_builder_open(j, &w.builder);
  if (!st) st = pg_debug_loop(&w.debug, &loop);
  j->failed = !w.until.reached;
  pg_builder_close(&w.builder);
  pg_debug_close(&w.debug);
  return st;
}
