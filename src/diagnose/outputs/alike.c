// One slip in several nodes.
#include "diagnose/outputs/alike.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "diagnose/outputs/set.h"

// ---- what is the same slip ----------------------------------------------------------------------

// Whether an axis of a constant is that of what comes out: both a product's weight and the bias
// that another node adds to it have one.
static bool is_out_axis(const assay_node_t* n, size_t input, const assay_tensor_t* x, int axis) {
  if (x->rank == 1) return true;
  if (strcmp(n->op_type, "Gemm") == 0)
    return input == 1 && axis == (assay_attr_i64(n, "transB", 0) ? 0 : 1);
  if (strcmp(n->op_type, "Conv") == 0) return axis == 0;
  if (strcmp(n->op_type, "ConvTranspose") == 0) return axis == 1;
  return axis == x->rank - 1;
}

static uint64_t add_byte(uint64_t h, unsigned char c) { return (h ^ c) * 0x100000001b3U; }

static uint64_t add_text(uint64_t h, const char* text) {
  for (; *text; text++) h = add_byte(h, (unsigned char)*text);
  return h;
}

// What is lost before an input of the model is lost for all that read it, whatever they are.
static const assay_value_t* given_to(const assay_repair_t* r) {
  const assay_repair_edit_t* e = &r->edits[0];
  const bool before = e->kind == ASSAY_EDIT_BEFORE || (e->kind == ASSAY_EDIT_CHAIN && e->at_input);
  const assay_value_t* v =
      before && e->input < r->node->n_inputs ? r->node->inputs[e->input] : NULL;
  return v && !v->producer && !v->constant ? v : NULL;
}

// A sine and a cosine of one angle are two nodes of one operator.
static const char* operator_of(const assay_node_t* n) {
  return strcmp(n->op_type, "Cos") == 0 ? "Sin" : n->op_type;
}

// The text without what stands in quotes; an axis as what it is to the node. FNV-1a (G. Fowler, L.
// C. Noll, K.-P. Vo).
uint64_t assay_alike_key(const assay_repair_t* r, size_t row) {
  static const char along[] = " along axis ";
  const assay_repair_edit_t* e = &r->edits[0];
  uint64_t h = 0xcbf29ce484222325U ^ row;
  bool own = true;  // the operator counts
  if (!r->n_edits || r->fits || e->kind == ASSAY_EDIT_EXCHANGE || e->kind == ASSAY_EDIT_CROSS)
    return 0;
  for (const char* c = r->text; *c; c++) {
    if (*c == '\'') {
      while (c[1] && c[1] != '\'') c++;
      if (c[1]) c++;
      continue;
    }
    if (e->tensor && strncmp(c, along, sizeof along - 1) == 0) {
      char* end = NULL;
      const int axis = (int)strtol(c + sizeof along - 1, &end, 10);
      own = !is_out_axis(r->node, e->input, e->tensor, axis);
      h = add_byte(h, own ? (unsigned char)(1 + e->tensor->rank - axis) : 255);
      c = end - 1;
      continue;
    }
    h = add_byte(h, (unsigned char)*c);
  }
  const assay_value_t* given = given_to(r);
  if (given) return add_text(h, given->name) | 1;
  return own ? add_text(h, operator_of(r->node)) | 1 : h | 1;
}

// ---- sets ---------------------------------------------------------------------------------------

// Offers of one key are sorted by position; a unit is some that follow each other without a node
// between: a product and its bias.
typedef struct unit {
  size_t* of;                   // by offer of the key: its unit, named by the first offer of it
  const assay_value_t** reads;  // by offer: what the unit's first node reads
} unit_t;

typedef struct set {
  size_t first, n;  // in the list of members
  double promise;
  uint64_t hash;
  size_t row, alike;  // of the table of causes; sets of that row
  bool done;
} set_t;

typedef struct sets {
  const assay_search_t* s;
  const assay_surroundings_t* around;
  const assay_alike_t* offers;
  size_t* members;
  size_t n_members, cap_members;
  set_t* at;
  size_t n, capacity;
} sets_t;

