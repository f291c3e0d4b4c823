// Which tactic runs a layer: the first that takes it, in the order of the table, which predicted
// times may change (costs.h); where others take it that give the same bits (or any, if asked for),
// and their times are known or may be measured, the fastest of these.
#include "exec/choice/choice.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/shown.h"
#include "exec/choice/signature.h"

#define TIMINGS "timings"

// ---- making -------------------------------------------------------------------------------------

static assay_status_t copy_text(const char* text, char** out) {
  if (!text) return NULL;
  const size_t n = strlen(text) + 1;
  *out = assay_malloc(n);
  if (!*out) return assay_status_no_memory();
  memcpy(*out, text, n);
  return NULL;
}

// Names the sources of a table, each once.
static void list_sources(const assay_choice_setting_t* s, assay_str_t* out) {
  for (size_t t = 0; t < s->n_tactics; t++) {
    bool again = false;
    for (size_t k = 0; k < t; k++)
      again |= strcmp(s->tactics[k]->source, s->tactics[t]->source) == 0;
    if (!again) assay_str_printf(out, "%s%s", out->len ? ", " : "", s->tactics[t]->source);
  }
}

// One entry of the list: a source, or '-' and a tactic's name, which is to be left out.
static bool is_known(const assay_choice_setting_t* s, const char* entry, size_t n) {
  for (size_t t = 0; t < s->n_tactics; t++) {
    const char* name = *entry == '-' ? s->tactics[t]->name : s->tactics[t]->source;
    const char* given = *entry == '-' ? entry + 1 : entry;
    const size_t left = n - (size_t)(given - entry);
    if (strlen(name) == left && strncmp(name, given, left) == 0) return true;
  }
  return false;
}

static assay_status_t check_sources(const assay_choice_setting_t* setting, const char* sources) {
  for (const char* s = sources; s; s = strchr(s, ',')) {
    if (*s == ',') s++;
    const size_t n = strcspn(s, ",");
    if (is_known(setting, s, n)) continue;
    if (*s == '-')
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "there is no tactic '%.*s' to leave out",
                         (int)n - 1, s + 1);
    assay_str_t all = {0};
    list_sources(setting, &all);
    assay_status_t st =
        ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "'%.*s' is not a source of tactics; there are %s",
                    (int)n, s, assay_str_get(&all));
    assay_str_deinit(&all);
    return st;
  }
  return NULL;
}

assay_status_t assay_choice_create(const assay_choice_setting_t* setting,
                                   const assay_backend_options_t* options, assay_choice_t** out) {
  static const assay_backend_options_t none = {0};
  const assay_backend_options_t* o = options ? options : &none;
  assay_choice_t* c = NULL;
  bool fits = true;
  if (setting->n_tactics > ASSAY_MAX_TACTICS)
    return ASSAY_ERROR(ASSAY_INTERNAL, "%zu tactics; at most %d", setting->n_tactics,
                       (int)ASSAY_MAX_TACTICS);
  ASSAY_TRY(ASSAY_NEW(&c));
  c->setting = *setting;
  c->measure = o->measure;
  c->any_bits = o->batch_variant;
  c->runs = o->timing_runs;
  c->scratch = o->max_scratch;
  c->max = o->max_tactics > 0 && o->max_tactics < ASSAY_MAX_CANDIDATES ? o->max_tactics
                                                                       : ASSAY_MAX_CANDIDATES;
  assay_status_t st = assay_weights_create(&c->store);
  if (!st) st = assay_timings_create(setting->machine, &c->timings);
  if (!st) st = check_sources(setting, o->tactic_sources);
  if (!st) st = copy_text(o->tactic_sources, &c->sources);
  if (!st) st = copy_text(o->forced, &c->forced);
  if (!st && o->timings) st = assay_timings_parse(c->timings, o->timings, o->timings_bytes, &fits);
  if (st) return assay_choice_destroy(c), st;
  *out = c;
  return NULL;
}

void assay_choice_destroy(assay_choice_t* c) {
  if (!c) return;
  assay_weights_destroy(c->store);
  assay_timings_destroy(c->timings);
  assay_free(c->sources);
  assay_free(c->forced);
  assay_str_deinit(&c->text);
  assay_free(c);
}

// ---- keeping ------------------------------------------------------------------------------------

assay_status_t assay_choice_timings(const assay_choice_t* c, assay_str_t* out, bool* out_measured) {
  *out_measured = c->measured;
  return assay_timings_print(c->timings, false, out);
}

void assay_choice_freeze(assay_choice_t* c) { c->measure = false; }

