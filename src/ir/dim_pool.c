// Pools of dimensions: interning, the order of terms, and what values lie between.
#include <stdlib.h>
#include <string.h>

#include "base/shown.h"
#include "ir/dim_internal.h"

// A hash set of interned objects: open addressing, linear probing, at most half full.
typedef struct set {
  struct slot {
    uint64_t hash;
    const void* object;  // NULL: free
  } * slots;
  size_t capacity, len;
} set_t;

struct assay_dims {
  assay_arena_t* arena;
  set_t dims, monos, atoms;
  assay_map_t names;  // -> atom_t*
  const atom_t** symbols;
  size_t n_symbols, cap_symbols;
  uint64_t n_fresh;
  const mono_t* one;
  bool failed;  // out of memory at some time
};

// ---- pools ------------------------------------------------------------------------------------

assay_status_t assay_dims_create(assay_dims_t** out) {
  assay_dims_t* p = NULL;
  ASSAY_TRY(ASSAY_NEW(&p));
  assay_status_t st = assay_arena_create(&p->arena);
  mono_t* one = NULL;
  if (!st) st = assay_arena_new(p->arena, 1, sizeof *one, &one);
  if (st) return assay_dims_destroy(p), st;
  one->range = (range_t){1, 1};
  p->one = one;
  *out = p;
  return NULL;
}

void assay_dims_destroy(assay_dims_t* p) {
  if (!p) return;
  assay_free(p->dims.slots);
  assay_free(p->monos.slots);
  assay_free(p->atoms.slots);
  assay_free(p->symbols);
  assay_map_deinit(&p->names);
  assay_arena_destroy(p->arena);
  assay_free(p);
}

assay_status_t assay_dims_status(const assay_dims_t* p) {
  return p->failed ? assay_status_no_memory() : NULL;
}

static bool ok(assay_dims_t* p, assay_status_t st) {
  if (!st) return true;
  p->failed = true;
  assay_status_free(st);
  return false;
}

static void* pool_alloc(assay_dims_t* p, size_t head, size_t n, size_t elem) {
  void* object = assay_arena_alloc(p->arena, 1, head + n * elem);  // n is small, everywhere
  if (!object) p->failed = true;
  return object;
}

static bool is_full(const assay_dims_t* p) {
  return assay_arena_bytes(p->arena) > DIM_MAX_POOL_BYTES;
}

// ---- sets -------------------------------------------------------------------------------------

static uint64_t mix(uint64_t h, uint64_t x) {
  h = (h ^ x) * 0x9e3779b97f4a7c15u;
  return h ^ (h >> 29);
}

// Makes room for one more; false without memory.
static bool set_reserve(assay_dims_t* p, set_t* s) {
  if (2 * (s->len + 1) <= s->capacity) return true;
  set_t bigger = {.capacity = s->capacity ? 2 * s->capacity : 64, .len = s->len};
  if (!ok(p, assay_new_array(bigger.capacity, sizeof *bigger.slots, &bigger.slots))) return false;
  for (size_t i = 0; i < s->capacity; i++) {
    if (!s->slots[i].object) continue;
    size_t at = (size_t)s->slots[i].hash & (bigger.capacity - 1);
    while (bigger.slots[at].object) at = (at + 1) & (bigger.capacity - 1);
    bigger.slots[at] = s->slots[i];
  }
  assay_free(s->slots);
  *s = bigger;
  return true;
}

// The slot of an object that is `same` as key, or the free one where it goes; set_reserve before.
static struct slot* set_find(set_t* s, uint64_t hash, const void* key,
                             bool (*same)(const void* object, const void* key)) {
  size_t at = (size_t)hash & (s->capacity - 1);
  while (s->slots[at].object && (s->slots[at].hash != hash || !same(s->slots[at].object, key)))
    at = (at + 1) & (s->capacity - 1);
  return &s->slots[at];
}

static void set_put(set_t* s, struct slot* slot, uint64_t hash, const void* object) {
  *slot = (struct slot){hash, object};
  s->len++;
}

