// The cheapest assignment of states to variables under costs of one, two or more of them: what
// layouts.h puts the choice of layouts into.
#include "exec/segment/assign.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"

enum { ROUNDS = 16 };

// A table over some variables; the last one's states lie side by side.
typedef struct table {
  int n;
  const int* variables;
  const double* costs;
  bool done;
} table_t;

struct assay_assign {
  assay_arena_t* arena;
  int n;
  const int* n_states;
  table_t* tables;
  size_t n_tables, cap_tables;
};

assay_status_t assay_assign_create(int n, const int* n_states, assay_assign_t** out) {
  assay_assign_t* a = NULL;
  int* copy = NULL;
  ASSAY_TRY(ASSAY_NEW(&a));
  a->n = n;
  assay_status_t st = assay_arena_create(&a->arena);
  if (!st) st = assay_arena_new(a->arena, (size_t)n + 1, sizeof *copy, &copy);
  if (st) return assay_assign_destroy(a), st;
  if (n) memcpy(copy, n_states, (size_t)n * sizeof *copy);
  a->n_states = copy;
  *out = a;
  return NULL;
}

void assay_assign_destroy(assay_assign_t* a) {
  if (!a) return;
  assay_arena_destroy(a->arena);
  assay_free(a->tables);
  assay_free(a);
}

assay_status_t assay_assign_add(assay_assign_t* a, int n, const int* variables,
                                const double* costs) {
  size_t entries = 1;
  int* v = NULL;
  double* c = NULL;
  for (int i = 0; i < n; i++) entries *= (size_t)a->n_states[variables[i]];
  ASSAY_TRY(assay_arena_new(a->arena, (size_t)n, sizeof *v, &v));
  ASSAY_TRY(assay_arena_new(a->arena, entries, sizeof *c, &c));
  ASSAY_TRY(assay_grow(&a->tables, &a->cap_tables, a->n_tables + 1, sizeof *a->tables));
  memcpy(v, variables, (size_t)n * sizeof *v);
  memcpy(c, costs, entries * sizeof *c);
  a->tables[a->n_tables++] = (table_t){.n = n, .variables = v, .costs = c};
  return NULL;
}

static size_t entry_of(const assay_assign_t* a, const table_t* t, const int* states) {
  size_t at = 0;
  for (int i = 0; i < t->n; i++)
    at = at * (size_t)a->n_states[t->variables[i]] + (size_t)states[t->variables[i]];
  return at;
}

double assay_assign_cost(const assay_assign_t* a, const int* states) {
  double sum = 0;
  for (size_t i = 0; i < a->n_tables; i++)
    sum += a->tables[i].costs[entry_of(a, &a->tables[i], states)];
  return sum;
}

// ---- a round ------------------------------------------------------------------------------------

// Which tables a variable is in.
typedef struct link {
  size_t table, next;  // next: 1 + its place; 0: none
} link_t;

// What was eliminated: its best state for each of the states of its neighbours then.
typedef struct record {
  int variable, n;
  const int* neighbours;
  const uint8_t* best;
} record_t;

typedef struct round {
  const assay_assign_t* a;
  assay_arena_t* arena;
  size_t limit;
  int* states;
  table_t* tables;
  size_t n_tables, cap_tables;
  link_t* links;
  size_t n_links, cap_links;
  size_t* first;     // by variable: 1 + place of its first link
  size_t* size;      // of the table that eliminating it leaves; 0: not known
  bool* gone;        // eliminated or held
  bool* held;        // in this round
  const bool* rest;  // held in the round before
  int* seen;         // by variable: the last count of neighbours that saw it
  int count;
  int* neighbours;  // of the variable counted last
  int n_neighbours;
  record_t* records;
  int n_records;
} round_t;

static assay_status_t put_table(round_t* r, table_t t) {
  ASSAY_TRY(assay_grow(&r->tables, &r->cap_tables, r->n_tables + 1, sizeof *r->tables));
  r->tables[r->n_tables] = t;
  for (int i = 0; i < t.n; i++) {
    ASSAY_TRY(assay_grow(&r->links, &r->cap_links, r->n_links + 1, sizeof *r->links));
    r->links[r->n_links++] = (link_t){r->n_tables, r->first[t.variables[i]]};
    r->first[t.variables[i]] = r->n_links;
  }
  r->n_tables++;
  return NULL;
}