assay_status_t assay_choice_saved(assay_choice_t* c, size_t i, const char** out_key,
                                  const void** out_data, size_t* out_bytes) {
  *out_key = NULL;
  if (i > assay_weights_count(c->store)) return NULL;
  if (i) return assay_weights_entry(c->store, i - 1, out_key, out_data, out_bytes), NULL;
  assay_str_deinit(&c->text);
  ASSAY_TRY(assay_timings_print(c->timings, true, &c->text));
  *out_key = TIMINGS;
  *out_data = assay_str_get(&c->text);
  *out_bytes = strlen(assay_str_get(&c->text));
  return NULL;
}

assay_status_t assay_choice_restore(assay_choice_t* c, const char* key, const void* data,
                                    size_t bytes) {
  if (strcmp(key, TIMINGS) == 0) return assay_timings_parse(c->timings, data, bytes, NULL);
  return assay_weights_put(c->store, key, data, bytes);
}

// ---- choosing -----------------------------------------------------------------------------------

static bool is_entry(const char* entry, const char* name) {
  const size_t n = strlen(name);
  return strncmp(entry, name, n) == 0 && (entry[n] == ',' || !entry[n]);
}

// Whether the list has the tactic's source, or no sources at all, and does not leave it out.
static bool is_allowed(const char* sources, const assay_tactic_t* tactic) {
  bool any = false, here = false;
  for (const char* s = sources; s; s = strchr(s, ',')) {
    if (*s == ',') s++;
    if (*s == '-' && is_entry(s + 1, tactic->name)) return false;
    any |= *s != '-';
    here |= *s != '-' && is_entry(s, tactic->source);
  }
  return here || !any;
}

// limit: of its scratch, past which there is none; 0: any.
static assay_status_t make_with(const assay_tactic_t* tactic, const assay_sized_layer_t* l,
                                uint64_t limit, assay_kernel_t** out) {
  *out = NULL;
  ASSAY_TRY(tactic->make(l, out));
  if (!*out) return NULL;
  (*out)->tactic = tactic;
  if (!limit || (*out)->scratch <= limit) return NULL;
  (*out)->destroy(*out);
  *out = NULL;
  return NULL;
}

// Of all kernels that take the layer the one that needs the least scratch.
static assay_status_t make_smallest(const assay_choice_t* c, const assay_sized_layer_t* l,
                                    assay_kernel_t** out) {
  *out = NULL;
  for (size_t t = 0; t < c->setting.n_tactics; t++) {
    assay_kernel_t* k = NULL;
    if (!is_allowed(c->sources, c->setting.tactics[t])) continue;
    assay_status_t st = make_with(c->setting.tactics[t], l, 0, &k);
    if (st) {
      if (*out) (*out)->destroy(*out);
      return *out = NULL, st;
    }
    if (!k) continue;
    assay_kernel_t* other = *out && (*out)->scratch <= k->scratch ? k : *out;
    if (other != k) *out = k;
    if (other) other->destroy(other);
  }
  return NULL;
}

// The tactics in the order in which they are tried for a layer.
typedef struct order {
  size_t at[ASSAY_MAX_TACTICS];
} order_t;

static const assay_tactic_t* ranked(const assay_choice_t* c, const order_t* o, size_t i) {
  return c->setting.tactics[o->at[i]];
}

static bool compete(const assay_choice_t* c, const assay_tactic_t* a, const assay_tactic_t* b) {
  return c->any_bits || a == b ||
         (a->numerics && b->numerics && strcmp(a->numerics, b->numerics) == 0);
}

// What the timings know of the layer; only the fastest is made then.
static assay_status_t choose_known(const assay_choice_t* choice, const assay_sized_layer_t* l,
                                   const order_t* order, const char* signature,
                                   assay_kernel_t** out, assay_candidate_t* c, int* n) {
  int best = -1;
  for (size_t i = 0; i < choice->setting.n_tactics && *n < ASSAY_MAX_CANDIDATES; i++) {
    const assay_tactic_t* tactic = ranked(choice, order, i);
    double us;
    if (!is_allowed(choice->sources, tactic) ||
        !assay_timings_find(choice->timings, tactic->name, signature, &us) ||
        (*n && !compete(choice, c[0].tactic, tactic)))
      continue;
    c[*n] = (assay_candidate_t){.tactic = tactic, .microseconds = us, .predicted = (double)NAN};
    if (best < 0 || us < c[best].microseconds) best = *n;
    (*n)++;
  }
  return best < 0 ? NULL : make_with(c[best].tactic, l, choice->scratch, out);
}