// ---- ranges -----------------------------------------------------------------------------------

// An end past this is infinite (INT64_MIN, INT64_MAX) if that is the careful side, and this else;
// so infinities are never taken for numbers, and sums of two ends do not overflow.
#define LARGE (INT64_MAX / 2)

static range_t range_careful(int64_t lo, int64_t hi) {
  return (range_t){lo < -LARGE  ? INT64_MIN
                   : lo > LARGE ? LARGE
                                : lo,
                   hi > LARGE    ? INT64_MAX
                   : hi < -LARGE ? -LARGE
                                 : hi};
}

static range_t range_add(range_t a, range_t b) {
  return range_careful(a.lo == INT64_MIN || b.lo == INT64_MIN ? INT64_MIN : a.lo + b.lo,
                       a.hi == INT64_MAX || b.hi == INT64_MAX ? INT64_MAX : a.hi + b.hi);
}

// 0 times infinity is 0, as the infinity is only an unknown number.
static int64_t end_mul(int64_t a, int64_t b) {
  int64_t r;
  if (!a || !b) return 0;
  bool infinite = a == INT64_MIN || a == INT64_MAX || b == INT64_MIN || b == INT64_MAX;
  if (infinite || __builtin_mul_overflow(a, b, &r))
    return (a < 0) == (b < 0) ? INT64_MAX : INT64_MIN;
  return r;
}

static range_t range_mul(range_t a, range_t b) {
  int64_t c[4] = {end_mul(a.lo, b.lo), end_mul(a.lo, b.hi), end_mul(a.hi, b.lo),
                  end_mul(a.hi, b.hi)};
  range_t r = {c[0], c[0]};
  for (int i = 1; i < 4; i++) {
    if (c[i] < r.lo) r.lo = c[i];
    if (c[i] > r.hi) r.hi = c[i];
  }
  return range_careful(r.lo, r.hi);
}

// floor(a/b). Where b is 0 there is no value, so b >= 0 means b >= 1.
static range_t range_floordiv(range_t a, range_t b) {
  if (b.lo < 0) return (range_t){INT64_MIN, INT64_MAX};
  int64_t small = b.lo ? b.lo : 1;
  // The quotient's ends are at the divisor's: the smallest where the dividend's end
  // is away from 0, the largest (which takes it to 0 or -1) else.
  range_t r;
  if (a.lo == INT64_MIN)
    r.lo = a.lo;
  else
    r.lo = a.lo < 0 ? dim_floordiv_i64(a.lo, small) : dim_floordiv_i64(a.lo, b.hi ? b.hi : 1);
  if (a.hi == INT64_MAX)
    r.hi = a.hi;
  else
    r.hi = a.hi < 0 ? dim_floordiv_i64(a.hi, b.hi ? b.hi : 1) : dim_floordiv_i64(a.hi, small);
  return r;
}

static range_t atom_range(dim_kind_t kind, int n, const assay_dim_t* const* args) {
  if (kind == DIM_FLOORDIV) return range_floordiv(args[0]->range, args[1]->range);
  range_t r = args[0]->range;
  for (int i = 1; i < n; i++) {
    range_t x = args[i]->range;
    if (kind == DIM_MAX ? x.lo > r.lo : x.lo < r.lo) r.lo = x.lo;
    if (kind == DIM_MIN ? x.hi < r.hi : x.hi > r.hi) r.hi = x.hi;
  }
  return r;
}

// ---- order ------------------------------------------------------------------------------------

static int compare_atoms(const atom_t* a, const atom_t* b) {
  if (a == b) return 0;
  if (a->kind != b->kind) return a->kind < b->kind ? -1 : 1;
  if (a->kind == DIM_SYMBOL) return a->order < b->order ? -1 : 1;
  if (a->n != b->n) return a->n < b->n ? -1 : 1;
  for (int i = 0; i < a->n; i++) {
    int c = dim_compare(a->args[i], b->args[i]);
    if (c) return c;
  }
  return 0;
}