static int by_key(const void* a, const void* b) {
  const assay_alike_t *x = a, *y = b;
  if (x->key != y->key) return x->key < y->key ? -1 : 1;
  if (x->position != y->position) return x->position < y->position ? -1 : 1;
  if (x->input != y->input) return x->input < y->input ? -1 : 1;
  return x->number < y->number ? -1 : x->number > y->number;
}

static int by_promise(const void* a, const void* b) {
  const set_t *x = *(set_t*const*)a, *y = *(set_t*const*)b;
  if (x->promise != y->promise) return x->promise < y->promise ? -1 : 1;
  if (x->n != y->n) return x->n < y->n ? -1 : 1;
  return x->first < y->first ? -1 : x->first > y->first;
}

static int by_rarity(const void* a, const void* b) {
  const set_t *x = *(set_t*const*)a, *y = *(set_t*const*)b;
  if (x->alike != y->alike) return x->alike < y->alike ? -1 : 1;
  return by_promise(a, b);
}

static double promise_of(const sets_t* all, const set_t* set) {
  assay_forecast_t sum = {.known = true};
  for (size_t i = 0; i < set->n; i++) {
    const assay_forecast_t* f = all->offers[all->members[set->first + i]].forecast;
    sum.known &= f->known;
    sum.along += f->along;
    for (int q = 0; q < ASSAY_PROBES - 1; q++) sum.across[q] += f->across[q];
  }
  if (!sum.known) return 1;
  return fmin(1, fmin(assay_forecast_remains(&sum), (1 + assay_forecast_best(&sum)) / 2));
}

static assay_status_t add_member(sets_t* all, size_t offer) {
  ASSAY_TRY(assay_grow(&all->members, &all->cap_members, all->n_members + 1, sizeof(size_t)));
  all->members[all->n_members++] = offer;
  return NULL;
}

// The members from `first` on are a set, unless there is the same one.
static assay_status_t close_set(sets_t* all, size_t first) {
  set_t set = {.first = first, .n = all->n_members - first};
  for (size_t i = first; i < all->n_members; i++)
    set.hash = (set.hash ^ all->members[i]) * 0x9e3779b97f4a7c15U + 1;
  bool known = set.n < 2 || set.n > ASSAY_SEARCH_FAULTS;
  for (size_t i = all->n; i-- > 0 && !known;) {
    known = all->at[i].hash == set.hash && all->at[i].n == set.n;
    // Sets of this key are the last ones.
    if (all->offers[all->members[all->at[i].first]].key != all->offers[all->members[first]].key)
      break;
  }
  if (known) return all->n_members = first, NULL;
  ASSAY_TRY(assay_grow(&all->at, &all->capacity, all->n + 1, sizeof *all->at));
  set.promise = promise_of(all, &set);
  set.row = all->offers[all->members[first]].row;
  all->at[all->n++] = set;
  return NULL;
}

static const assay_node_t* node_of(const sets_t* all, size_t offer) {
  return all->s->nodes[all->offers[offer].position];
}

static bool reads(const assay_node_t* a, const assay_node_t* b) {
  for (size_t i = 0; i < a->n_inputs; i++)
    if (a->inputs[i] && a->inputs[i]->producer == b) return true;
  return false;
}

static const assay_value_t* data_of(const assay_node_t* n) {
  const size_t i = assay_around_data_input(n);
  return i < n->n_inputs ? n->inputs[i] : n->n_inputs ? n->inputs[0] : NULL;
}

static void find_units(const sets_t* all, size_t first, size_t n, unit_t* u) {
  for (size_t i = 0; i < n; i++) {
    const assay_node_t* node = node_of(all, first + i);
    u->of[i] = i;
    for (size_t k = i; k-- > 0 && u->of[i] == i;) {
      const assay_node_t* before = node_of(all, first + k);
      if (before == node || reads(node, before)) u->of[i] = u->of[k];
    }
    u->reads[i] = u->of[i] == i ? data_of(node) : u->reads[u->of[i]];
  }
}

