// Both limits of Clip, at all nodes that have the same ones.
// Sources: limits that an exporter takes for its operator's own, pytorch/executorch pull request
// 18102; A. Howard et al., 2017 (ReLU6); gates within limits, OpenAI, gpt-oss, 2025.
#include "diagnose/outputs/numbers/limits.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "diagnose/outputs/set.h"
#include "diagnose/proposals.h"

// Limits of a node; infinite: none.
typedef struct limits {
  double low, high;
} limits_t;

static bool is_clip(const assay_node_t* n) {
  return !*n->domain && strcmp(n->op_type, "Clip") == 0;
}

static assay_status_t read_limit(const assay_search_t* s, const assay_node_t* n, size_t input,
                                 double* out, bool* out_known) {
  const assay_suspect_t suspect = {.model = s->model, .node = n, .n_in = n->n_inputs};
  assay_tensor_t* x = NULL;
  if (n->n_inputs <= input || !n->inputs[input]) return NULL;
  ASSAY_TRY(assay_suspect_constant(&suspect, input, &x));
  *out_known = x && x->store == ASSAY_STORE_F64 && x->size == 1;
  if (*out_known) *out = assay_f64(x)[0];
  assay_tensor_release(x);
  return NULL;
}

// Up to version 11 limits are attributes.
static assay_status_t read_limits(const assay_search_t* s, const assay_node_t* n, limits_t* out,
                                  bool* out_known) {
  const bool attributes = assay_schema_attr(n->schema, "min") != NULL;
  *out = (limits_t){-HUGE_VAL, HUGE_VAL};
  *out_known = true;
  if (attributes) {
    out->low = assay_attr_f64(n, "min", -HUGE_VAL);
    out->high = assay_attr_f64(n, "max", HUGE_VAL);
    return NULL;
  }
  ASSAY_TRY(read_limit(s, n, 1, &out->low, out_known));
  return *out_known ? read_limit(s, n, 2, &out->high, out_known) : NULL;
}

static assay_status_t set_limit(const assay_node_t* n, size_t input, const char* name, double value,
                                assay_repair_t* r) {
  assay_repair_edit_t* e = &r->edits[r->n_edits++];
  if (assay_schema_attr(n->schema, name)) {
    e->kind = ASSAY_EDIT_ATTR;
    e->attr = (assay_attr_t){
        .name = name, .type = ASSAY_ATTR_FLOAT, .n = 1, .u.f = (float)value, .doc = "", .ref = ""};
    return NULL;
  }
  const assay_value_t* v = n->inputs[0];
  e->kind = ASSAY_EDIT_CONSTANT;
  e->input = input;
  return assay_tensor_scalar_f64(v->type ? v->type->elem : ASSAY_TYPE_FLOAT, (double)(float)value,
                                 &e->tensor);
}

// Where a limit was not there it is not put in: the other one is a matter of usual numbers.
static assay_status_t make(const assay_node_t* n, const limits_t* now, const limits_t* next,
                           assay_repair_t* out) {
  *out = (assay_repair_t){.node = n, .cause = "limits"};
  assay_status_t st = NULL;
  if (isfinite(now->low)) st = set_limit(n, 1, "min", next->low, out);
  if (!st && isfinite(now->high)) st = set_limit(n, 2, "max", next->high, out);
  snprintf(out->text, sizeof out->text, "limits %g and %g instead of %g and %g", next->low,
           next->high, now->low, now->high);
  return st;
}

typedef struct limited {
  assay_trials_t* t;
  const assay_node_t* nodes[ASSAY_SEARCH_FAULTS];
  size_t n;
  limits_t now;
} limited_t;

