// The ways in which a layer can be run.
#include "exec/choice/ways.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"

// ---- names --------------------------------------------------------------------------------------

// A text, kept once.
static assay_status_t keep(assay_choice_t* c, const char* text, const char** out) {
  uint64_t at = 0;
  assay_status_t st = NULL;
  pthread_mutex_lock(&c->lock);
  if (assay_map_get(&c->names, text, &at)) {
    *out = (const char*)(uintptr_t)at;
  } else {
    st = assay_arena_strdup(c->arena, text, out);
    if (!st) st = assay_map_put(&c->names, *out, (uint64_t)(uintptr_t)*out, NULL);
  }
  pthread_mutex_unlock(&c->lock);
  return st;
}

// "TACTIC/VARIANT".
static assay_status_t name_of(assay_choice_t* c, const assay_tactic_t* tactic, const char* variant,
                              const char** out) {
  assay_str_t text = {0};
  *out = tactic->name;
  if (!*variant) return NULL;
  assay_str_printf(&text, "%s/%s", tactic->name, variant);
  assay_status_t st = assay_str_status(&text);
  if (!st) st = keep(c, assay_str_get(&text), out);
  assay_str_deinit(&text);
  return st;
}

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

// ---- listing ------------------------------------------------------------------------------------

bool assay_ways_compete(const assay_choice_t* c, const char* a, const char* b) {
  return c->any_bits || (a && b && strcmp(a, b) == 0);
}

bool assay_ways_allow(const assay_choice_t* c, const assay_tactic_t* tactic) {
  return is_allowed(c->sources, tactic);
}

bool assay_ways_trust(const assay_choice_t* c, const assay_tactic_t* tactic) {
  return c->any_bits || !tactic->verify;
}

// Whether one variant comes before another: those of the bits of the first that the tactic lists
// come first, whatever is predicted, since predictions go by sizes: were another one's bits taken
// for a batch of 8 than for one of 1, a sample's result would depend on the batch, and on which
// profile of an engine it ran in.
static bool is_before(const assay_choice_t* c, const char* bits, const assay_way_t* a,
                      const assay_way_t* b) {
  const bool own = assay_ways_compete(c, bits, a->numerics);
  if (own != assay_ways_compete(c, bits, b->numerics)) return own;
  return a->predicted < b->predicted;
}

// Appends a tactic's variants, of the same bits those that are predicted to be fastest first.
static assay_status_t add(assay_choice_t* c, const assay_tactic_t* tactic,
                          const assay_variant_t* variants, size_t n, assay_ways_t* out) {
  const size_t first = out->n;
  const char* bits = n ? variants[0].numerics : NULL;
  ASSAY_TRY(assay_grow(&out->at, &out->cap, out->n + n, sizeof *out->at));
  for (size_t i = 0; i < n; i++) {
    assay_way_t w = {.tactic = tactic,
                     .numerics = variants[i].numerics,
                     .predicted = variants[i].predicted,
                     .variant = variants[i]};
    ASSAY_TRY(name_of(c, tactic, w.variant.name, &w.name));
    size_t at = out->n++;
    for (; at > first && is_before(c, bits, &w, &out->at[at - 1]); at--)
      out->at[at] = out->at[at - 1];
    out->at[at] = w;
  }
  return NULL;
}

static assay_status_t add_tactic(assay_choice_t* c, const assay_sized_layer_t* l,
                                 const assay_tactic_t* tactic, assay_ways_t* out) {
  if (!tactic->variants) {
    const assay_variant_t only = {.numerics = tactic->numerics, .predicted = (double)NAN};
    return add(c, tactic, &only, 1, out);
  }
  assay_variant_t* variants = NULL;
  size_t n = 0;
  ASSAY_TRY(assay_new_array(ASSAY_MAX_VARIANTS, sizeof *variants, &variants));
  assay_status_t st = tactic->variants(l, variants, &n);
  if (!st) st = add(c, tactic, variants, n, out);
  assay_free(variants);
  return st;
}

// A way as timings name it: "TACTIC/VARIANT=NUMERICS", '!' for one of other bits.
static assay_status_t add_known(assay_choice_t* c, const assay_tactic_t* tactic, const char* name,
                                size_t n, assay_ways_t* out) {
  const size_t called = strlen(tactic->name), mark = strcspn(name, "=! ");
  assay_way_t w = {.tactic = tactic, .predicted = (double)NAN, .variant.predicted = (double)NAN};
  const size_t variant = mark > called ? mark - called - 1 : 0;
  char numerics[ASSAY_VARIANT_BYTES] = "";
  if (mark >= n || variant >= sizeof w.variant.name || n - mark > sizeof numerics) return NULL;
  if (variant) memcpy(w.variant.name, name + called + 1, variant);
  ASSAY_TRY(name_of(c, tactic, w.variant.name, &w.name));
  memcpy(numerics, name + mark + 1, n - mark - 1);
  ASSAY_TRY(keep(c, numerics, &w.numerics));
  w.variant.numerics = w.numerics;
  ASSAY_TRY(assay_grow(&out->at, &out->cap, out->n + 1, sizeof *out->at));
  out->at[out->n++] = w;
  return NULL;
}

