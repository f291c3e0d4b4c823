// --until of debug build and debug repeat: when it is enough.
#include "frontends/polygraphy/debug/debug_until.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

assay_status_t pg_until_read(const pg_job_t* j, pg_until_t* out) {
  const char* text = pg_text(j->args, PG_FLAG_until);
  char* end = NULL;
  *out = (pg_until_t){.good = text && strcmp(text, "good") == 0,
                      .bad = text && strcmp(text, "bad") == 0};
  if (out->good || out->bad) return NULL;
  errno = 0;
  const long n = text ? strtol(text, &end, 10) : 0;
  if (!text || end == text || *end || errno || n < 1 || n > PG_MAX_ITERATIONS)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "--until value must be an integer, 'good', or 'bad', but was: %s (1 to %d)",
                       text ? text : "", PG_MAX_ITERATIONS);
  out->n = (size_t)n;
  return NULL;
}

assay_status_t pg_until_advance(void* user, const pg_iteration_t* i, bool* out_stop) {
  pg_until_t* u = user;
  u->reached = u->n ? i->index + 1 >= u->n : i->success == u->good;
  *out_stop = u->reached;
  return NULL;
}
