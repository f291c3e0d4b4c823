// polygraphy data concat: the iterations of several files, one after the other.
#include <string.h>

#include "base/alloc.h"
#include "frontends/polygraphy/data/data_files.h"

static bool same_names(const assay_set_t* a, const assay_set_t* b) {
  if (a->n != b->n) return false;
  for (size_t i = 0; i < a->n; i++)
    if (strcmp(a->names[i], b->names[i]) != 0) return false;
  return true;
}

static void put_names(assay_str_t* out, const assay_set_t* set) {
  assay_str_append(out, "[");
  for (size_t i = 0; i < set->n; i++) assay_str_printf(out, "%s'%s'", i ? ", " : "", set->names[i]);
  assay_str_append(out, "]");
}

static void warn(const char* path, size_t iteration, const assay_set_t* expected,
                 const assay_set_t* found) {
  assay_str_t text = {0};
  put_names(&text, expected);
  assay_str_append(&text, ", but got: ");
  put_names(&text, found);
  pg_log(PG_WARNING,
         "Iteration %zu from %s contains different tensor names than earlier iterations.\nNote: "
         "Expected names: %s.",
         iteration, path, assay_str_get(&text));
  assay_str_deinit(&text);
}

// Iterations of a runner should have the names of its first one.
static void check_names(const assay_run_results_t* all, const assay_run_results_t* one,
                        const char* path) {
  for (size_t i = 0; i < one->n; i++) {
    const assay_saved_t* s = &one->runners[i].saved;
    const assay_set_t* expected = s->n ? &s->runs[0] : NULL;
    for (size_t k = 0; k < all->n; k++)
      if (strcmp(all->runners[k].name, one->runners[i].name) == 0 && all->runners[k].saved.n)
        expected = &all->runners[k].saved.runs[0];
    for (size_t k = 0; k < s->n; k++)
      if (!same_names(expected, &s->runs[k])) warn(path, k, expected, &s->runs[k]);
  }
}

static assay_status_t add_file(const char* path, assay_run_results_t* all) {
  assay_run_results_t one = {0};
  ASSAY_TRY(pg_data_read(path, &one));
  assay_status_t st = NULL;
  if (all->n && all->inputs != one.inputs)
    st = ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                     "Cannot concatenate input data with output data. Please provide files of the "
                     "same type.");
  if (!st) check_names(all, &one, path);
  if (!st) st = assay_run_results_append(all, &one);
  assay_run_results_deinit(&one);
  return st;
}

assay_status_t pg_run_data_concat(pg_job_t* j) {
  assay_run_results_t all = {0};
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < j->args->positional.n; i++)
    st = add_file(j->args->positional.items[i], &all);
  if (!st) st = pg_data_write(j, &all);
  assay_run_results_deinit(&all);
  return st;
}
