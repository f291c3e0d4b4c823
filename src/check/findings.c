// What a public check has found: functions of include/assay/check.h in place of fields.
#include <assay/check.h>
#include <math.h>
#include <string.h>

#include "check/check_public.h"
#include "passes/float_types.h"

static assay_status_t no_such(const char* what, size_t i, size_t n) {
  return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "there is no %s %zu; there are %zu", what, i, n);
}

// Gives as much of a struct as the caller has room for; its first field is that size.
static void give(void* out, const void* full, size_t full_size) {
  size_t size;
  memcpy(&size, out, sizeof size);
  const size_t n = size < full_size ? size : full_size;
  memcpy(out, full, n);
  memcpy(out, &size, sizeof size);
}

bool assay_check_faithful(const assay_check_t* c) { return c->faithful; }
assay_blame_t assay_check_blame(const assay_check_t* c) { return c->blame; }
const char* assay_check_unmet(const assay_check_t* c) { return assay_str_get(&c->unmet); }

// ---- outputs ------------------------------------------------------------------------------------

// Where one side is not finite and the other is, no finite number tells the error.
static double number(const assay_error_sum_t* e, double x) {
  return e->mismatched ? (double)NAN : x;
}

static assay_check_output_t output_of(const assay_output_check_t* o) {
  const assay_error_sum_t* e = &o->error;
  assay_check_output_t full = {.struct_size = sizeof full,
                               .name = o->value->name,
                               .faithful = o->faithful,
                               .is_float = o->is_float,
                               .elements = o->elements,
                               .differing = o->is_float ? e->mismatched : o->differing,
                               .nan = e->nan,
                               .inf = e->inf,
                               .has_golden = o->has_golden};
  if (o->is_float) {
    full.max_abs = number(e, e->max_abs);
    full.max_rel = number(e, e->max_rel);
    full.rms = number(e, assay_error_sum_rms(e));
    full.cosine = number(e, assay_error_sum_cosine(e));
    full.snr_db = number(e, assay_error_sum_snr_db(e));
  }
  if (o->has_golden) {
    full.golden_max_abs = number(&o->golden, o->golden.max_abs);
    full.golden_snr_db = number(&o->golden, assay_error_sum_snr_db(&o->golden));
  }
  return full;
}

size_t assay_check_output_count(const assay_check_t* c) { return c->account ? c->n_outputs : 0; }

assay_status_t assay_check_output(const assay_check_t* c, size_t i, assay_check_output_t* out) {
  const size_t n = assay_check_output_count(c);
  if (i >= n) return no_such("output", i, n);
  const assay_check_output_t full = output_of(&c->outputs[i]);
  give(out, &full, sizeof full);
  return NULL;
}

// ---- layers -------------------------------------------------------------------------------------

size_t assay_check_layer_count(const assay_check_t* c) {
  return c->account ? assay_account_layer_count(c->account) : 0;
}

static const assay_node_t* const* nodes_of(const assay_layer_account_t* a, size_t* out_n) {
  *out_n = a->layer ? a->layer->n_nodes : 1;
  return a->layer ? a->layer->nodes : &a->node;
}

// Node k of the model as it was given that the layer stands for, *out_n: of how many.
static const char* node_of(const assay_check_t* c, const assay_layer_account_t* a, size_t k,
                           size_t* out_n) {
  size_t n;
  const char* found = NULL;
  const assay_node_t* const* nodes = nodes_of(a, &n);
  *out_n = 0;
  for (size_t i = 0; i < n; i++) {
    const assay_origins_t o = assay_plan_origins(c->plan, &nodes[i]);
    if (k >= *out_n && k - *out_n < o.n) found = o.nodes[k - *out_n]->label;
    *out_n += o.n;
  }
  return found;
}