// whole false: its first node alone; a bias may have been left as it was.
static assay_status_t add_unit(sets_t* all, size_t first, size_t n, const unit_t* u, size_t unit,
                               bool whole) {
  for (size_t i = unit; i < (whole ? n : unit + 1); i++)
    if (u->of[i] == unit) ASSAY_TRY(add_member(all, first + i));
  return NULL;
}

// Which of the units that read the same it is.
static size_t place_of(const unit_t* u, size_t unit) {
  size_t place = 0;
  for (size_t i = 0; i < unit; i++) place += u->of[i] == i && u->reads[i] == u->reads[unit];
  return place;
}

// Units i and k, which read the same value; and those in their places wherever units do.
static assay_status_t add_pair(sets_t* all, size_t first, size_t n, const unit_t* u, size_t i,
                               size_t k, bool whole) {
  const size_t a = place_of(u, i), b = place_of(u, k);
  size_t begin = all->n_members;
  ASSAY_TRY(add_unit(all, first, n, u, i, whole));
  ASSAY_TRY(add_unit(all, first, n, u, k, whole));
  ASSAY_TRY(close_set(all, begin));
  begin = all->n_members;
  for (size_t j = 0; j < n; j++)
    if (u->of[j] == j && (place_of(u, j) == a || place_of(u, j) == b))
      ASSAY_TRY(add_unit(all, first, n, u, j, whole));
  return close_set(all, begin);
}

// Pairs of units that read the same value: queries and keys, of one block and of all.
static assay_status_t add_pairs(sets_t* all, size_t first, size_t n, const unit_t* u, bool whole) {
  enum { BESIDE = 4 };
  for (size_t i = 0; i < n; i++) {
    if (u->of[i] != i || !u->reads[i]) continue;
    for (size_t k = i + 1; k < n; k++) {
      if (u->of[k] != k || u->reads[k] != u->reads[i]) continue;
      if (place_of(u, k) > BESIDE) break;
      ASSAY_TRY(add_pair(all, first, n, u, i, k, whole));
    }
  }
  return NULL;
}

// A unit alone; those of twins in all blocks; all.
static assay_status_t add_units(sets_t* all, size_t first, size_t n, const unit_t* u, bool whole) {
  const uint64_t* role = all->around->role;
  for (size_t i = 0; i < n; i++) {
    if (u->of[i] != i) continue;
    size_t begin = all->n_members;
    ASSAY_TRY(add_unit(all, first, n, u, i, whole));
    ASSAY_TRY(close_set(all, begin));
    begin = all->n_members;
    for (size_t k = 0; k < n; k++)
      if (u->of[k] == k && role[node_of(all, first + k)->id] == role[node_of(all, first + i)->id])
        ASSAY_TRY(add_unit(all, first, n, u, k, whole));
    ASSAY_TRY(close_set(all, begin));
  }
  const size_t begin = all->n_members;
  for (size_t i = 0; i < n; i++)
    if (u->of[i] == i) ASSAY_TRY(add_unit(all, first, n, u, i, whole));
  return close_set(all, begin);
}

// Sets of the offers [first, first + n), which have the same key.
static assay_status_t add_key(sets_t* all, size_t first, size_t n) {
  enum { MANY = 128 };
  unit_t u = {0};
  if (n < 2 || n > MANY) return NULL;
  assay_status_t st = assay_new_array(n, sizeof *u.of, &u.of);
  if (!st) st = assay_new_array(n, sizeof *u.reads, &u.reads);
  if (!st) {
    find_units(all, first, n, &u);
    for (int whole = 1; whole >= 0 && !st; whole--) {
      st = add_units(all, first, n, &u, whole);
      if (!st) st = add_pairs(all, first, n, &u, whole);
    }
  }
  assay_free(u.of);
  assay_free(u.reads);
  return st;
}

// Of two offers of one key for one input the first counts.
static size_t without_copies(assay_alike_t* offers, size_t n) {
  size_t kept = 0;
  for (size_t i = 0; i < n; i++) {
    const assay_alike_t* last = kept ? &offers[kept - 1] : NULL;
    if (!offers[i].key || (last && last->key == offers[i].key &&
                           last->position == offers[i].position && last->input == offers[i].input))
      continue;
    offers[kept++] = offers[i];
  }
  return kept;
}