static assay_status_t try_limits(const limited_t* l, const limits_t* next, assay_fault_t* out,
                                 size_t* out_n) {
  assay_repair_set_t set = {0};
  bool fits = true, restored = false;
  assay_status_t st = NULL;
  for (size_t i = 0; !st && fits && i < l->n; i++) {
    assay_repair_t r;
    st = make(l->nodes[i], &l->now, next, &r);
    if (st)
      assay_repair_deinit(&r);
    else
      st = assay_repair_set_add(&set, &r, &fits);
  }
  if (!st && fits) st = assay_trials_try_set(l->t, &set, &restored);
  if (!st && restored) assay_repair_set_report(l->t, &set, out, out_n);
  assay_repair_set_deinit(&set);
  return st;
}

// All pairs of usual numbers and the model's own.
static assay_status_t try_pairs(const limited_t* l, const double* numbers, size_t n, double end,
                                assay_fault_t* out, size_t* out_n) {
  for (size_t i = 0; i < n; i++)
    for (size_t k = 0; k < 2 * n + 1; k++) {
      // Both sides alike first, then from nothing on, then others.
      const double low = k == 0   ? -numbers[i]
                         : k == 1 ? 0
                         : k % 2  ? -numbers[k / 2]
                                  : numbers[k / 2 - 1];
      const limits_t next = {low, numbers[i]};
      if (!(next.low < next.high) || (next.low == l->now.low && next.high == l->now.high)) continue;
      if (assay_clock_seconds() > end) return NULL;
      ASSAY_TRY(try_limits(l, &next, out, out_n));
      if (*out_n) return NULL;
    }
  return NULL;
}

enum { NUMBERS = 24 };

static void add_number(double x, double* numbers, size_t* n) {
  const double size = fabs(x);
  bool known = !isfinite(x) || size == 0 || *n == NUMBERS;
  for (size_t i = 0; i < *n; i++) known |= numbers[i] == size;
  if (!known) numbers[(*n)++] = size;
}

static assay_status_t list_numbers(const assay_search_t* s, double* numbers, size_t* n) {
  static const double USUAL[] = {6, 1, 2, 3, 4, 5, 8, 10, 0.5, 20, 7};
  for (size_t i = 0; i < s->n_nodes; i++) {
    limits_t x;
    bool known = false;
    if (!is_clip(s->nodes[i])) continue;
    ASSAY_TRY(read_limits(s, s->nodes[i], &x, &known));
    if (known) add_number(x.high, numbers, n);
    if (known) add_number(x.low, numbers, n);
  }
  for (size_t i = 0; i < sizeof USUAL / sizeof *USUAL; i++) add_number(USUAL[i], numbers, n);
  return NULL;
}

// The nodes that have the limits of one; *out_first false: an earlier one has them.
static assay_status_t list_alike(limited_t* l, size_t at, bool* out_first) {
  const assay_search_t* s = l->t->s;
  bool known = false;
  *out_first = false;
  if (!is_clip(s->nodes[at])) return NULL;
  ASSAY_TRY(read_limits(s, s->nodes[at], &l->now, &known));
  if (!known || !(isfinite(l->now.low) && isfinite(l->now.high))) return NULL;
  for (size_t i = 0; i < s->n_nodes; i++) {
    limits_t x;
    if (!is_clip(s->nodes[i])) continue;
    ASSAY_TRY(read_limits(s, s->nodes[i], &x, &known));
    if (!known || x.low != l->now.low || x.high != l->now.high) continue;
    if (i < at || l->n == ASSAY_SEARCH_FAULTS) return NULL;
    l->nodes[l->n++] = s->nodes[i];
  }
  *out_first = true;
  return NULL;
}

assay_status_t assay_search_limits(assay_trials_t* t, double end, assay_fault_t* out,
                                   size_t* out_n) {
  double numbers[NUMBERS];
  size_t n = 0;
  *out_n = 0;
  ASSAY_TRY(list_numbers(t->s, numbers, &n));
  for (size_t i = 0; i < t->s->n_nodes && !*out_n; i++) {
    limited_t l = {.t = t};
    bool first = false;
    ASSAY_TRY(list_alike(&l, i, &first));
    if (first) ASSAY_TRY(try_pairs(&l, numbers, n, end, out, out_n));
  }
  return NULL;
}
