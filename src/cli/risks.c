// Warnings of values that a plan's formats cannot hold (account/risks.h): a line each, of which the
// first few are told.
#include "cli/risks.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/shown.h"

enum { SHOWN = 4 };

void cli_warn_stderr(const char* line) { assay_print(stderr, "assay: %s\n", line); }

static int largest_first(const void* a, const void* b) {
  const double x = ((const assay_risk_t*)a)->max, y = ((const assay_risk_t*)b)->max;
  return (x < y) - (x > y);
}

// rest: what those after the first few are, and what to do.
static void report(assay_risks_t* r, const char* why, const char* rest, cli_warn_fn_t* warn) {
  if (r->n > 1) qsort(r->at, r->n, sizeof *r->at, largest_first);
  for (size_t i = 0; i < r->n && i < SHOWN; i++) {
    assay_str_t line = {0};
    assay_str_append(&line, "at risk: ");
    assay_risk_print(&r->at[i], &line);
    assay_str_append(&line, why);
    warn(assay_str_get(&line));
    assay_str_deinit(&line);
  }
  if (r->n > SHOWN) {
    assay_str_t line = {0};
    assay_str_printf(&line, "at risk: %zu more %s; 'assay check --json FILE' names all",
                     r->n - SHOWN, rest);
    warn(assay_str_get(&line));
    assay_str_deinit(&line);
  }
}

static void give_up(assay_status_t st, const char* what, cli_warn_fn_t* warn) {
  assay_str_t line = {0};
  assay_str_printf(&line, "whether %s pass their format's range is not known: %s", what,
                   assay_status_message(st));
  warn(assay_str_get(&line));
  assay_str_deinit(&line);
  assay_status_free(st);
}

void cli_warn_of_constants(const assay_engine_t* e, cli_warn_fn_t* warn) {
  assay_risks_t risks = {0};
  assay_status_t st = assay_risks_of_constants(assay_engine_plan(e), &risks);
  report(&risks, "", "constants", warn);
  if (st) give_up(st, "folded constants", warn);
  assay_risks_deinit(&risks);
}

void cli_warn_of_hidden(const assay_engine_t* e, assay_tensor_t* const* inputs,
                        cli_warn_fn_t* warn) {
  assay_risks_t risks = {0};
  assay_str_t why = {0};
  assay_status_t st = assay_risks_run(assay_engine_plan(e), assay_engine_backend(e),
                                      assay_engine_shared(e), inputs, &risks);
  assay_str_printf(&why, "; %s keeps it wider, another engine may not",
                   assay_engine_backend(e)->name);
  report(&risks, assay_str_get(&why), "layers hide such values", warn);
  if (st) give_up(st, "values that fused layers hide", warn);
  assay_risks_deinit(&risks);
  assay_str_deinit(&why);
}
