// polygraphy data merge (once: data to-input): the tensors of several files as one file of inputs,
// iteration by iteration.
#include <string.h>

#include "base/alloc.h"
#include "cli/polygraphy/data_files.h"

// One file's iterations, and what was told of it.
typedef struct source {
  const char* path;
  const assay_saved_t* saved;
  bool warned;
} source_t;

// Gives a set a tensor; one of that name is replaced, which is told once a file.
static assay_status_t put(source_t* s, assay_set_t* to, const char* name, assay_tensor_t* t) {
  for (size_t i = 0; i < to->n; i++) {
    if (strcmp(to->names[i], name) != 0) continue;
    if (!s->warned)
      pg_log(PG_WARNING,
             "Overwriting input '%s' while merging data from %s. If you intended to concatenate "
             "iterations, consider using `data concat` instead.",
             name, s->path);
    s->warned = true;
    assay_tensor_release(to->tensors[i]);
    to->tensors[i] = assay_tensor_retain(t);
    return NULL;
  }
  return assay_set_add(to, name, assay_tensor_retain(t));
}

static assay_status_t merge(source_t* s, assay_runner_results_t* to) {
  assay_saved_t* all = &to->saved;
  if (all->n && all->n != s->saved->n)
    pg_log(PG_WARNING,
           "The provided files have different numbers of iterations.\nNote: Inputs currently "
           "contains %zu iterations, but the data in %s contains %zu iterations. Some iterations "
           "will contain incomplete data. ",
           all->n, s->path, s->saved->n);
  for (size_t i = 0; i < s->saved->n; i++) {
    const assay_set_t* from = &s->saved->runs[i];
    assay_set_t* run = NULL;
    if (i == all->n) ASSAY_TRY(assay_runner_results_add(to, 0, &run));
    for (size_t k = 0; k < from->n; k++)
      ASSAY_TRY(put(s, &all->runs[i], from->names[k], from->tensors[k]));
  }
  return NULL;
}

static assay_status_t add_file(const char* path, assay_runner_results_t* to) {
  assay_run_results_t one = {0};
  ASSAY_TRY(pg_data_read(path, &one));
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < one.n; i++) {
    source_t source = {.path = path, .saved = &one.runners[i].saved};
    st = merge(&source, to);
  }
  assay_run_results_deinit(&one);
  return st;
}

assay_status_t pg_run_data_merge(pg_job_t* j) {
  assay_run_results_t all = {.inputs = true};
  assay_runner_results_t* to = NULL;
  assay_status_t st = assay_run_results_add(&all, "", &to);
  for (size_t i = 0; !st && i < j->args->positional.n; i++)
    st = add_file(j->args->positional.items[i], to);
  if (!st) st = pg_data_write(j, &all);
  assay_run_results_deinit(&all);
  return st;
}
