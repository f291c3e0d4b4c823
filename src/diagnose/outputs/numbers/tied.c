// Numbers that go together, as groups of places that have one key.
#include "diagnose/outputs/numbers/tied.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/functions.h"
#include "diagnose/causes/chains.h"
#include "diagnose/outputs/set.h"
#include "diagnose/proposals.h"
#include "diagnose/search_joint.h"

// ---- places ------------------------------------------------------------------------------------

// What a group is of, in the order in which groups are tried.
typedef enum kind {
  NUMBER,    // single numbers that are equal, or each other's reciprocal: one factor
  ARRAY,     // arrays of one shape at one kind of operator: one factor
  FACTORS,   // twins: one factor after each
  SAME,      // arrays and numbers that are equal: other forms of them
  SUMMANDS,  // twins: a summand after each, all their own
} kind_t;

typedef struct place {
  kind_t kind;
  uint64_t key;
  size_t position, input;
  double number;  // of NUMBER
} place_t;

typedef struct group {
  kind_t kind;
  size_t first, n;  // among the places
  double merit;
} group_t;

typedef struct places {
  const assay_search_t* s;
  const assay_surroundings_t* around;
  place_t* at;
  size_t n, capacity;
} places_t;

// FNV-1a (G. Fowler, L. C. Noll, K.-P. Vo).
static uint64_t add_bytes(uint64_t h, const void* bytes, size_t n) {
  const unsigned char* at = bytes;
  for (size_t i = 0; i < n; i++) h = (h ^ at[i]) * 0x100000001b3U;
  return h;
}

static uint64_t begin_key(kind_t kind) {
  return add_bytes(0xcbf29ce484222325U, &kind, sizeof kind);
}

static bool is_float(const assay_tensor_t* t) {
  return t && t->kind == ASSAY_KIND_TENSOR && t->store == ASSAY_STORE_F64 && t->size > 0;
}

static assay_status_t add(places_t* p, place_t place) {
  ASSAY_TRY(assay_grow(&p->at, &p->capacity, p->n + 1, sizeof *p->at));
  p->at[p->n++] = place;
  return NULL;
}

// p and 1 / p have one key, but not 2 and -2.
static uint64_t key_of_number(double x) {
  const double size = fabs(assay_log(fabs(x)));
  const int64_t rounded = (int64_t)floor(size * 1e5 + 0.5);
  const bool negative = x < 0;
  uint64_t h = add_bytes(begin_key(NUMBER), &rounded, sizeof rounded);
  return add_bytes(h, &negative, sizeof negative);
}

static assay_status_t add_constant(places_t* p, size_t position, size_t input,
                                   const assay_tensor_t* x) {
  enum { LARGEST = 1 << 16, FORMS_OF = 1 << 12 };
  const assay_node_t* n = p->s->nodes[position];
  if (!is_float(x) || x->size > LARGEST) return NULL;
  uint64_t h = add_bytes(begin_key(SAME), x->data, (size_t)x->size * sizeof(double));
  if (x->size <= FORMS_OF && assay_f64(x)[0] != 0)
    ASSAY_TRY(add(p, (place_t){SAME, h, position, input, 0}));
  if (x->size == 1) {
    const double number = assay_f64(x)[0];
    if (number == 0 || !isfinite(number)) return NULL;
    return add(p, (place_t){NUMBER, key_of_number(number), position, input, number});
  }
  h = add_bytes(begin_key(ARRAY), n->op_type, strlen(n->op_type));
  h = add_bytes(h, x->dims, (size_t)x->rank * sizeof *x->dims);
  return add(p, (place_t){ARRAY, add_bytes(h, &input, sizeof input), position, input, 0});
}

// These only hand on what others make.
static bool only_moves(const assay_node_t* n) {
  static const char* const ops[] = {"Transpose", "Reshape", "Squeeze",  "Unsqueeze", "Slice",
                                    "Split",     "Flatten", "Identity", "Dropout",   "Cast",
                                    "Expand",    "Concat",  "Constant", "Gather",    NULL};
  for (const char* const* name = ops; *name; name++)
    if (strcmp(n->op_type, *name) == 0) return true;
  return false;
}