// Makes a kernel of the first tactic that takes the layer, and of all that compete with it.
static assay_status_t make_all(const assay_choice_t* choice, const assay_sized_layer_t* l,
                               const order_t* order, bool first_only, assay_kernel_t** kernels,
                               assay_candidate_t* c, int* n) {
  const int max = first_only ? 1 : choice->max;
  for (size_t i = 0; i < choice->setting.n_tactics && *n < max; i++) {
    const assay_tactic_t* tactic = ranked(choice, order, i);
    if (!is_allowed(choice->sources, tactic) || (*n && !compete(choice, c[0].tactic, tactic)))
      continue;
    ASSAY_TRY(make_with(tactic, l, choice->scratch, &kernels[*n]));
    if (!kernels[*n]) continue;
    c[(*n)++] = (assay_candidate_t){
        .tactic = tactic, .microseconds = (double)NAN, .predicted = (double)NAN};
  }
  return NULL;
}

static assay_status_t time_all(assay_choice_t* choice, const assay_sized_layer_t* l,
                               const char* signature, assay_kernel_t* const* kernels,
                               assay_candidate_t* c, int n, int* out_fastest) {
  *out_fastest = 0;
  for (int i = 0; i < n; i++) {
    ASSAY_TRY(choice->setting.time(choice->setting.user, l, kernels[i], choice->runs,
                                   &c[i].microseconds));
    ASSAY_TRY(assay_timings_add(choice->timings, c[i].tactic->name, signature, c[i].microseconds));
    if (c[i].microseconds < c[*out_fastest].microseconds) *out_fastest = i;
  }
  choice->measured = true;
  return NULL;
}

// The tactic that is forced on a layer; NULL: none is, or there is none of that name.
static const assay_tactic_t* find_forced(const assay_choice_t* choice, const char* layer) {
  for (const char* line = choice->forced; *line;) {
    const size_t name = strcspn(line, " \n"), len = strcspn(line, "\n"), n = strlen(layer);
    const bool here = len == name + 1 + n && strncmp(line + name + 1, layer, n) == 0;
    for (size_t t = 0; here && t < choice->setting.n_tactics; t++) {
      const char* known = choice->setting.tactics[t]->name;
      if (strlen(known) == name && strncmp(known, line, name) == 0)
        return choice->setting.tactics[t];
    }
    line += len + (line[len] == '\n');
  }
  return NULL;
}

// Where sizes grow: the first tactic that takes the layer of those whose kernels can be given other
// sizes. No times: they are of one size.
static assay_status_t choose_growing(const assay_choice_t* choice, const assay_sized_layer_t* l,
                                     const order_t* order, assay_kernel_t** out,
                                     assay_candidate_t* c, int* n) {
  for (size_t i = 0; !*out && l->grows && i < choice->setting.n_tactics; i++) {
    const assay_tactic_t* tactic = ranked(choice, order, i);
    if (!tactic->resize || !is_allowed(choice->sources, tactic)) continue;
    ASSAY_TRY(make_with(tactic, l, choice->scratch, out));
    if (*out)
      c[(*n)++] = (assay_candidate_t){
          .tactic = tactic, .microseconds = (double)NAN, .predicted = (double)NAN};
  }
  return NULL;
}

static assay_status_t choose(assay_choice_t* choice, const assay_sized_layer_t* l,
                             const char* signature, assay_kernel_t** out, assay_candidate_t* c,
                             int* n) {
  assay_kernel_t* kernels[ASSAY_MAX_CANDIDATES] = {NULL};
  const assay_tactic_t* forced = choice->forced ? find_forced(choice, l->layer->name) : NULL;
  int fastest = 0;
  if (forced) ASSAY_TRY(make_with(forced, l, 0, out));  // whatever scratch it needs
  if (*out) {
    c[(*n)++] = (assay_candidate_t){
        .tactic = forced, .microseconds = (double)NAN, .predicted = (double)NAN, .forced = true};
    return NULL;
  }
  order_t order;
  assay_costs_rank(choice->setting.costs, l, choice->any_bits, choice->setting.tactics,
                   choice->setting.n_tactics, order.at);
  ASSAY_TRY(choose_growing(choice, l, &order, out, c, n));
  if (*out) return NULL;
  ASSAY_TRY(choose_known(choice, l, &order, signature, out, c, n));
  if (*out) return NULL;
  *n = 0;
  assay_status_t st = make_all(choice, l, &order, !choice->measure, kernels, c, n);
  if (!st && *n > 1) st = time_all(choice, l, signature, kernels, c, *n, &fastest);
  if (!st && *n) {
    *out = kernels[fastest];
    kernels[fastest] = NULL;
  } else if (!st && choice->scratch) {
    st = make_smallest(choice, l, out);
    if (*out)
      c[(*n)++] = (assay_candidate_t){
          .tactic = (*out)->tactic, .microseconds = (double)NAN, .predicted = (double)NAN};
  }
  for (int i = 0; i < ASSAY_MAX_CANDIDATES; i++)
    if (kernels[i]) kernels[i]->destroy(kernels[i]);
  return st;
}

