// Settings that no equation tells: whole numbers, words, and thresholds of what is counted or
// chosen.
//
// A whole number may be what another framework calls by the same name: a radius for a size, a
// number of samples on each side for all of them, one less or one more, half or twice as many. A
// list of changes for each setting; each is tried alone, then two of unlike settings together, as
// where a factor is divided by the size, or a mode goes with how positions are counted.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "diagnose/proposals.h"
#include "diagnose/solve/missing.h"

enum { CHANGES = 320, PAIRS = 600 };

typedef struct change {
  const assay_attr_spec_t* attr;  // NULL: constant input `input`
  size_t input;
  size_t of;  // the setting's number
  bool alone;
  int ratio;  // 1, -1: a number that goes with, or against, the whole number that is changed with
              // it
  int64_t i;
  double f;
  const char* text;
} change_t;

typedef struct changes {
  assay_missing_search_t* s;
  change_t at[CHANGES];
  size_t n, settings;
} changes_t;

static void add(changes_t* c, change_t x) {
  x.of = c->settings;
  if (c->n < CHANGES) c->at[c->n++] = x;
}

// ---- whole numbers -----------------------------------------------------------------------------

static void add_whole(changes_t* c, change_t x, int64_t now) {
  // Of what comes out: some whole numbers are its sizes, and many times as much is never right.
  static const int64_t LARGEST = 1 << 12, ELEMENTS = 1 << 21;
  const assay_tensor_t* made = c->s->target->truth;
  if (now < -1 || now > LARGEST || (made && made->size > ELEMENTS)) return;
  const int64_t near[] = {1,
                          2,
                          3,
                          4,
                          0,
                          now - 1,
                          now + 1,
                          2 * now,
                          now / 2,
                          2 * now + 1,
                          2 * now - 1,
                          (now - 1) / 2,
                          (now + 1) / 2,
                          5,
                          6,
                          7,
                          8,
                          now - 2,
                          now + 2,
                          3 * now,
                          now / 3,
                          now * now,
                          9,
                          16,
                          32};
  for (size_t k = 0; k < sizeof near / sizeof *near; k++) {
    bool known = near[k] == now || near[k] < 0 || near[k] > LARGEST;
    for (size_t j = 0; j < k; j++) known |= near[j] == near[k];
    x.i = near[k];
    if (!known) add(c, x);
  }
}

// Neither a type nor an axis, of which others know more, nor what would make another weight.
static bool is_count(const char* name) {
  static const char* const others[] = {"to",       "dtype",      "output_dtype",     "group",
                                       "axis",     "batch_axis", "time_axis",        "num_outputs",
                                       "saturate", "stash_type", "softmax_precision"};
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (strcmp(name, others[i]) == 0) return false;
  return true;
}

// ---- numbers -----------------------------------------------------------------------------------

// Over or times what the node's whole numbers are, or become: a factor that is meant for each of so
// many.
static void add_scaled(changes_t* c, change_t x, double now) {
  const assay_node_t* n = c->s->node;
  for (int i = 0; i < n->schema->n_attrs; i++) {
    const assay_attr_spec_t* a = &n->schema->attrs[i];
    const int64_t k = a->type == ASSAY_ATTR_INT ? assay_attr_i64(n, a->name, 0) : 0;
    if (k < 2 || !is_count(a->name)) continue;
    x.f = now * (double)k;
    add(c, x);
    x.f = now / (double)k;
    add(c, x);
  }
  x.f = now;
  for (x.ratio = -1; x.ratio < 2; x.ratio += 2) add(c, x);
}

// What a threshold is usually given as, the rounder first.
static void add_thresholds(changes_t* c, change_t x, double now) {
  static const double usual[] = {0, 1, 0.25, 0.75, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8, 5e-3};
  x.alone = true;
  for (int k = 1; k < 10; k++) {
    x.f = k / 10.;
    if (x.f != now) add(c, x);
  }
  for (size_t k = 0; k < sizeof usual / sizeof *usual; k++) {
    x.f = usual[k];
    if (x.f != now) add(c, x);
  }
  for (int k = 1; k < 100; k++) {
    x.f = k / 100.;
    if (k % 10 && k != 25 && k != 75 && x.f != now) add(c, x);
  }
}

// ---- the node's settings -----------------------------------------------------------------------

static void list_attr(changes_t* c, const assay_attr_spec_t* a, bool chooses) {
  const assay_node_t* n = c->s->node;
  const size_t before = c->n;
  change_t x = {.attr = a};
  if (a->type == ASSAY_ATTR_INT && is_count(a->name))
    add_whole(c, x, assay_attr_i64(n, a->name, a->has_default ? a->i : 0));
  if (a->type == ASSAY_ATTR_FLOAT) {
    const double now = assay_attr_f64(n, a->name, a->has_default ? a->f : 0);
    if (chooses)
      add_thresholds(c, x, now);
    else
      add_scaled(c, x, now);
  }
  for (size_t k = 0; a->type == ASSAY_ATTR_STRING && (x.text = assay_attr_word(a->name, k)); k++)
    if (strcmp(x.text, assay_attr_str(n, a->name, a->has_default && a->s ? a->s : "")) != 0)
      add(c, x);
  c->settings += c->n > before;
}