static assay_status_t add_node(places_t* p, size_t position) {
  const assay_node_t* n = p->s->nodes[position];
  const assay_suspect_t s = {.model = p->s->model, .node = n, .n_in = n->n_inputs};
  if (strcmp(n->op_type, "Constant") == 0) return NULL;
  for (size_t i = 0; i < n->n_inputs; i++) {
    assay_tensor_t* x = NULL;
    if (!n->inputs[i] || !assay_around_is_constant(n->inputs[i])) continue;
    ASSAY_TRY(assay_suspect_constant(&s, i, &x));
    assay_status_t st = add_constant(p, position, i, x);
    assay_tensor_release(x);
    ASSAY_TRY(st);
  }
  const assay_value_t* y = n->n_outputs ? n->outputs[0] : NULL;
  const assay_tensor_t* made = y ? assay_evaluator_get(p->s->evaluator, y) : NULL;
  if (!made || made->kind != ASSAY_KIND_TENSOR || !assay_type_is_float(made->type) || only_moves(n))
    return NULL;
  const uint64_t role = p->around->role[n->id];
  ASSAY_TRY(add(p, (place_t){FACTORS, role, position, 0, 0}));
  return add(p, (place_t){SUMMANDS, role, position, 0, 0});
}

static int by_group(const void* a, const void* b) {
  const place_t *x = a, *y = b;
  if (x->kind != y->kind) return x->kind < y->kind ? -1 : 1;
  if (x->key != y->key) return x->key < y->key ? -1 : 1;
  if (x->position != y->position) return x->position < y->position ? -1 : 1;
  return x->input < y->input ? -1 : x->input > y->input;
}

// Of a node one place of each key counts.
static void drop_copies(places_t* p) {
  size_t kept = 0;
  for (size_t i = 0; i < p->n; i++) {
    const place_t *last = kept ? &p->at[kept - 1] : NULL, *now = &p->at[i];
    if (last && last->kind == now->kind && last->key == now->key && last->position == now->position)
      continue;
    p->at[kept++] = *now;
  }
  p->n = kept;
}

// ---- groups ------------------------------------------------------------------------------------

// Kind after kind; of one the groups first whose nodes took most away when they were changed.
static int by_turn(const void* a, const void* b) {
  const group_t *x = a, *y = b;
  if (x->kind != y->kind) return x->kind < y->kind ? -1 : 1;
  if (x->merit != y->merit) return x->merit > y->merit ? -1 : 1;
  return x->first < y->first ? -1 : x->first > y->first;
}

// Whether a node's output goes into another one, through two others at most.
static bool leads_to(const assay_node_t* a, const assay_node_t* b, int through) {
  for (size_t i = 0; i < b->n_inputs; i++) {
    const assay_node_t* by = b->inputs[i] ? b->inputs[i]->producer : NULL;
    if (by && (by == a || (through > 0 && leads_to(a, by, through - 1)))) return true;
  }
  return false;
}

// Of what is the same everywhere, that in one formula may be wrong: the places of a group are
// ordered by formula, and each is a group of its own, too.
static void add_formulas(const places_t* p, const group_t* whole, group_t* out, size_t* out_n) {
  enum { FEW = 16, THROUGH = 2 };
  const size_t n = whole->n, last = whole->first + n;
  if (n < 3 || n > FEW) return;
  const size_t before = *out_n;
  for (size_t first = whole->first, end; first < last; first = end) {
    end = first + 1;
    for (size_t i = end; i < last; i++) {
      bool joined = false;
      for (size_t k = first; k < end && !joined; k++) {
        const assay_node_t *a = p->s->nodes[p->at[k].position], *b = p->s->nodes[p->at[i].position];
        joined = leads_to(a, b, THROUGH) || leads_to(b, a, THROUGH);
      }
      if (!joined) continue;
      const place_t found = p->at[i];
      p->at[i] = p->at[end];
      p->at[end++] = found;
      i = end - 1;
    }
    if (end - first < n)
      out[(*out_n)++] =
          (group_t){.kind = SAME, .first = first, .n = end - first, .merit = whole->merit};
  }
  // One node alone is what other rows change.
  size_t kept = before;
  for (size_t i = before; i < *out_n; i++)
    if (out[i].n > 1) out[kept++] = out[i];
  *out_n = kept;
}

static assay_status_t list_groups(const assay_trials_t* t, places_t* p, group_t** out,
                                  size_t* out_n) {
  ASSAY_TRY(assay_new_array(2 * p->n, sizeof **out, out));
  for (size_t i = 0, end; i < p->n; i = end) {
    group_t g = {.kind = p->at[i].kind, .first = i};
    for (end = i; end < p->n && p->at[end].kind == p->at[i].kind && p->at[end].key == p->at[i].key;
         end++)
      g.merit = fmax(g.merit, t->merit[p->at[end].position]);
    g.n = end - i;
    const size_t most = g.kind == SUMMANDS ? ASSAY_JOINT_NUMBERS : ASSAY_SEARCH_FAULTS;
    if (g.n > 1 && g.n <= most) (*out)[(*out_n)++] = g;
    if (g.kind == SAME) add_formulas(p, &g, *out, out_n);
  }
  if (*out_n) qsort(*out, *out_n, sizeof **out, by_turn);
  return NULL;
}