// The next table of a variable that is still there, from a link's place on; NULL: none.
static table_t* next_table(const round_t* r, size_t* place) {
  while (*place) {
    const link_t* l = &r->links[*place - 1];
    table_t* t = &r->tables[l->table];
    *place = l->next;
    if (!t->done) return t;
  }
  return NULL;
}

// Lists the variables that share a table with one; the entries of a table over them, or SIZE_MAX.
static size_t count_neighbours(round_t* r, int v) {
  size_t size = 1, at = r->first[v];
  r->count++;
  r->n_neighbours = 0;
  r->seen[v] = r->count;
  for (const table_t* t; (t = next_table(r, &at));)
    for (int i = 0; i < t->n; i++) {
      const int other = t->variables[i];
      if (r->seen[other] == r->count || r->gone[other]) continue;
      r->seen[other] = r->count;
      r->neighbours[r->n_neighbours++] = other;
      const size_t states = (size_t)r->a->n_states[other];
      size = size > r->limit ? SIZE_MAX : size * states;
    }
  return size;
}

// The steps through a table as one variable after the other takes its next state.
static void steps_of(const round_t* r, const table_t* t, const int* place_of, size_t* steps) {
  size_t step = 1;
  for (int i = t->n - 1; i >= 0; i--) {
    const int v = t->variables[i];
    if (place_of[v] >= 0) steps[place_of[v]] = step;
    step *= (size_t)r->a->n_states[v];
  }
}

// Where the tables of a variable stand while all states of its neighbours are gone through.
typedef struct walk {
  const table_t** tables;
  size_t *at, *steps;  // steps: [tables][neighbours + 1], the variable's own after the others
  size_t n;
} walk_t;

static assay_status_t begin_walk(round_t* r, int v, walk_t* w) {
  size_t place = r->first[v], n = 0;
  while (next_table(r, &place)) n++;
  const size_t width = (size_t)r->n_neighbours + 1;
  int* place_of = NULL;
  w->n = n;
  ASSAY_TRY(assay_arena_new(r->arena, n, sizeof *w->tables, &w->tables));
  ASSAY_TRY(assay_arena_new(r->arena, n, sizeof *w->at, &w->at));
  ASSAY_TRY(assay_arena_new(r->arena, n * width, sizeof *w->steps, &w->steps));
  ASSAY_TRY(assay_new_array((size_t)r->a->n, sizeof *place_of, &place_of));
  for (int i = 0; i < r->a->n; i++) place_of[i] = -1;
  for (int i = 0; i < r->n_neighbours; i++) place_of[r->neighbours[i]] = i;
  place_of[v] = r->n_neighbours;
  place = r->first[v];
  for (size_t i = 0; i < n; i++) {
    w->tables[i] = next_table(r, &place);
    steps_of(r, w->tables[i], place_of, &w->steps[i * width]);
  }
  assay_free(place_of);
  return NULL;
}

// The best state of the variable where the tables stand now: the one that it has, among equals.
static int best_here(const round_t* r, int v, const walk_t* w, double* out_cost) {
  const size_t width = (size_t)r->n_neighbours + 1;
  int best = -1;
  for (int s = 0; s < r->a->n_states[v]; s++) {
    double sum = 0;
    for (size_t i = 0; i < w->n; i++)
      sum += w->tables[i]->costs[w->at[i] + (size_t)s * w->steps[i * width + width - 1]];
    if (best >= 0 && !(sum < *out_cost || (sum == *out_cost && s == r->states[v]))) continue;
    best = s;
    *out_cost = sum;
  }
  return best;
}

// The next states of the neighbours, the last one's first.
static void advance(const round_t* r, walk_t* w, int* index) {
  const size_t width = (size_t)r->n_neighbours + 1;
  for (int d = r->n_neighbours - 1; d >= 0; d--) {
    const int states = r->a->n_states[r->neighbours[d]];
    const bool wraps = ++index[d] == states;
    if (wraps) index[d] = 0;
    for (size_t i = 0; i < w->n; i++) {
      const size_t step = w->steps[i * width + (size_t)d];
      w->at[i] = wraps ? w->at[i] - (size_t)(states - 1) * step : w->at[i] + step;
    }
    if (!wraps) return;
  }
}