static assay_status_t add_library(assay_choice_t* c, const assay_tactic_t* tactic,
                                  const char* signature, assay_ways_t* out) {
  const char* name = NULL;
  size_t at = 0, n = 0;
  while (signature && assay_timings_next(c->timings, &at, tactic->name, signature, &name, &n))
    ASSAY_TRY(add_known(c, tactic, name, n, out));
  return NULL;
}

void assay_ways_order(const assay_choice_t* c, const char* numerics, size_t from, assay_ways_t* w) {
  for (size_t i = from; i < w->n; i++)
    for (size_t k = i + 1; k < w->n; k++) {
      if (!(w->at[k].predicted < w->at[i].predicted) ||
          !assay_ways_compete(c, numerics, w->at[i].numerics) ||
          !assay_ways_compete(c, numerics, w->at[k].numerics))
        continue;
      const assay_way_t later = w->at[i];
      w->at[i] = w->at[k];
      w->at[k] = later;
    }
}

static bool is_for_several(const assay_tactic_t* t) {
  return t->make_pair || t->make_joint || t->make_siblings;
}

assay_status_t assay_ways_list(assay_choice_t* c, const assay_sized_layer_t* l,
                               const char* signature, assay_ways_t* out) {
  size_t order[ASSAY_MAX_TACTICS];
  assay_costs_rank(c->setting.costs, l, c->any_bits, c->setting.tactics, c->setting.n_tactics,
                   order);
  for (size_t i = 0; i < c->setting.n_tactics; i++) {
    const assay_tactic_t* tactic = c->setting.tactics[order[i]];
    if (is_for_several(tactic) || !is_allowed(c->sources, tactic)) continue;
    if (c->measure || assay_ways_trust(c, tactic))
      ASSAY_TRY(add_tactic(c, l, tactic, out));
    else
      ASSAY_TRY(add_library(c, tactic, signature, out));
  }
  if (c->any_bits) assay_ways_order(c, NULL, 0, out);
  return NULL;
}

void assay_ways_deinit(assay_ways_t* w) {
  assay_free(w->at);
  *w = (assay_ways_t){0};
}

// ---- making -------------------------------------------------------------------------------------

assay_status_t assay_way_make(const assay_way_t* w, const assay_sized_layer_t* l, uint64_t limit,
                              assay_kernel_t** out) {
  *out = NULL;
  if (w->tactic->variants)
    ASSAY_TRY(w->tactic->make_variant(l, &w->variant, out));
  else
    ASSAY_TRY(w->tactic->make(l, out));
  if (!*out) return NULL;
  (*out)->tactic = w->tactic;
  (*out)->name = w->name;
  (*out)->numerics = w->numerics;
  if (!limit || (*out)->scratch <= limit) return NULL;
  (*out)->destroy(*out);
  *out = NULL;
  return NULL;
}

// ---- forced -------------------------------------------------------------------------------------

// Whether n characters are a way's name, or its tactic's.
static bool is_called(const assay_way_t* w, const char* name, size_t n) {
  return (strlen(w->name) == n && strncmp(w->name, name, n) == 0) ||
         (strlen(w->tactic->name) == n && strncmp(w->tactic->name, name, n) == 0);
}

// The first of a tactic's ways that n characters name.
static assay_status_t find_called(assay_choice_t* c, const assay_sized_layer_t* l,
                                  const assay_tactic_t* tactic, const char* name, size_t n,
                                  assay_way_t* out) {
  const size_t known = strlen(tactic->name);
  assay_ways_t ways = {0};
  if (is_for_several(tactic) || strncmp(name, tactic->name, known) != 0 ||
      (n > known && name[known] != '/'))
    return NULL;
  assay_status_t st = add_tactic(c, l, tactic, &ways);
  for (size_t i = 0; !st && !out->tactic && i < ways.n; i++)
    if (is_called(&ways.at[i], name, n)) *out = ways.at[i];
  assay_ways_deinit(&ways);
  return st;
}

assay_status_t assay_way_forced(assay_choice_t* c, const assay_sized_layer_t* l, assay_way_t* out) {
  *out = (assay_way_t){0};
  for (const char* line = c->forced; line && *line && !out->tactic;) {
    const size_t name = strcspn(line, " \n"), len = strcspn(line, "\n"), n = strlen(l->layer->name);
    const bool here = len == name + 1 + n && strncmp(line + name + 1, l->layer->name, n) == 0;
    for (size_t t = 0; here && !out->tactic && t < c->setting.n_tactics; t++)
      ASSAY_TRY(find_called(c, l, c->setting.tactics[t], line, name, out));
    line += len + (line[len] == '\n');
  }
  return NULL;
}