// ---- repairs -----------------------------------------------------------------------------------

static assay_status_t constant_of(const places_t* p, const place_t* at, assay_tensor_t** out) {
  const assay_node_t* n = p->s->nodes[at->position];
  const assay_suspect_t s = {.model = p->s->model, .node = n, .n_in = n->n_inputs};
  return assay_suspect_constant(&s, at->input, out);
}

// A factor of a constant, or a factor or summand after a node, that is fitted.
static assay_status_t make(const places_t* p, const place_t* at, bool turned, assay_repair_t* out) {
  static const assay_chain_step_t factor[ASSAY_CHAIN_STEPS] = {
      {.op_type = "Mul", .of = {ASSAY_START, {ASSAY_OPERAND_TENSOR, 0, 0, NULL}}}};
  static const assay_chain_step_t summand[ASSAY_CHAIN_STEPS] = {
      {.op_type = "Add", .of = {ASSAY_START, {ASSAY_OPERAND_TENSOR, 0, 0, NULL}}}};
  static const double NEXT_TO_NOTHING = 1e-6;  // what a summand begins at
  const assay_node_t* n = p->s->nodes[at->position];
  *out = (assay_repair_t){.node = n, .cause = "numbers that go together", .n_edits = 1};
  out->fits = true;
  out->start = out->value = at->kind == SUMMANDS ? NEXT_TO_NOTHING : 1;
  assay_repair_edit_t* e = &out->edits[0];
  if (at->kind == NUMBER || at->kind == ARRAY) {
    e->kind = ASSAY_EDIT_CONSTANT;
    e->input = at->input;
    return constant_of(p, at, &e->tensor);
  }
  const assay_tensor_t* made = assay_evaluator_get(p->s->evaluator, n->outputs[0]);
  assay_chain_edit(e, at->kind == SUMMANDS ? summand : factor, made);
  // Far from what it is a fit may not find the way: then from as much as there is.
  if (turned) out->start = out->value = fmax(assay_difference(made, made).ref_rms, NEXT_TO_NOTHING);
  return assay_tensor_scalar_f64(made->type, out->start, &e->tensor);
}

// Of two numbers whether the second is the reciprocal of the first; of 1 both may be meant.
static bool is_reciprocal(const place_t* at, size_t n, size_t i, bool turned) {
  const double a = at[0].number, b = at[i].number;
  if (at->kind != NUMBER) return false;
  if (fabs(a * a - 1) < 1e-5) return turned && n == 2 && i == 1;
  return fabs(a * b - 1) < fabs(b / a - 1);
}

static assay_status_t fit(assay_trials_t* t, const places_t* p, const group_t* g, bool turned,
                          double end, assay_fault_t* out, size_t* out_n) {
  signed char ties[ASSAY_SEARCH_FAULTS];
  assay_joint_group_t joint = {.n = g->n, .ties = ties};
  const place_t* at = &p->at[g->first];
  size_t trials = 0;
  assay_status_t st = assay_new_array(g->n, sizeof *joint.repairs, &joint.repairs);
  if (g->kind == SUMMANDS) joint.ties = NULL;
  for (size_t i = 0; !st && i < g->n; i++) {
    ties[i] = is_reciprocal(at, g->n, i, turned) ? -1 : 1;
    st = make(p, &at[i], turned && g->kind == SUMMANDS, &joint.repairs[i]);
  }
  if (!st) st = assay_search_joint_fit(t->s, &joint, end, out, out_n, &trials);
  t->s->trials += trials;
  for (size_t i = 0; joint.repairs && i < g->n; i++) assay_repair_deinit(&joint.repairs[i]);
  assay_free(joint.repairs);
  if (st)
    for (size_t i = 0; i < *out_n; i++) assay_repair_deinit(&out[i].repair);
  if (st) *out_n = 0;
  return st || !*out_n ? st : assay_repair_set_confirm(t, out, out_n);
}

// ---- other forms of what is the same -----------------------------------------------------------

