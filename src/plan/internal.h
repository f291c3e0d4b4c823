// What the files that make plans share.
#ifndef ASSAY_PLAN_INTERNAL_H_
#define ASSAY_PLAN_INTERNAL_H_

#include "plan/plan.h"

struct assay_plan {
  assay_arena_t* arena;
  assay_model_t* model;      // as it was given
  assay_rewrite_t* rewrite;  // NULL: no pass ran
  assay_layers_t layers;
  const assay_plan_recipe_t* recipe;  // in the arena; NULL: not known
  bool restored;
};

// The name of a layer: its node's label, or its first and last one's.
assay_status_t assay_plan_name_layer(const assay_plan_t* plan, assay_layer_t* layer) ASSAY_MUST_USE;

// Remembers what a plan is made by.
assay_status_t plan_keep_recipe(assay_plan_t* plan, const assay_precision_t* precision,
                                const assay_plan_options_t* options, uint64_t seed) ASSAY_MUST_USE;

#endif  // ASSAY_PLAN_INTERNAL_H_
