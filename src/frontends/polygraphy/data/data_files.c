// What the subcommands of `data` share.
#include "frontends/polygraphy/data/data_files.h"

#include <string.h>

#include "base/alloc.h"
#include "base/shown.h"
#include "data/tensor_files.h"
#include "io/polygraphy.h"

assay_status_t pg_data_read(const char* path, assay_run_results_t* out) {
  const assay_tensor_request_t request = {.path = path};
  return assay_tensor_file_read_all(&request, out);
}

// A file whose name ends in nothing is JSON, as all are to Polygraphy's data tools; a folder's name
// ends in '/'.
static assay_status_t write(const char* path, const assay_run_results_t* r, assay_str_t* notes) {
  const char* slash = strrchr(path, '/');
  if (strchr(slash ? slash : path, '.') || (slash && !slash[1]))
    return assay_run_results_write(path, r, notes);
  if (!r->inputs) return assay_polygraphy_write_results(path, r, notes);
  return assay_polygraphy_write(path, r->n ? &r->runners[0].saved : &(assay_saved_t){0}, NULL,
                                notes);
}

assay_status_t pg_data_write(pg_job_t* j, const assay_run_results_t* r) {
  const char* path = pg_text(j->args, PG_FLAG_output);
  assay_str_t notes = {0};
  if (r->inputs)
    pg_log(PG_INFO, "Saving input file containing %zu iteration(s) to %s",
           r->n ? r->runners[0].saved.n : 0, path);
  else
    pg_log(PG_INFO, "Saving output file containing concatenated iteration(s) to %s", path);
  assay_status_t st = write(path, r, &notes);
  if (!st && notes.len) {
    while (notes.len && notes.text[notes.len - 1] == '\n') notes.text[--notes.len] = 0;
    pg_log(PG_WARNING, ASSAY_LINES, notes.text);
  }
  assay_str_deinit(&notes);
  return st;
}