static double one_step_more(double x) { return 1 / (1 / x + 1); }
static double one_step_less(double x) { return 1 / (1 / x - 1); }
static double inverse(double x) { return 1 / x; }
static double squared(double x) { return x * x; }
static double root(double x) { return sqrt(x); }
static double one_more(double x) { return x + 1; }
static double one_less(double x) { return x - 1; }
static double rest(double x) { return 1 - x; }
static double rest_of_two(double x) { return 2 - x; }
static double halved(double x) { return x / 2; }
static double doubled(double x) { return 2 * x; }
static double opposite(double x) { return -x; }

// Steps between so many levels or places, where both ends count or not; deviations and variances;
// a part and the rest; whole and half widths.
static const struct {
  const char* text;
  double (*f)(double);
} forms[] = {
    {"one more step in", one_step_more},
    {"one step less in", one_step_less},
    {"the reciprocal of", inverse},
    {"the square of", squared},
    {"the root of", root},
    {"1 more than", one_more},
    {"1 less than", one_less},
    {"1 less", rest},
    {"2 less", rest_of_two},  // below nothing: I.-K. Yeo and R. A. Johnson, 2000
    {"half of", halved},
    {"twice", doubled},
    {"the opposite of", opposite},
};

static assay_status_t make_form(const places_t* p, const place_t* at, size_t form,
                                assay_repair_t* out, bool* out_fits) {
  const assay_node_t* n = p->s->nodes[at->position];
  assay_tensor_t *x = NULL, *y = NULL;
  ASSAY_TRY(constant_of(p, at, &x));
  assay_status_t st = assay_tensor_copy(x, &y);
  *out = (assay_repair_t){.node = n, .cause = "numbers that go together", .n_edits = 1};
  out->edits[0].kind = ASSAY_EDIT_CONSTANT;
  out->edits[0].input = at->input;
  out->edits[0].tensor = y;
  for (int64_t i = 0; !st && i < x->size; i++) {
    const double now = (double)(float)forms[form].f(assay_f64(x)[i]);
    *out_fits &= isfinite(now);
    assay_f64(y)[i] = now;
  }
  snprintf(out->text, sizeof out->text, "%s '%.100s' in place of it", forms[form].text,
           n->inputs[at->input]->name);
  assay_tensor_release(x);
  return st;
}

static assay_status_t try_form(assay_trials_t* t, const places_t* p, const group_t* g, size_t form,
                               assay_fault_t* out, size_t* out_n) {
  assay_repair_set_t set = {0};
  bool fits = true, restored = false;
  assay_status_t st = NULL;
  for (size_t i = 0; !st && fits && i < g->n; i++) {
    assay_repair_t r;
    st = make_form(p, &p->at[g->first + i], form, &r, &fits);
    if (st || !fits) {
      assay_repair_deinit(&r);
      break;
    }
    st = assay_repair_set_add(&set, &r, &fits);
  }
  if (!st && fits) st = assay_trials_try_set(t, &set, &restored);
  if (!st && restored) assay_repair_set_report(t, &set, out, out_n);
  assay_repair_set_deinit(&set);
  return st;
}

// ---- the whole ---------------------------------------------------------------------------------

static assay_status_t try_group(assay_trials_t* t, const places_t* p, const group_t* g, double end,
                                assay_fault_t* out, size_t* out_n) {
  assay_status_t st = NULL;
  if (g->kind != SAME) st = fit(t, p, g, false, end, out, out_n);
  if (!st && !*out_n &&
      (g->kind == SUMMANDS ||
       (g->kind == NUMBER && is_reciprocal(&p->at[g->first], g->n, 1, true))))
    st = fit(t, p, g, true, end, out, out_n);
  if (g->kind != SAME) return st;
  for (size_t k = 0; !st && !*out_n && k < sizeof forms / sizeof *forms; k++)
    if (assay_clock_seconds() < end) st = try_form(t, p, g, k, out, out_n);
  return st;
}

assay_status_t assay_search_tied(assay_trials_t* t, const assay_surroundings_t* around, double end,
                                 assay_fault_t* out, size_t* out_n) {
  places_t p = {.s = t->s, .around = around};
  group_t* groups = NULL;
  size_t n = 0;
  assay_status_t st = NULL;
  *out_n = 0;
  for (size_t i = 0; !st && i < t->s->n_nodes; i++) st = add_node(&p, i);
  if (!st && p.n) qsort(p.at, p.n, sizeof *p.at, by_group);
  if (!st) drop_copies(&p);
  if (!st) st = list_groups(t, &p, &groups, &n);
  for (size_t i = 0; !st && i < n && !*out_n && assay_clock_seconds() < end; i++)
    st = try_group(t, &p, &groups[i], end, out, out_n);
  assay_free(groups);
  assay_free(p.at);
  return st;
}
