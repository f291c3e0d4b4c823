// Which tactic runs a layer: the first that takes it, in the order of the table, which predicted
// times may change (costs.h); where others take it that give the same bits (or any, if asked for),
// and their times are known or may be measured, the fastest of these.
#include "exec/choice/choice.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/shown.h"
#include "exec/choice/choice_times.h"
#include "exec/choice/signature.h"
#include "exec/choice/ways.h"

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

static assay_status_t names_init(assay_choice_t* c) {
  ASSAY_TRY(assay_arena_create(&c->arena));
  if (pthread_mutex_init(&c->lock, NULL) == 0) return NULL;
  assay_arena_destroy(c->arena);
  c->arena = NULL;
  return assay_status_no_memory();
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
  const int max = ASSAY_MAX_CANDIDATES - ASSAY_MAX_LIBRARY_WAYS;
  c->max = o->max_tactics > 0 && o->max_tactics < max ? o->max_tactics : max;
  assay_status_t st = assay_weights_create(&c->store);
  if (!st) st = names_init(c);
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
  assay_map_deinit(&c->names);
  if (c->arena) pthread_mutex_destroy(&c->lock);
  assay_arena_destroy(c->arena);
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

static assay_candidate_t candidate(const assay_way_t* w, double microseconds) {
  return (assay_candidate_t){
      .tactic = w->tactic, .name = w->name, .microseconds = microseconds, .predicted = (double)NAN};
}

// Of all kernels that take the layer the one that needs the least scratch.
static assay_status_t make_smallest(const assay_choice_t* choice, const assay_ways_t* ways,
                                    const assay_sized_layer_t* l, assay_kernel_t** out) {
  *out = NULL;
  for (size_t t = 0; t < ways->n; t++) {
    assay_kernel_t* k = NULL;
    if (!assay_ways_trust(choice, ways->at[t].tactic)) continue;
    assay_status_t st = assay_way_make(&ways->at[t], l, 0, &k);
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

// Whether none of the ways before one takes the layer, of those that give other bits; resized: of
// those whose kernels can be given other sizes.
static assay_status_t is_first(const assay_choice_t* c, const assay_sized_layer_t* l,
                               const assay_ways_t* ways, const char* name, const char* numerics,
                               bool resized, bool* out) {
  *out = true;
  for (size_t i = 0; *out && i < ways->n && strcmp(ways->at[i].name, name) != 0; i++) {
    const assay_way_t* before = &ways->at[i];
    assay_kernel_t* k = NULL;
    if (!assay_ways_trust(c, before->tactic) || assay_ways_compete(c, numerics, before->numerics) ||
        (resized && !before->tactic->resize))
      continue;
    ASSAY_TRY(assay_way_make(before, l, c->scratch, &k));
    *out = !k;
    if (k) k->destroy(k);
  }
  return NULL;
}

// Of ways and their times the fastest that is not out; -1: none is left.
static int find_fastest(const assay_candidate_t* c, int n, const bool* out, bool ours) {
  int best = -1;
  for (int i = 0; i < n; i++)
    if (!out[i] && !(ours && c[i].tactic->verify) &&
        (best < 0 || c[i].microseconds < c[best].microseconds))
      best = i;
  return best;
}

// Makes the fastest. A library may be another one by now, or none: then the next one. Where it is a
// library's, the fastest of ours is made as well, so that a plan has what that needs.
static assay_status_t make_known(const assay_choice_t* choice, const assay_sized_layer_t* l,
                                 const assay_way_t* const* ways, const assay_candidate_t* c, int n,
                                 assay_kernel_t** out) {
  bool gone[ASSAY_MAX_CANDIDATES];
  int best = -1;
  for (int i = 0; i < n; i++) gone[i] = c[i].differs;
  while (!*out && (best = find_fastest(c, n, gone, false)) >= 0) {
    ASSAY_TRY(assay_way_make(ways[best], l, choice->scratch, out));
    gone[best] = true;
    if (!*out && !ways[best]->tactic->verify) return NULL;
  }
  if (!*out || assay_ways_trust(choice, ways[best]->tactic)) return NULL;
  const int ours = find_fastest(c, n, gone, true);
  assay_kernel_t* other = NULL;
  assay_status_t st = ours < 0 ? NULL : assay_way_make(ways[ours], l, choice->scratch, &other);
  if (other) other->destroy(other);
  if (st) (*out)->destroy(*out), *out = NULL;
  return st;
}

// Whether a way is a library's that competes, and of which the timings know nothing yet: it came
// after they were measured, or they were measured where its bits mattered and were others. Where
// kernels are timed, they are all timed again then.
static bool is_new(const assay_choice_t* c, const assay_way_t* first, const assay_way_t* w,
                   const char* signature) {
  double us;
  bool differs;
  return c->measure && w->tactic->verify && assay_ways_compete(c, first->numerics, w->numerics) &&
         !assay_choice_knows(c, w, signature, &us, &differs);
}

// What the timings know of the layer; only the fastest is made then. They say how long kernels
// take, not whose bits the layer has: they may have been measured where others were left out, where
// all competed, or where a kernel's constants or its scratch were others. So a way before the first
// of them that gives other bits and takes the layer voids what they say.
static assay_status_t choose_known(const assay_choice_t* choice, const assay_sized_layer_t* l,
                                   const assay_ways_t* ways, const char* signature,
                                   assay_kernel_t** out, assay_candidate_t* c, int* n) {
  const assay_way_t *first = NULL, *known[ASSAY_MAX_CANDIDATES];
  bool is_class = false;
  for (size_t i = 0; i < ways->n && *n < ASSAY_MAX_CANDIDATES; i++) {
    const assay_way_t* w = &ways->at[i];
    double us;
    bool differs = false;
    if ((first && !assay_ways_compete(choice, first->numerics, w->numerics)) ||
        !assay_choice_knows(choice, w, signature, &us, &differs))
      continue;
    known[*n] = w;
    c[*n] = candidate(w, us);
    c[(*n)++].differs = differs;
    if (!first && assay_ways_trust(choice, w->tactic)) first = w;
  }
  if (first) ASSAY_TRY(is_first(choice, l, ways, first->name, first->numerics, false, &is_class));
  for (size_t i = 0; is_class && i < ways->n; i++)
    is_class = !is_new(choice, first, &ways->at[i], signature);
  return is_class ? make_known(choice, l, known, c, *n, out) : NULL;
}

// Makes a kernel of the first way that takes the layer, and of those that compete with it the
// likeliest: so many of ours as before, whether there is a library or not.
static assay_status_t make_all(const assay_choice_t* choice, const assay_sized_layer_t* l,
                               assay_ways_t* ways, bool first_only, assay_kernel_t** kernels,
                               assay_candidate_t* c, int* n) {
  int left[2] = {choice->max, ASSAY_MAX_LIBRARY_WAYS};  // of ours, and of a library's
  if (left[1] > choice->max - 1) left[1] = choice->max - 1;
  for (size_t i = 0; i < ways->n && !(first_only && *n); i++) {
    const assay_way_t* w = &ways->at[i];
    if (!left[w->tactic->verify] || (first_only && !assay_ways_trust(choice, w->tactic)) ||
        (*n && !assay_ways_compete(choice, kernels[0]->numerics, w->numerics)))
      continue;
    ASSAY_TRY(assay_way_make(w, l, choice->scratch, &kernels[*n]));
    if (!kernels[*n]) continue;
    c[(*n)++] = candidate(w, (double)NAN);
    left[w->tactic->verify]--;
    if (*n == 1) assay_ways_order(choice, w->numerics, i + 1, ways);
  }
  return NULL;
}

// Where sizes grow: the first that takes the layer of those whose kernels can be given other sizes.
// No times: they are of one size.
static assay_status_t choose_growing(const assay_choice_t* choice, const assay_sized_layer_t* l,
                                     const assay_ways_t* ways, assay_kernel_t** out,
                                     assay_candidate_t* c, int* n) {
  for (size_t i = 0; !*out && l->grows && i < ways->n; i++) {
    if (!ways->at[i].tactic->resize) continue;
    ASSAY_TRY(assay_way_make(&ways->at[i], l, choice->scratch, out));
    if (*out) c[(*n)++] = candidate(&ways->at[i], (double)NAN);
  }
  return NULL;
}

static assay_status_t choose_forced(assay_choice_t* choice, const assay_sized_layer_t* l,
                                    assay_kernel_t** out, assay_candidate_t* c, int* n) {
  assay_way_t forced;
  ASSAY_TRY(assay_way_forced(choice, l, &forced));
  if (forced.tactic) ASSAY_TRY(assay_way_make(&forced, l, 0, out));  // whatever scratch it needs
  if (!*out) return NULL;
  c[*n] = candidate(&forced, (double)NAN);
  c[(*n)++].forced = true;
  return NULL;
}

// By times, which are measured where that is wanted.
static assay_status_t choose_timed(assay_choice_t* choice, const assay_sized_layer_t* l,
                                   assay_ways_t* ways, const char* signature, assay_kernel_t** out,
                                   assay_candidate_t* c, int* n) {
  assay_kernel_t* kernels[ASSAY_MAX_CANDIDATES] = {NULL};
  int fastest = 0;
  assay_status_t st = make_all(choice, l, ways, !choice->measure, kernels, c, n);
  if (!st && choice->measure && !choice->rehearses)
    st = assay_choice_time(choice, l, signature, kernels, c, *n, &fastest);
  if (!st && kernels[fastest]) {
    *out = kernels[fastest];
    kernels[fastest] = NULL;
  } else if (!st && choice->scratch) {
    st = make_smallest(choice, ways, l, out);
    if (*out)
      c[(*n)++] = (assay_candidate_t){.tactic = (*out)->tactic,
                                      .name = (*out)->name,
                                      .microseconds = (double)NAN,
                                      .predicted = (double)NAN};
  }
  for (int i = 0; i < ASSAY_MAX_CANDIDATES; i++)
    if (kernels[i]) kernels[i]->destroy(kernels[i]);
  return st;
}

static assay_status_t choose(assay_choice_t* choice, const assay_sized_layer_t* l,
                             const char* signature, assay_kernel_t** out, assay_candidate_t* c,
                             int* n) {
  assay_ways_t ways = {0};
  ASSAY_TRY(choose_forced(choice, l, out, c, n));
  if (*out) return NULL;
  assay_status_t st = assay_ways_list(choice, l, signature, &ways);
  if (!st) st = choose_growing(choice, l, &ways, out, c, n);
  if (!st && !*out) st = choose_known(choice, l, &ways, signature, out, c, n);
  if (!st && !*out) {
    *n = 0;
    st = choose_timed(choice, l, &ways, signature, out, c, n);
  }
  assay_ways_deinit(&ways);
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

assay_status_t assay_choice_resize(assay_choice_t* c, const assay_sized_layer_t* l,
                                   assay_kernel_t* k, bool* out_ok) {
  assay_way_t forced;
  ASSAY_TRY(assay_way_forced(c, l, &forced));
  *out_ok = k->tactic->resize && (!forced.tactic || strcmp(forced.name, k->name) == 0);
  if (*out_ok && !forced.tactic) {
    assay_ways_t ways = {0};
    assay_status_t st = assay_ways_list(c, l, NULL, &ways);
    if (!st) st = is_first(c, l, &ways, k->name, k->numerics, l->grows, out_ok);
    assay_ways_deinit(&ways);
    if (st) return st;
  }
  if (*out_ok) {
    // A tactic may make the kernel anew in its place.
    const char *const name = k->name, *const numerics = k->numerics;
    assay_status_t st = k->tactic->resize(l, k, out_ok);
    k->name = name;
    k->numerics = numerics;
    if (st) return st;
  }
  if (c->scratch && !forced.tactic && k->scratch > c->scratch) *out_ok = false;
  return NULL;
}