static void list_input(changes_t* c, size_t i, bool chooses) {
  const assay_value_t* v = c->s->node->inputs[i];
  const assay_tensor_t* t = c->s->in[i];
  const size_t before = c->n;
  const change_t x = {.input = i};
  const bool fixed = v && (v->constant || (v->producer && v->producer->n_inputs == 0));
  if (!fixed || !t || t->kind != ASSAY_KIND_TENSOR || t->size != 1) return;
  if (t->store == ASSAY_STORE_I64 && t->type != ASSAY_TYPE_BOOL) add_whole(c, x, assay_i64(t)[0]);
  if (t->store == ASSAY_STORE_F64 && chooses) add_thresholds(c, x, assay_f64(t)[0]);
  c->settings += c->n > before;
}

// Whether what comes out is counted or chosen, so that it does not go with a number little by
// little.
static bool is_choice(const assay_missing_search_t* s) {
  const assay_op_t* op = s->node->op;
  return s->target->golden->store == ASSAY_STORE_I64 ||
         (op && s->output < 32 && op->discrete >> s->output & 1) || assay_missing_is_reshaped(s);
}

// ---- trying ------------------------------------------------------------------------------------

static assay_status_t put(const changes_t* c, const change_t* x, assay_repair_t* r) {
  assay_repair_edit_t* e = &r->edits[r->n_edits++];
  const assay_tensor_t* was = x->attr ? NULL : c->s->in[x->input];
  char what[60];
  if (x->text)
    snprintf(what, sizeof what, "'%.40s'", x->text);
  else if (x->attr ? x->attr->type == ASSAY_ATTR_INT : was->store == ASSAY_STORE_I64)
    snprintf(what, sizeof what, "%lld", (long long)x->i);
  else
    snprintf(what, sizeof what, "%.7g", x->f);
  const size_t used = strlen(r->text);
  snprintf(r->text + used, sizeof r->text - used, "%s%.60s = %s", used ? ", " : "",
           x->attr ? x->attr->name : c->s->node->inputs[x->input]->name, what);
  if (!x->attr) {
    *e = (assay_repair_edit_t){.kind = ASSAY_EDIT_CONSTANT, .input = x->input};
    ASSAY_TRY(assay_tensor_create(was->type, was->rank, was->dims, &e->tensor));
    if (was->store == ASSAY_STORE_I64)
      assay_i64(e->tensor)[0] = x->i;
    else
      assay_f64(e->tensor)[0] = x->f;
    return NULL;
  }
  *e = (assay_repair_edit_t){
      .kind = ASSAY_EDIT_ATTR,
      .attr = {.name = x->attr->name, .type = x->attr->type, .n = 1, .doc = "", .ref = ""}};
  if (x->text)
    e->attr.u.s = (assay_string_t){x->text, strlen(x->text)};
  else if (x->attr->type == ASSAY_ATTR_INT)
    e->attr.u.i = x->i;
  else
    e->attr.u.f = (float)x->f;
  return NULL;
}

// with: another change together with it; NULL: none.
static assay_status_t offer(const changes_t* c, const change_t* x, const change_t* with) {
  assay_repair_t r = {.node = c->s->node, .cause = "setting"};
  assay_status_t st = put(c, x, &r);
  if (!st && with) st = put(c, with, &r);
  if (!st) st = assay_missing_offer(c->s, &r);
  assay_repair_deinit(&r);
  return st;
}

// A number that goes with the whole number that is changed with it. False: it does not fit it.
static bool set_ratio(const changes_t* c, change_t* x, const change_t* with) {
  if (!x->ratio) return true;
  const assay_attr_spec_t* a = with->attr;
  if (!a || a->type != ASSAY_ATTR_INT) return false;
  const double was = (double)assay_attr_i64(c->s->node, a->name, a->has_default ? a->i : 0);
  if (!(was > 0) || with->i < 1) return false;
  x->f *= x->ratio > 0 ? (double)with->i / was : was / (double)with->i;
  return true;
}

static assay_status_t try_pair(const changes_t* c, change_t x, change_t y, int* pairs) {
  if (x.of == y.of || x.alone || y.alone || !set_ratio(c, &x, &y) || !set_ratio(c, &y, &x))
    return NULL;
  return ++*pairs > PAIRS ? NULL : offer(c, &x, &y);
}

static assay_status_t try_all(changes_t* c) {
  int pairs = 0;
  for (size_t i = 0; i < c->n && !assay_missing_is_over(c->s); i++)
    if (!c->at[i].ratio) ASSAY_TRY(offer(c, &c->at[i], NULL));
  for (size_t i = 0; i < c->n; i++)
    for (size_t k = i + 1; k < c->n && !assay_missing_is_over(c->s); k++)
      ASSAY_TRY(try_pair(c, c->at[i], c->at[k], &pairs));
  return NULL;
}

assay_status_t assay_missing_discrete(assay_missing_search_t* s) {
  static const double PART = 0.3;  // of the time that is left
  const assay_node_t* n = s->node;
  const double deadline = s->deadline, now = assay_clock_seconds();
  const bool chooses = is_choice(s);
  changes_t* c = NULL;
  if (*n->domain || !n->schema) return NULL;
  ASSAY_TRY(assay_new_array(1, sizeof *c, &c));
  c->s = s;
  for (int i = 0; i < n->schema->n_attrs; i++) list_attr(c, &n->schema->attrs[i], chooses);
  for (size_t i = 0; i < s->n_in; i++) list_input(c, i, chooses);
  s->deadline = now + PART * (deadline - now);
  assay_status_t st = try_all(c);
  // What was taken over meanwhile may have set an earlier end.
  s->deadline =
      fmin(deadline, s->deadline < now + PART * (deadline - now) ? s->deadline : deadline);
  assay_free(c);
  return st;
}