static void forget_sizes(round_t* r) {
  for (int i = 0; i < r->n_neighbours; i++) r->size[r->neighbours[i]] = 0;
}

// A table over its neighbours takes the place of all tables of a variable.
static assay_status_t eliminate(round_t* r, int v) {
  const size_t size = count_neighbours(r, v);
  walk_t w;
  int *index = NULL, *neighbours = NULL;
  double* costs = NULL;
  uint8_t* best = NULL;
  ASSAY_TRY(begin_walk(r, v, &w));
  ASSAY_TRY(assay_arena_new(r->arena, (size_t)r->n_neighbours + 1, sizeof *index, &index));
  ASSAY_TRY(assay_arena_new(r->arena, (size_t)r->n_neighbours + 1, sizeof(int), &neighbours));
  ASSAY_TRY(assay_arena_new(r->arena, size, sizeof *costs, &costs));
  ASSAY_TRY(assay_arena_new(r->arena, size, sizeof *best, &best));
  memcpy(neighbours, r->neighbours, (size_t)r->n_neighbours * sizeof *neighbours);
  for (size_t i = 0; i < size; i++) {
    best[i] = (uint8_t)best_here(r, v, &w, &costs[i]);
    advance(r, &w, index);
  }
  size_t place = r->first[v];
  for (table_t* t; (t = next_table(r, &place));) t->done = true;
  r->gone[v] = true;
  r->records[r->n_records++] = (record_t){v, r->n_neighbours, neighbours, best};
  forget_sizes(r);
  const table_t made = {.n = r->n_neighbours, .variables = neighbours, .costs = costs};
  return made.n ? put_table(r, made) : NULL;
}

// A table without a variable, which stays at its state.
static assay_status_t without(const round_t* r, const table_t* t, int v, table_t* out) {
  size_t entries = 1, inner = 1;
  int *variables = NULL, n = 0;
  double* costs = NULL;
  bool behind = false;
  for (int i = 0; i < t->n; i++) {
    const size_t states = (size_t)r->a->n_states[t->variables[i]];
    if (behind) inner *= states;
    behind |= t->variables[i] == v;
    if (t->variables[i] != v) entries *= states;
  }
  ASSAY_TRY(assay_arena_new(r->arena, (size_t)t->n, sizeof *variables, &variables));
  ASSAY_TRY(assay_arena_new(r->arena, entries, sizeof *costs, &costs));
  for (int i = 0; i < t->n; i++)
    if (t->variables[i] != v) variables[n++] = t->variables[i];
  for (size_t i = 0; i < entries; i++)
    costs[i] = t->costs[(i / inner * (size_t)r->a->n_states[v] + (size_t)r->states[v]) * inner +
                        i % inner];
  *out = (table_t){.n = n, .variables = variables, .costs = costs};
  return NULL;
}

static assay_status_t hold(round_t* r, int v) {
  count_neighbours(r, v);
  forget_sizes(r);
  r->gone[v] = r->held[v] = true;
  // Tables that are put in are none of the variable's.
  size_t place = r->first[v];
  for (table_t* t; (t = next_table(r, &place));) {
    table_t rest;
    t->done = true;
    ASSAY_TRY(without(r, t, v, &rest));
    if (rest.n) ASSAY_TRY(put_table(r, rest));
  }
  return NULL;
}

// The variable that leaves the smallest table.
static int smallest(round_t* r) {
  int best = -1;
  for (int v = 0; v < r->a->n; v++) {
    if (r->gone[v]) continue;
    if (!r->size[v]) r->size[v] = count_neighbours(r, v);
    if (best < 0 || r->size[v] < r->size[best]) best = v;
  }
  return best;
}