// What the constants predict for those that were looked at.
static void predict(const assay_choice_t* choice, const assay_sized_layer_t* l,
                    assay_candidate_t* c, int n) {
  assay_layer_sizes_t sizes;
  if (!choice->setting.costs || !assay_layer_sizes(l, &sizes)) return;
  for (int i = 0; i < n; i++)
    c[i].predicted = assay_costs_predict(choice->setting.costs, &sizes, c[i].tactic->name);
}

assay_status_t assay_choose(assay_choice_t* choice, const assay_sized_layer_t* l,
                            assay_kernel_t** out, assay_candidate_t* candidates,
                            int* n_candidates) {
  assay_str_t signature = {0};
  *out = NULL;
  *n_candidates = 0;
  assay_status_t st = assay_layer_signature(l, &signature);
  if (!st) st = choose(choice, l, assay_str_get(&signature), out, candidates, n_candidates);
  if (!st) predict(choice, l, candidates, *n_candidates);
  assay_str_deinit(&signature);
  return st;
}

// ---- other sizes --------------------------------------------------------------------------------

// Whether a tactic that does not compete with this one takes the layer before it.
static assay_status_t is_first(const assay_choice_t* c, const assay_sized_layer_t* l,
                               const assay_tactic_t* tactic, bool* out) {
  order_t order;
  assay_costs_rank(c->setting.costs, l, c->any_bits, c->setting.tactics, c->setting.n_tactics,
                   order.at);
  *out = true;
  for (size_t i = 0; *out && i < c->setting.n_tactics && ranked(c, &order, i) != tactic; i++) {
    const assay_tactic_t* before = ranked(c, &order, i);
    assay_kernel_t* k = NULL;
    if (!is_allowed(c->sources, before) || compete(c, tactic, before) ||
        (l->grows && !before->resize))
      continue;
    ASSAY_TRY(make_with(before, l, c->scratch, &k));
    *out = !k;
    if (k) k->destroy(k);
  }
  return NULL;
}

assay_status_t assay_choice_resize(const assay_choice_t* c, const assay_sized_layer_t* l,
                                   assay_kernel_t* k, bool* out_ok) {
  const assay_tactic_t* forced = c->forced ? find_forced(c, l->layer->name) : NULL;
  *out_ok = k->tactic->resize && (!forced || forced == k->tactic);
  if (*out_ok && !forced) ASSAY_TRY(is_first(c, l, k->tactic, out_ok));
  if (*out_ok) ASSAY_TRY(k->tactic->resize(l, k, out_ok));
  if (c->scratch && !forced && k->scratch > c->scratch) *out_ok = false;
  return NULL;
}

// ---- costs --------------------------------------------------------------------------------------

assay_status_t assay_choice_cost(assay_choice_t* c, const assay_sized_layer_t* l, assay_kernel_t* k,
                                 double* out_microseconds) {
  assay_str_t signature = {0};
  *out_microseconds = (double)NAN;
  assay_status_t st = assay_layer_signature(l, &signature);
  const char* text = assay_str_get(&signature);
  if (!st && !assay_timings_find(c->timings, k->tactic->name, text, out_microseconds) &&
      c->measure) {
    st = c->setting.time(c->setting.user, l, k, c->runs, out_microseconds);
    if (!st) st = assay_timings_add(c->timings, k->tactic->name, text, *out_microseconds);
    c->measured = true;
  }
  assay_str_deinit(&signature);
  return st;
}

assay_status_t assay_choice_move_cost(assay_choice_t* c, const assay_reformat_t* m,
                                      double* out_microseconds) {
  static const char name[] = "reorder";
  assay_str_t signature = {0};
  *out_microseconds = (double)NAN;
  assay_str_printf_raw(&signature, "%s[", assay_type_name(m->from.type));
  for (int d = 0; d < m->rank; d++)
    assay_str_printf_raw(&signature, "%s%lld", d ? "," : "", (long long)m->dims[d]);
  assay_str_printf_raw(&signature, "] %d to %d", (int)m->from.layout, (int)m->to.layout);
  assay_status_t st = assay_str_status(&signature);
  const char* text = assay_str_get(&signature);
  if (!st && !assay_timings_find(c->timings, name, text, out_microseconds) && c->measure &&
      c->setting.time_move) {
    st = c->setting.time_move(c->setting.user, m, out_microseconds);
    if (!st) st = assay_timings_add(c->timings, name, text, *out_microseconds);
    c->measured = true;
  }
  assay_str_deinit(&signature);
  return st;
}
