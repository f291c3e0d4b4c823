// polygraphy data merge (once: data to-input): the tensors of several files as one file of inputs,
// iteration by iteration.
//
// Files are those that Polygraphy writes, byte for byte. There the iterations by which a file makes
// the result longer are one and the same: all of them have the tensors of the last. A warning says
// so.
#include <string.h>

#include "base/alloc.h"
#include "base/shown.h"
#include "frontends/polygraphy/data/data_files.h"

// Iterations first to last of the result, which have the same tensors.
typedef struct group {
  size_t n;
  assay_set_t set;
} group_t;

typedef struct merge {
  group_t* groups;
  size_t n_groups, cap_groups;
  size_t n;              // iterations
  bool collapsed;        // tensors of one iteration took the place of another's
  assay_str_t reported;  // what was said of names that were there already, a line each
} merge_t;

static void merge_deinit(merge_t* m) {
  for (size_t i = 0; i < m->n_groups; i++) assay_set_deinit(&m->groups[i].set);
  assay_free(m->groups);
  assay_str_deinit(&m->reported);
}

static assay_status_t warn_of_overwriting(merge_t* m, const char* name, const char* path) {
  assay_str_t line = {0};
  assay_str_printf_raw(&line, "%s\n%s\n", name, path);
  assay_status_t st = assay_str_status(&line);
  // Once for each name and file.
  if (!st && !strstr(assay_str_get(&m->reported), assay_str_get(&line))) {
    pg_log(PG_WARNING,
           "Overwriting input '%s' while merging data from %s. If you intended to concatenate "
           "iterations, consider using `data concat` instead.",
           name, path);
    assay_str_append(&m->reported, assay_str_get(&line));
    st = assay_str_status(&m->reported);
  }
  assay_str_deinit(&line);
  return st;
}

static assay_status_t put(merge_t* m, assay_set_t* to, const char* name, assay_tensor_t* t,
                          const char* path) {
  for (size_t i = 0; i < to->n; i++) {
    if (strcmp(to->names[i], name) != 0) continue;
    assay_tensor_release(to->tensors[i]);
    to->tensors[i] = assay_tensor_retain(t);
    return warn_of_overwriting(m, name, path);
  }
  return assay_set_add(to, name, assay_tensor_retain(t));
}

static assay_status_t lengthen(merge_t* m, size_t n) {
  if (n <= m->n) return NULL;
  ASSAY_TRY(assay_grow(&m->groups, &m->cap_groups, m->n_groups + 1, sizeof *m->groups));
  m->groups[m->n_groups++] = (group_t){.n = n - m->n};
  m->n = n;
  return NULL;
}

static assay_status_t add_runner(merge_t* m, const assay_saved_t* from, const char* path) {
  if (m->n && m->n != from->n)
    pg_log(PG_WARNING,
           "The provided files have different numbers of iterations.\nNote: Inputs currently "
           "contains %zu iterations, but the data in %s contains %zu iterations. Some iterations "
           "will contain incomplete data. ",
           m->n, path, from->n);
  ASSAY_TRY(lengthen(m, from->n));
  size_t i = 0;
  for (size_t g = 0; g < m->n_groups && i < from->n; g++) {
    m->collapsed |= m->groups[g].n > 1 && from->n > i + 1;
    for (size_t k = 0; k < m->groups[g].n && i < from->n; k++, i++)
      for (size_t t = 0; t < from->runs[i].n; t++)
        ASSAY_TRY(
            put(m, &m->groups[g].set, from->runs[i].names[t], from->runs[i].tensors[t], path));
  }
  return NULL;
}

static assay_status_t add_file(merge_t* m, const char* path) {
  assay_run_results_t one = {0};
  ASSAY_TRY(pg_data_read(path, &one));
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < one.n; i++) st = add_runner(m, &one.runners[i].saved, path);
  assay_run_results_deinit(&one);
  return st;
}

// The groups as iterations.
static assay_status_t unfold(const merge_t* m, assay_runner_results_t* to) {
  for (size_t g = 0; g < m->n_groups; g++)
    for (size_t k = 0; k < m->groups[g].n; k++) {
      const assay_set_t* set = &m->groups[g].set;
      assay_set_t* run = NULL;
      ASSAY_TRY(assay_runner_results_add(to, 0, &run));
      for (size_t t = 0; t < set->n; t++)
        ASSAY_TRY(assay_set_add(run, set->names[t], assay_tensor_retain(set->tensors[t])));
    }
  return NULL;
}

assay_status_t pg_run_data_merge(pg_job_t* j) {
  assay_run_results_t all = {.inputs = true};
  assay_runner_results_t* to = NULL;
  merge_t m = {0};
  assay_status_t st = assay_run_results_add(&all, "", &to);
  for (size_t i = 0; !st && i < j->args->positional.n; i++)
    st = add_file(&m, j->args->positional.items[i]);
  if (!st && m.collapsed)
    pg_log(PG_WARNING,
           "As in Polygraphy, the iterations that a file adds all get the tensors of the last one. "
           "`data concat` keeps every iteration of a file.");
  if (!st) st = unfold(&m, to);
  if (!st) st = pg_data_write(j, &all);
  assay_run_results_deinit(&all);
  merge_deinit(&m);
  return st;
}
