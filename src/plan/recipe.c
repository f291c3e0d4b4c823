// What a plan was made by.
#include <string.h>

#include "base/shown.h"
#include "base/str.h"
#include "formats/format.h"
#include "plan/internal.h"

static assay_status_t copy_names(assay_arena_t* arena, const char* const* from, size_t n,
                                 const char* const** out) {
  const char** names = NULL;
  ASSAY_TRY(assay_arena_new(arena, n, sizeof *names, &names));
  for (size_t i = 0; i < n; i++) ASSAY_TRY(assay_arena_strdup(arena, from[i], &names[i]));
  *out = names;
  return NULL;
}

assay_status_t assay_plan_set_recipe(assay_plan_t* plan, const assay_plan_recipe_t* from) {
  assay_plan_recipe_t* r = NULL;
  ASSAY_TRY(assay_arena_new(plan->arena, 1, sizeof *r, &r));
  *r = *from;
  ASSAY_TRY(assay_arena_strdup(plan->arena, from->rules, &r->rules));
  ASSAY_TRY(copy_names(plan->arena, from->passes.off, from->passes.n_off, &r->passes.off));
  if (from->passes.only)
    ASSAY_TRY(assay_arena_strdup(plan->arena, from->passes.only, &r->passes.only));
  plan->recipe = r;
  plan->layers.assign_layouts =
      r->fused && assay_pass_is_wanted(&r->passes, &assay_pass_layout_assignment);
  plan->layers.fp32 = from->fp32;
  return NULL;
}

static assay_format_t format_of(const assay_precision_t* p, int id) {
  if (p->given && p->given[id]) return p->given[id];
  return p->pinned && p->pinned[id] ? p->pinned_format : ASSAY_FORMAT_NONE;
}

// Rules for the nodes whose formats are given, after the others.
static void print_given(const assay_model_t* m, const assay_precision_t* p, assay_str_t* out) {
  for (size_t g = 0; (p->pinned || p->given) && g < m->n_graphs; g++) {
    for (size_t i = 0; i < m->graphs[g]->n_nodes; i++) {
      const assay_node_t* n = m->graphs[g]->nodes[i];
      if (!format_of(p, n->id)) continue;
      if (out->len) assay_str_append(out, ",");
      assay_precision_print(&n, 1, format_of(p, n->id), out);
    }
  }
}

assay_status_t plan_keep_recipe(assay_plan_t* plan, const assay_precision_t* precision,
                                const assay_plan_options_t* options, uint64_t seed) {
  assay_str_t rules = {0};
  for (size_t i = 0; i < precision->n_rules; i++)
    assay_str_printf_raw(&rules, "%s%s:%s", i ? "," : "", precision->rules[i].pattern,
                         assay_format_name(precision->rules[i].format));
  print_given(plan->model, precision, &rules);
  const assay_plan_recipe_t r = {.fused = options && options->fused,
                                 .format = precision->format,
                                 .accumulator = precision->accumulator,
                                 .rules = assay_str_get(&rules),
                                 .passes = options ? options->passes : (assay_pass_options_t){0},
                                 .seed = seed,
                                 .fp32 = plan->layers.fp32};
  assay_status_t st = assay_str_status(&rules);
  if (!st) st = assay_plan_set_recipe(plan, &r);
  assay_str_deinit(&rules);
  return st;
}

const assay_plan_recipe_t* assay_plan_recipe(const assay_plan_t* plan) { return plan->recipe; }

assay_model_t* assay_plan_source(const assay_plan_t* plan) {
  return plan->restored ? NULL : plan->model;
}

assay_status_t assay_plan_create_by(assay_model_t* model, const assay_plan_recipe_t* r,
                                    assay_plan_t** out) {
  assay_precision_t precision = {.format = r->format, .accumulator = r->accumulator};
  const assay_plan_options_t options = {.fused = r->fused, .passes = r->passes, .fp32 = r->fp32};
  assay_status_t st = *r->rules ? assay_precision_parse(&precision, r->rules) : NULL;
  if (!st) st = assay_plan_create(model, &precision, &options, r->seed, out);
  assay_precision_deinit(&precision);
  return st;
}
