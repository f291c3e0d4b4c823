// The audits together: ranges with their witness, broadcasts, constants, operators.
#include "ranges/audit.h"

#include "base/alloc.h"

void assay_audit_deinit(assay_audit_t* a) {
  assay_witness_deinit(&a->witness);
  assay_ranges_deinit(&a->ranges);
  assay_broadcasts_deinit(&a->broadcasts);
  assay_odd_constants_deinit(&a->constants);
  assay_support_deinit(&a->support);
  assay_box_deinit(&a->box);
  assay_plan_destroy(a->plan);
  assay_model_release(a->model);
  assay_model_release(a->open);
  assay_str_deinit(&a->ones);
  assay_str_deinit(&a->saved);
  *a = (assay_audit_t){0};
}

typedef struct stage {
  const assay_audit_job_t* options;
  const char* what;
} stage_t;

static void show(void* user, double fraction) {
  const stage_t* s = user;
  if (s->options->progress) s->options->progress(s->options->user, s->what, fraction);
}

static bool has_floats(const assay_box_t* b) {
  bool any = false;
  for (size_t i = 0; i < b->n; i++) any |= b->inputs[i].value && b->inputs[i].is_float;
  return any;
}

static assay_status_t audit_ranges(const assay_audit_job_t* o, assay_audit_t* a) {
  stage_t stage = {o, "finding ranges"};
  assay_ranges_options_t how = {.progress = show, .user = &stage};
  ASSAY_TRY(assay_ranges_find(a->plan, &a->box, &how, &a->ranges));
  if (!o->no_radius && has_floats(&a->box)) {
    stage.what = "finding the largest safe box";
    ASSAY_TRY(assay_ranges_radius(a->plan, &a->box, a->ranges.n_hazards == 0, &how, &a->radius));
    a->has_radius = true;
  }
  if (o->no_witness || a->ranges.n_hazards == a->ranges.n_unknown) return NULL;
  stage.what = "looking for a witness";
  const assay_witness_options_t search = {.seconds = o->seconds,
                                          .seed = o->seed,
                                          .samples = o->samples,
                                          .progress = show,
                                          .user = &stage};
  a->searched = true;
  return assay_witness_find(a->plan, &a->box, &a->ranges, &search, &a->witness);
}

assay_status_t assay_audit_find(assay_model_t* open, assay_model_t* model,
                                const assay_audit_job_t* options, assay_audit_t* out) {
  assay_audit_t a = {0};
  assay_status_t st = assay_plan_create(model, options->precision, NULL, options->seed, &a.plan);
  if (!st) st = assay_box_create(model, options->boxes, options->n_boxes, options->samples, &a.box);
  if (!st) st = assay_broadcasts_find(open, &a.broadcasts);
  if (!st) st = assay_odd_constants_find(a.plan, &a.constants);
  if (!st) st = assay_support_find(a.plan, &a.support);
  if (!st) st = audit_ranges(options, &a);
  if (st) return assay_audit_deinit(&a), st;
  *out = a;
  return NULL;
}
