// polygraphy debug repeat: a command again and again, to sort what it leaves behind.
#include "frontends/polygraphy/debug/debug_until.h"

assay_status_t pg_run_debug_repeat(pg_job_t* j) {
  pg_until_t until;
  pg_debug_t d = {0};
  ASSAY_TRY(pg_until_read(j, &until));
  ASSAY_TRY(pg_debug_open(j, NULL, &d));
  const pg_loop_t loop = {.advance = pg_until_advance, .user = &until};
  assay_status_t st = pg_debug_loop(&d, &loop);
  j->failed = !until.reached;
  pg_debug_close(&d);
  return st;
}