// Graded lexicographic: products keep it, which polynomial division needs.
static int compare_monos(const mono_t* a, const mono_t* b) {
  if (a == b) return 0;
  if (a->n != b->n) return a->n > b->n ? -1 : 1;
  for (int i = 0; i < a->n; i++) {
    int c = compare_atoms(a->atoms[i], b->atoms[i]);
    if (c) return c;
  }
  return 0;
}

int dim_compare(const assay_dim_t* a, const assay_dim_t* b) {
  if (a == b) return 0;
  for (int i = 0; i < a->n && i < b->n; i++) {
    int c = compare_monos(a->terms[i].mono, b->terms[i].mono);
    if (c) return c;
    if (a->terms[i].coef != b->terms[i].coef) return a->terms[i].coef > b->terms[i].coef ? -1 : 1;
  }
  return a->n > b->n ? -1 : 1;
}

// ---- atoms ------------------------------------------------------------------------------------

typedef struct atom_key {
  dim_kind_t kind;
  int n;
  const assay_dim_t* const* args;
} atom_key_t;

static bool same_atom(const void* object, const void* key) {
  const atom_t* a = object;
  const atom_key_t* k = key;
  return a->kind == k->kind && a->n == k->n &&
         memcmp(a->args, k->args, (size_t)k->n * sizeof *k->args) == 0;
}

static int compare_args(const void* a, const void* b) {
  return dim_compare(*(const assay_dim_t* const*)a, *(const assay_dim_t* const*)b);
}

static const atom_t* intern_atom(assay_dims_t* p, const atom_key_t* k) {
  uint64_t hash = mix((uint64_t)k->kind, (uint64_t)k->n);
  uint32_t weight = 1;
  for (int i = 0; i < k->n; i++) {
    hash = mix(hash, (uint64_t)(uintptr_t)k->args[i]);
    weight += k->args[i]->weight;
  }
  if (weight > DIM_MAX_WEIGHT || is_full(p) || !set_reserve(p, &p->atoms)) return NULL;
  struct slot* slot = set_find(&p->atoms, hash, k, same_atom);
  if (slot->object) return slot->object;
  atom_t* a = pool_alloc(p, sizeof *a, (size_t)k->n, sizeof *a->args);
  if (!a) return NULL;
  a->kind = k->kind;
  a->n = k->n;
  a->weight = weight;
  a->range = atom_range(k->kind, k->n, k->args);
  memcpy(a->args, k->args, (size_t)k->n * sizeof *a->args);
  set_put(&p->atoms, slot, hash, a);
  return a;
}

static const assay_dim_t* single(assay_dims_t* p, const mono_t* mono) {
  build_t b;
  dim_build_init(&b);
  dim_build_add(&b, 1, mono);
  return dim_build_done(p, &b);
}

const assay_dim_t* dim_atom(assay_dims_t* p, dim_kind_t kind, int n,
                            const assay_dim_t* const* args) {
  const assay_dim_t* ordered[DIM_MAX_ARGS];
  for (int i = 0; i < n; i++)
    if (!args[i]) return NULL;
  memcpy(ordered, args, (size_t)n * sizeof *args);
  if (kind != DIM_FLOORDIV) qsort(ordered, (size_t)n, sizeof *ordered, compare_args);
  const atom_t* a = intern_atom(p, &(atom_key_t){kind, n, ordered});
  return a ? single(p, dim_mono_atom(p, a)) : NULL;
}

// ---- names ------------------------------------------------------------------------------------

