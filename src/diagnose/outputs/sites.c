// What all kinds of sites are listed by.
#include "base/alloc.h"
#include "diagnose/outputs/sketch.h"

assay_tensor_t* assay_site_sketch_truth(const assay_search_t* s, const assay_value_t* v) {
  for (size_t k = 0; k < s->n_targets; k++)
    if (s->targets[k].value == v) return s->targets[k].truth;
  return assay_evaluator_get(s->evaluator, v);
}

// Few numbers are told by few elements: what they restore is asked of a sample that took no part.
size_t assay_site_spare(size_t unknowns) {
  return unknowns < ASSAY_SITE_SPARE ? unknowns + 1 : ASSAY_SITE_SPARE;
}

// As many unknowns as there are elements of golden can always be met.
assay_status_t assay_site_add(assay_site_sketch_t* k, assay_site_t site, int64_t elements) {
  const size_t least = site.kind == ASSAY_SITE_OUTPUT ? site.columns / 2 : site.columns;
  if ((int64_t)(least + assay_site_spare(least)) > elements) return assay_free(site.at), NULL;
  assay_status_t st = assay_grow(&k->sites, &k->capacity, k->n + 1, sizeof *k->sites);
  if (st) return assay_free(site.at), st;
  k->sites[k->n++] = site;
  return NULL;
}
