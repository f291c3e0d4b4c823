// What the strategies of the search for the fewest layers do with a run.
#include <math.h>

#include "base/alloc.h"
#include "diagnose/fewest_strategies.h"

void assay_fewest_progress(const assay_fewest_t* f, const char* what, double fraction) {
  if (f->setting->progress) f->setting->progress(f->setting->user, what, fraction);
}

// An output in fp32 cannot come nearer than half a unit in its last place.
bool assay_fewest_is_near(const assay_fewest_t* f, const assay_output_check_t* outputs,
                          const assay_output_check_t* others) {
  static const double NEAR = 2;  // 3 dB of energy
  const double last_place = ldexp(1, -24);
  for (size_t i = 0; i < f->subject.model->graph->n_outputs; i++) {
    const assay_error_sum_t *a = &outputs[i].error, *b = &others[i].error;
    const double floor_energy = b->sum_ref2 * last_place * last_place;
    if (outputs[i].differing > others[i].differing || a->mismatched > b->mismatched) return false;
    if (outputs[i].is_float && !(a->sum_err2 <= NEAR * fmax(b->sum_err2, floor_energy)))
      return false;
  }
  return true;
}

static bool is_right(const assay_fewest_t* f) {
  if (!f->excused) return f->last.faithful;
  for (size_t i = 0; i < f->subject.model->graph->n_outputs; i++)
    if (!f->last.outputs[i].faithful && f->excused[i].faithful) return false;
  return !f->found->unmet.len;
}

bool assay_fewest_does(const assay_fewest_t* f) {
  if (!is_right(f)) return false;
  return !f->reference || assay_fewest_is_near(f, f->last.outputs, f->reference);
}

void assay_fewest_take_asked(assay_fewest_t* f) {
  assay_fewest_found_t* found = f->found;
  assay_free(found->outputs);
  found->outputs = f->last.outputs;
  found->faithful = f->last.faithful;
  found->ran_as_asked = true;
  f->last.outputs = NULL;
}

void assay_fewest_take_fix(assay_fewest_t* f) {
  assay_fix_t* fix = f->fix;
  assay_free(fix->outputs);
  fix->verified = is_right(f);
  fix->outputs = f->last.outputs;
  fix->runs++;
  f->last.outputs = NULL;
}