const assay_dim_t* assay_dim_symbol(assay_dims_t* p, const char* name) {
  uint64_t found;
  if (!name || !*name) return NULL;
  if (assay_map_get(&p->names, name, &found))
    return single(p, dim_mono_atom(p, (const atom_t*)(uintptr_t)found));
  atom_t* a = pool_alloc(p, sizeof *a, 0, 0);
  if (!a || !ok(p, assay_arena_strdup(p->arena, name, &a->name)) ||
      !ok(p, assay_grow(&p->symbols, &p->cap_symbols, p->n_symbols + 1, sizeof *p->symbols)) ||
      !ok(p, assay_map_put(&p->names, a->name, (uint64_t)(uintptr_t)a, NULL)))
    return NULL;
  a->kind = DIM_SYMBOL;
  a->weight = 1;
  a->range = (range_t){0, INT64_MAX};
  a->order = p->n_symbols;
  p->symbols[p->n_symbols++] = a;
  return single(p, dim_mono_atom(p, a));
}

const assay_dim_t* assay_dim_fresh(assay_dims_t* p, const char* hint) {
  if (!hint || !*hint) hint = "dim";
  if (!assay_map_get(&p->names, hint, NULL)) return assay_dim_symbol(p, hint);
  assay_str_t name = {0};
  do {
    name.len = 0;
    assay_str_printf_raw(&name, "%s_%llu", hint, (unsigned long long)++p->n_fresh);
  } while (!name.failed && assay_map_get(&p->names, name.text, NULL));
  const assay_dim_t* d = name.failed ? NULL : assay_dim_symbol(p, name.text);
  if (name.failed) p->failed = true;
  assay_str_deinit(&name);
  return d;
}

void assay_dims_copy_names(assay_dims_t* to, const assay_dims_t* from) {
  for (size_t i = 0; i < from->n_symbols; i++) (void)assay_dim_symbol(to, from->symbols[i]->name);
  if (to->n_fresh < from->n_fresh) to->n_fresh = from->n_fresh;
}

// ---- monomials --------------------------------------------------------------------------------

typedef struct mono_key {
  int n;
  const atom_t* const* atoms;
} mono_key_t;

static bool same_mono(const void* object, const void* key) {
  const mono_t* m = object;
  const mono_key_t* k = key;
  return m->n == k->n && memcmp(m->atoms, k->atoms, (size_t)k->n * sizeof *k->atoms) == 0;
}

static const mono_t* intern_mono(assay_dims_t* p, int n, const atom_t* const* atoms) {
  if (!n) return p->one;
  uint64_t hash = (uint64_t)n;
  uint32_t weight = 0;
  bool plain = n == 1 && atoms[0]->kind == DIM_SYMBOL;
  for (int i = 0; i < n; i++) {
    hash = mix(hash, (uint64_t)(uintptr_t)atoms[i]);
    weight += atoms[i]->weight;
  }
  if (weight > DIM_MAX_WEIGHT || (!plain && is_full(p)) || !set_reserve(p, &p->monos)) return NULL;
  mono_key_t key = {n, atoms};
  struct slot* slot = set_find(&p->monos, hash, &key, same_mono);
  if (slot->object) return slot->object;
  mono_t* m = pool_alloc(p, sizeof *m, (size_t)n, sizeof *m->atoms);
  if (!m) return NULL;
  m->hash = hash;
  m->n = n;
  m->weight = weight;
  m->range = (range_t){1, 1};
  for (int i = 0; i < n; i++) m->range = range_mul(m->range, atoms[i]->range);
  memcpy(m->atoms, atoms, (size_t)n * sizeof *m->atoms);
  set_put(&p->monos, slot, hash, m);
  return m;
}

const mono_t* dim_mono_one(assay_dims_t* p) { return p->one; }

const mono_t* dim_mono_atom(assay_dims_t* p, const atom_t* atom) {
  return intern_mono(p, 1, &atom);
}

const mono_t* dim_mono_mul(assay_dims_t* p, const mono_t* a, const mono_t* b) {
  // An atom weighs 1 at least, so a monomial within the weight has room here.
  const atom_t* atoms[DIM_MAX_WEIGHT];
  if (!a || !b || a->weight + b->weight > DIM_MAX_WEIGHT) return NULL;
  int n = 0, i = 0, j = 0;
  while (i < a->n || j < b->n) {
    bool from_a = j == b->n || (i < a->n && compare_atoms(a->atoms[i], b->atoms[j]) <= 0);
    atoms[n++] = from_a ? a->atoms[i++] : b->atoms[j++];
  }
  return intern_mono(p, n, atoms);
}