assay_status_t assay_check_layer(const assay_check_t* c, size_t i, assay_check_layer_t* out) {
  const size_t n = assay_check_layer_count(c);
  if (i >= n) return no_such("layer", i, n);
  const assay_layer_account_t* a = assay_account_layer(c->account, i);
  assay_check_layer_t full = {
      .struct_size = sizeof full,
      .name = a->layer ? a->layer->name : a->node->label,
      .op = a->node->op_type,
      .verdict = a->verdict,
      .format = a->storage,
      .runs = a->runs,
      .own_rms = number(&a->own, assay_error_sum_rms(&a->own)),
      .own_max = number(&a->own, a->own.max_abs),
      .inherited_rms = number(&a->inherited, assay_error_sum_rms(&a->inherited)),
      .inherited_max = number(&a->inherited, a->inherited.max_abs),
      .truth_max = a->truth_max,
      .own_over_probable = assay_judgement_ratio(&a->judged),
      .elements = a->judged.elements,
      .beyond = a->judged.beyond,
      .overflowed = a->judged.overflowed,
      .underflowed = a->judged.underflowed,
      .born_nan = a->judged.born_nan,
      .flipped = a->flipped};
  node_of(c, a, 0, &full.n_nodes);
  give(out, &full, sizeof full);
  return NULL;
}

const char* assay_check_layer_node(const assay_check_t* c, size_t i, size_t k) {
  size_t n;
  if (i >= assay_check_layer_count(c)) return NULL;
  return node_of(c, assay_account_layer(c->account, i), k, &n);
}

// ---- culprits and faults of the export ----------------------------------------------------------

static size_t number_of(const assay_check_t* c, const assay_layer_account_t* a) {
  size_t i = 0;
  while (assay_account_layer(c->account, i) != a) i++;
  return i;
}

static const char* constant_name(const assay_odd_constant_t* o) {
  return o->value ? o->value->name : o->attribute;
}

size_t assay_check_culprit_count(const assay_check_t* c) { return c->culprits.n; }

assay_status_t assay_check_culprit(const assay_check_t* c, size_t i, assay_check_culprit_t* out) {
  if (i >= c->culprits.n) return no_such("culprit", i, c->culprits.n);
  const assay_culprit_t* u = &c->culprits.at[i];
  assay_check_culprit_t full = {.struct_size = sizeof full,
                                .verdict = u->verdict,
                                .seen = u->seen,
                                .share = u->share,
                                .why = u->why};
  full.layer = number_of(c, u->account);
  if (u->constant) {
    full.constant = constant_name(u->constant->odd);
    full.constant_from = u->constant->odd->example;
    full.constant_becomes = u->constant->odd->becomes;
    full.shows = number_of(c, u->constant->shows);
  }
  give(out, &full, sizeof full);
  return NULL;
}

size_t assay_check_fault_count(const assay_check_t* c) { return c->export.n; }

assay_status_t assay_check_fault(const assay_check_t* c, size_t i, assay_check_fault_t* out) {
  if (i >= c->export.n) return no_such("fault", i, c->export.n);
  const assay_fault_t* f = &c->export.faults[i];
  const assay_check_fault_t full = {.struct_size = sizeof full,
                                    .node = f->node->label,
                                    .op = f->node->op_type,
                                    .value = f->value->name,
                                    .cause = f->has_repair ? f->repair.cause : NULL,
                                    .repair = f->has_repair ? f->repair.text : NULL,
                                    .restored = f->restored};
  give(out, &full, sizeof full);
  return NULL;
}

// ---- the fix ------------------------------------------------------------------------------------

const char* assay_fix_choice_name(assay_fix_choice_t choice) {
  static const char* const names[] = {"any", "fewest", "best"};
  return names[choice];
}

size_t assay_check_fix_count(const assay_check_t* c) { return c->has_fix ? c->fix.n_nodes : 0; }

const char* assay_check_fix_node(const assay_check_t* c, size_t i) {
  return i < assay_check_fix_count(c) ? c->fix.nodes[i]->label : NULL;
}

assay_format_t assay_check_fix_format(const assay_check_t* c) {
  return assay_check_fix_count(c) ? c->fix.format : ASSAY_FORMAT_NONE;
}

bool assay_check_fix_verified(const assay_check_t* c) { return c->has_fix && c->fix.verified; }
int assay_check_fix_runs(const assay_check_t* c) { return c->fix.runs; }

