// Faults that no output shows.
#include "diagnose/kinds/undone_find.h"

#include <string.h>

#include "base/alloc.h"

enum { MAX_VALUES = 64 };

// Whether truth agrees with golden's outputs, as if nothing else were known.
static assay_status_t outputs_agree(const assay_model_t* model, const assay_samples_t* inputs,
                                    const assay_golden_t* golden,
                                    const assay_export_options_t* options, bool* out) {
  assay_golden_t outputs = *golden;
  assay_export_t found = {0};
  ASSAY_TRY(assay_new_array(golden->n, sizeof *outputs.at, &outputs.at));
  memcpy(outputs.at, golden->at, golden->n * sizeof *outputs.at);
  for (size_t i = 0; i < outputs.n; i++)
    if (outputs.at[i].value && !outputs.at[i].value->is_output) outputs.at[i].value = NULL;
  assay_status_t st = assay_chain_run(model, inputs, &outputs, options, &found);
  *out = !st && !found.n && found.values_compared;
  assay_export_deinit(&found);
  assay_free(outputs.at);
  return st;
}

static assay_status_t list_values(const assay_export_t* found, assay_undone_t* out) {
  ASSAY_TRY(assay_new_array(found->n, sizeof *out->at, &out->at));
  for (size_t i = 0; i < found->n; i++) {
    const assay_fault_t* f = &found->faults[i];
    out->failed |= f->shape || f->difference.mismatched;
    out->at[out->n++] =
        (assay_undone_value_t){.value = f->value, .node = f->node, .walked = f->difference.rms};
  }
  return NULL;
}

// Keeps what differs by itself; false: nothing does.
static bool keep_differing(assay_undone_t* u) {
  size_t n = 0;
  for (size_t i = 0; i < u->n; i++)
    if (u->at[i].differs) u->at[n++] = u->at[i];
  return u->n = n, n > 0;
}

assay_status_t assay_undone_find(const assay_model_t* model, const assay_samples_t* inputs,
                                 const assay_golden_t* golden,
                                 const assay_export_options_t* options, assay_export_t* found,
                                 assay_undone_t* out) {
  assay_undone_t undone = {0};
  assay_export_t nothing = {0};
  assay_export_options_t o = *options;
  bool agree = false;
  o.no_search = true;
  if (!found->n || found->outputs_only || found->n > MAX_VALUES || o.unquantized) return NULL;
  assay_status_t st = list_values(found, &undone);
  if (!st && !undone.failed) st = outputs_agree(model, inputs, golden, &o, &agree);
  o.undone = &undone;
  if (!st && agree) st = assay_chain_run(model, inputs, golden, &o, &nothing);
  assay_export_deinit(&nothing);
  if (!st && agree && !undone.failed && keep_differing(&undone)) {
    const size_t compared = found->values_compared;
    assay_export_deinit(found);
    found->values_compared = compared;
    *out = undone;
    return NULL;
  }
  assay_undone_deinit(&undone);
  // Golden whose outputs alone cannot be held against truth tells nothing new.
  if (st && assay_status_code(st) != ASSAY_NO_MEMORY) assay_status_free(st), st = NULL;
  return st;
}