const mono_t* dim_mono_div(assay_dims_t* p, const mono_t* a, const mono_t* b) {
  const atom_t* atoms[DIM_MAX_WEIGHT];
  int n = 0, j = 0;
  for (int i = 0; i < a->n; i++) {
    if (j < b->n && a->atoms[i] == b->atoms[j])
      j++;
    else
      atoms[n++] = a->atoms[i];
  }
  return j == b->n ? intern_mono(p, n, atoms) : NULL;
}

// ---- sums -------------------------------------------------------------------------------------

void dim_build_init(build_t* b) {
  b->n = 0;
  b->bad = false;
}

void dim_build_add(build_t* b, int64_t coef, const mono_t* mono) {
  if (!mono || b->n == DIM_MAX_BUILD) b->bad = true;
  if (!b->bad && coef) b->terms[b->n++] = (term_t){coef, mono};
}

static int compare_terms(const void* a, const void* b) {
  return compare_monos(((const term_t*)a)->mono, ((const term_t*)b)->mono);
}

typedef struct dim_key {
  int n;
  const term_t* terms;
} dim_key_t;

static bool same_dim(const void* object, const void* key) {
  const assay_dim_t* d = object;
  const dim_key_t* k = key;
  if (d->n != k->n) return false;
  for (int i = 0; i < d->n; i++)
    if (d->terms[i].coef != k->terms[i].coef || d->terms[i].mono != k->terms[i].mono) return false;
  return true;
}

static const assay_dim_t* intern_dim(assay_dims_t* p, int n, const term_t* terms) {
  uint64_t hash = (uint64_t)n;
  uint32_t weight = 0;
  for (int i = 0; i < n; i++) {
    hash = mix(mix(hash, (uint64_t)terms[i].coef), (uint64_t)(uintptr_t)terms[i].mono);
    weight += 1 + terms[i].mono->weight;
  }
  // Numbers and names are always possible.
  bool simple = n == 0 || (n == 1 && terms[0].mono->weight <= 1);
  if (n > DIM_MAX_TERMS || weight > DIM_MAX_WEIGHT || (!simple && is_full(p)) ||
      !set_reserve(p, &p->dims))
    return NULL;
  dim_key_t key = {n, terms};
  struct slot* slot = set_find(&p->dims, hash, &key, same_dim);
  if (slot->object) return slot->object;
  assay_dim_t* d = pool_alloc(p, sizeof *d, (size_t)n, sizeof *terms);
  if (!d) return NULL;
  d->hash = hash;
  d->n = n;
  d->weight = weight;
  for (int i = 0; i < n; i++) {
    range_t coef = range_careful(terms[i].coef, terms[i].coef);
    d->range = range_add(d->range, range_mul(coef, terms[i].mono->range));
    d->terms[i] = terms[i];
  }
  set_put(&p->dims, slot, hash, d);
  return d;
}

const assay_dim_t* dim_build_done(assay_dims_t* p, build_t* b) {
  if (b->bad) return NULL;
  qsort(b->terms, (size_t)b->n, sizeof *b->terms, compare_terms);
  int n = 0;
  for (int i = 0; i < b->n;) {
    term_t t = b->terms[i++];
    for (; i < b->n && b->terms[i].mono == t.mono; i++)
      if (__builtin_add_overflow(t.coef, b->terms[i].coef, &t.coef)) return NULL;
    if (t.coef) b->terms[n++] = t;
  }
  return intern_dim(p, n, b->terms);
}

const assay_dim_t* assay_dim_const(assay_dims_t* p, int64_t value) {
  build_t b;
  dim_build_init(&b);
  dim_build_add(&b, value, p->one);
  return dim_build_done(p, &b);
}