static assay_status_t list_sets(sets_t* all, size_t n) {
  for (size_t i = 0, end; i < n; i = end) {
    for (end = i + 1; end < n && all->offers[end].key == all->offers[i].key;) end++;
    ASSAY_TRY(add_key(all, i, end - i));
  }
  size_t* count = NULL;
  ASSAY_TRY(assay_new_array(assay_proposal_count(), sizeof *count, &count));
  for (size_t i = 0; i < all->n; i++) count[all->at[i].row]++;
  for (size_t i = 0; i < all->n; i++) all->at[i].alike = count[all->at[i].row];
  assay_free(count);
  return NULL;
}

// ---- trying -------------------------------------------------------------------------------------

static assay_status_t make_set(const sets_t* all, const set_t* set,
                               const assay_alike_source_t* source, assay_repair_set_t* out,
                               bool* out_fits) {
  *out_fits = true;
  for (size_t i = 0; i < set->n && *out_fits; i++) {
    assay_repair_t r = {0};
    ASSAY_TRY(source->make(source->user, all->offers[all->members[set->first + i]].number, &r));
    *out_fits = r.n_edits > 0;
    if (*out_fits) ASSAY_TRY(assay_repair_set_add(out, &r, out_fits));
  }
  return NULL;
}

static assay_status_t try_set(assay_trials_t* t, const sets_t* all, const set_t* set,
                              const assay_alike_source_t* source, assay_fault_t* out,
                              size_t* out_n) {
  // What several repairs take away counts less than what one does.
  static const double SHARE = 0.6;
  assay_repair_set_t repairs = {0};
  bool fits = false, restored = false;
  assay_status_t st = make_set(all, set, source, &repairs, &fits);
  if (!st && fits) st = assay_trials_try_set(t, &repairs, &restored);
  for (size_t i = 0; !st && fits && t->remains < 1 && i < set->n; i++)
    assay_trials_note(t, all->offers[all->members[set->first + i]].position, t->remains, SHARE);
  if (!st && restored) assay_repair_set_report(t, &repairs, out, out_n);
  assay_repair_set_deinit(&repairs);
  return st;
}

static set_t* next_of(set_t* const* order, size_t n, size_t* at) {
  while (*at < n && order[*at]->done) ++*at;
  return *at < n ? order[*at] : NULL;
}

static assay_status_t try_in_turn(assay_trials_t* t, const sets_t* all,
                                  const assay_alike_source_t* source, double end,
                                  assay_fault_t* out, size_t* out_n) {
  set_t** order[2] = {NULL, NULL};
  size_t at[2] = {0, 0};
  assay_status_t st = assay_new_array(all->n, sizeof *order[0], &order[0]);
  if (!st) st = assay_new_array(all->n, sizeof *order[1], &order[1]);
  for (size_t i = 0; !st && i < all->n; i++) order[0][i] = order[1][i] = &all->at[i];
  if (!st && all->n) {
    qsort(order[0], all->n, sizeof *order[0], by_promise);
    qsort(order[1], all->n, sizeof *order[1], by_rarity);
  }
  for (size_t turn = 0; !st && !*out_n && assay_clock_seconds() < end; turn++) {
    set_t* set = next_of(order[turn % 2], all->n, &at[turn % 2]);
    if (!set) break;
    set->done = true;
    st = try_set(t, all, set, source, out, out_n);
  }
  assay_free(order[0]);
  assay_free(order[1]);
  return st;
}

assay_status_t assay_search_alike(assay_trials_t* t, const assay_surroundings_t* around,
                                  assay_alike_t* offers, size_t n,
                                  const assay_alike_source_t* source, double end,
                                  assay_fault_t* out, size_t* out_n) {
  sets_t all = {.s = t->s, .around = around, .offers = offers};
  *out_n = 0;
  if (n) qsort(offers, n, sizeof *offers, by_key);
  n = without_copies(offers, n);
  assay_status_t st = list_sets(&all, n);
  if (!st) st = try_in_turn(t, &all, source, end, out, out_n);
  assay_free(all.members);
  assay_free(all.at);
  return st;
}