// The variable with most neighbours, of those that were not held in the round before.
static int widest(round_t* r) {
  int best = -1, max = -1;
  for (int fresh = 1; best < 0 && fresh >= 0; fresh--)
    for (int v = 0; v < r->a->n; v++) {
      if (r->gone[v] || (fresh && r->rest[v])) continue;
      count_neighbours(r, v);
      if (r->n_neighbours > max) max = r->n_neighbours, best = v;
    }
  return best;
}

static void trace_back(round_t* r) {
  for (int i = r->n_records - 1; i >= 0; i--) {
    const record_t* x = &r->records[i];
    size_t at = 0;
    for (int k = 0; k < x->n; k++)
      at = at * (size_t)r->a->n_states[x->neighbours[k]] + (size_t)r->states[x->neighbours[k]];
    r->states[x->variable] = x->best[at];
  }
}

static assay_status_t prepare(round_t* r) {
  const size_t n = (size_t)r->a->n + 1;
  ASSAY_TRY(assay_arena_create(&r->arena));
  ASSAY_TRY(assay_arena_new(r->arena, n, sizeof *r->first, &r->first));
  ASSAY_TRY(assay_arena_new(r->arena, n, sizeof *r->size, &r->size));
  ASSAY_TRY(assay_arena_new(r->arena, n, sizeof *r->gone, &r->gone));
  ASSAY_TRY(assay_arena_new(r->arena, n, sizeof *r->seen, &r->seen));
  ASSAY_TRY(assay_arena_new(r->arena, n, sizeof *r->neighbours, &r->neighbours));
  ASSAY_TRY(assay_arena_new(r->arena, n, sizeof *r->records, &r->records));
  for (size_t i = 0; i < r->a->n_tables; i++)
    if (r->a->tables[i].n) ASSAY_TRY(put_table(r, r->a->tables[i]));
  return NULL;
}

// Solves around what is held; *out_held: how many that are.
static assay_status_t play(round_t* r, int* out_held) {
  *out_held = 0;
  ASSAY_TRY(prepare(r));
  for (int v; (v = smallest(r)) >= 0;) {
    if (r->size[v] <= r->limit) {
      ASSAY_TRY(eliminate(r, v));
      continue;
    }
    ASSAY_TRY(hold(r, widest(r)));
    ++*out_held;
  }
  trace_back(r);
  return NULL;
}

// One round from these states, which are replaced.
static assay_status_t play_once(const assay_assign_t* a, size_t limit, const bool* rest, bool* held,
                                int* states, int* out_held) {
  round_t r = {.a = a, .limit = limit, .states = states, .rest = rest, .held = held};
  assay_status_t st = play(&r, out_held);
  assay_free(r.tables);
  assay_free(r.links);
  assay_arena_destroy(r.arena);
  return st;
}

static assay_status_t solve(const assay_assign_t* a, size_t limit, bool* held[2], int* next,
                            int* states, bool* out_exact) {
  const size_t n = (size_t)a->n;
  double cost = assay_assign_cost(a, states);
  int idle = 0, n_held = 1;
  // A round with others held is another neighbourhood: two without gain in a row are enough.
  for (int i = 0; i < ROUNDS && idle < 2 && n_held; i++) {
    memset(held[i % 2], 0, n * sizeof *held[0]);
    memcpy(next, states, n * sizeof *next);
    ASSAY_TRY(play_once(a, limit, held[(i + 1) % 2], held[i % 2], next, &n_held));
    const double now = assay_assign_cost(a, next);
    idle++;
    if (!(now < cost)) continue;
    memcpy(states, next, n * sizeof *next);
    cost = now;
    idle = 0;
  }
  *out_exact = !n_held;
  return NULL;
}

assay_status_t assay_assign_solve(const assay_assign_t* a, size_t entries, int* states,
                                  bool* out_exact) {
  bool* held[2] = {NULL, NULL};
  int* next = NULL;
  assay_status_t st = assay_new_array((size_t)a->n + 1, sizeof *held[0], &held[0]);
  if (!st) st = assay_new_array((size_t)a->n + 1, sizeof *held[1], &held[1]);
  if (!st) st = assay_new_array((size_t)a->n + 1, sizeof *next, &next);
  if (!st) st = solve(a, entries, held, next, states, out_exact);
  assay_free(held[0]);
  assay_free(held[1]);
  assay_free(next);
  return st;
}
