// What the strategies of the search for the fewest layers do with a run.
#include "base/alloc.h"
#include "diagnose/fewest_strategies.h"

void assay_fewest_progress(const assay_fewest_t* f, const char* what, double fraction) {
  if (f->setting->progress) f->setting->progress(f->setting->user, what, fraction);
}

bool assay_fewest_does(const assay_fewest_t* f) { return f->last.faithful; }

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
  fix->outputs = f->last.outputs;
  fix->verified = f->last.faithful;
  fix->runs++;
  f->last.outputs = NULL;
}