assay_status_t assay_check_fix_output(const assay_check_t* c, size_t i, assay_check_output_t* out) {
  const size_t n = c->has_fix && c->fix.outputs ? c->n_outputs : 0;
  if (i >= n) return no_such("output of a verifying run", i, n);
  const assay_check_output_t full = output_of(&c->fix.outputs[i]);
  give(out, &full, sizeof full);
  return NULL;
}

// ---- other constants ----------------------------------------------------------------------------

size_t assay_check_mended_count(const assay_check_t* c) {
  return c->mended.outputs ? c->mended.n : 0;
}

assay_status_t assay_check_mended(const assay_check_t* c, size_t i, assay_check_mended_t* out) {
  const size_t n = assay_check_mended_count(c);
  const assay_mended_t* m = &c->mended;
  if (i >= n) return no_such("constant", i, n);
  const assay_odd_constant_t* o = m->of[i]->odd;
  const assay_check_mended_t full = {.struct_size = sizeof full,
                                     .node = m->repairs[i].node->label,
                                     .name = constant_name(o),
                                     .from = o->example,
                                     .to = assay_mended_number(o->format, o->example, m->attempt)};
  give(out, &full, sizeof full);
  return NULL;
}

assay_status_t assay_check_mended_output(const assay_check_t* c, size_t i,
                                         assay_check_output_t* out) {
  const size_t n = c->mended.outputs ? c->n_outputs : 0;
  if (i >= n) return no_such("output of a verifying run", i, n);
  const assay_check_output_t full = output_of(&c->mended.outputs[i]);
  give(out, &full, sizeof full);
  return NULL;
}

// ---- the two fixes ------------------------------------------------------------------------------

static const assay_fix_t* fix_of(const assay_check_t* c, assay_fix_choice_t which) {
  if (!c->has_fix || (which != ASSAY_FIX_FEWEST && which != ASSAY_FIX_BEST)) return NULL;
  return assay_fix_front_get(&c->front, &c->fix, which);
}

assay_status_t assay_check_fix(const assay_check_t* c, assay_fix_choice_t which,
                               assay_check_fix_t* out) {
  const assay_fix_t* f = fix_of(c, which);
  if (!f)
    return ASSAY_ERROR(ASSAY_NOT_FOUND,
                       "the check has found no such fix; options.fix says whether both are looked "
                       "for");
  const assay_check_fix_t full = {.struct_size = sizeof full,
                                  .n_nodes = f->n_nodes,
                                  .verified = f->verified,
                                  .chosen = f == &c->fix,
                                  .time = assay_fix_front_time(&c->front, which)};
  give(out, &full, sizeof full);
  return NULL;
}

const char* assay_check_fix_node_of(const assay_check_t* c, assay_fix_choice_t which, size_t i) {
  const assay_fix_t* f = fix_of(c, which);
  return f && i < f->n_nodes ? f->nodes[i]->label : NULL;
}

assay_status_t assay_check_fix_output_of(const assay_check_t* c, assay_fix_choice_t which, size_t i,
                                         assay_check_output_t* out) {
  const assay_fix_t* f = fix_of(c, which);
  const size_t n = f && f->outputs ? c->n_outputs : 0;
  if (i >= n) return no_such("output of a verifying run", i, n);
  const assay_check_output_t full = output_of(&f->outputs[i]);
  give(out, &full, sizeof full);
  return NULL;
}

// By --precision or as the model declares. ONNX's operators take bfloat16 from set 13 on.
bool assay_check_fix_has_model(const assay_check_t* c) {
  const assay_format_t f = c->options.precision.format;
  if (!assay_check_fix_count(c)) return false;
  if (f == ASSAY_FORMAT_BF16 && assay_model_opset(c->model, "") < 13) return false;
  if (f != ASSAY_FORMAT_FP32) return f == ASSAY_FORMAT_FP16 || f == ASSAY_FORMAT_BF16;
  return assay_float_types_has_narrow(c->model);
}
