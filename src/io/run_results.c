// What several runners gave, iteration by iteration: all that a file of Polygraphy's results holds.
#include "io/run_results.h"

#include <string.h>

#include "base/alloc.h"

void assay_run_results_deinit(assay_run_results_t* r) {
  for (size_t i = 0; i < r->n; i++) {
    assay_saved_deinit(&r->runners[i].saved);
    assay_free(r->runners[i].name);
    assay_free(r->runners[i].seconds);
  }
  assay_free(r->runners);
  *r = (assay_run_results_t){0};
}

assay_status_t assay_run_results_add(assay_run_results_t* r, const char* name,
                                     assay_runner_results_t** out) {
  char* copy = NULL;
  const size_t n = strlen(name) + 1;
  ASSAY_TRY(assay_grow(&r->runners, &r->cap, r->n + 1, sizeof *r->runners));
  ASSAY_TRY(assay_new_array(n, 1, &copy));
  memcpy(copy, name, n);
  r->runners[r->n] = (assay_runner_results_t){.name = copy, .saved = {.results = !r->inputs}};
  *out = &r->runners[r->n++];
  return NULL;
}

assay_status_t assay_runner_results_add(assay_runner_results_t* r, double seconds,
                                        assay_set_t** out) {
  const size_t at = r->saved.n;
  ASSAY_TRY(assay_grow(&r->seconds, &r->cap, at + 1, sizeof *r->seconds));
  ASSAY_TRY(assay_saved_add_run(&r->saved, out));
  r->seconds[at] = seconds;
  return NULL;
}

// ---- joining ------------------------------------------------------------------------------------

static assay_status_t runner_of(assay_run_results_t* r, const char* name,
                                assay_runner_results_t** out) {
  for (size_t i = 0; i < r->n; i++)
    if (strcmp(r->runners[i].name, name) == 0) return *out = &r->runners[i], NULL;
  return assay_run_results_add(r, name, out);
}

assay_status_t assay_runner_results_append(assay_runner_results_t* to, const assay_set_t* from,
                                           double seconds) {
  assay_set_t* run = NULL;
  ASSAY_TRY(assay_runner_results_add(to, seconds, &run));
  for (size_t i = 0; i < from->n; i++)
    ASSAY_TRY(assay_set_add(run, from->names[i], assay_tensor_retain(from->tensors[i])));
  return NULL;
}

assay_status_t assay_run_results_append(assay_run_results_t* to, const assay_run_results_t* from) {
  if (to->n && to->inputs != from->inputs)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "inputs and results of runs cannot be joined");
  if (!to->n) to->inputs = from->inputs;
  for (size_t i = 0; i < from->n; i++) {
    const assay_runner_results_t* r = &from->runners[i];
    assay_runner_results_t* runner = NULL;
    ASSAY_TRY(runner_of(to, r->name, &runner));
    for (size_t k = 0; k < r->saved.n; k++)
      ASSAY_TRY(assay_runner_results_append(runner, &r->saved.runs[k], r->seconds[k]));
  }
  return NULL;
}
