// What a repair search says while it runs.
#include "diagnose/golden/search_watch.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"

static const double EVERY_SECONDS = 0.1;

bool assay_search_watch_is_due(const assay_search_watch_t* w) {
  return w && w->progress && assay_clock_seconds() - w->told >= EVERY_SECONDS;
}

// The end of a long name, which tells more than its beginning: "...0.1/conv2/Conv".
static const char* short_name(const char* name, char* out, size_t capacity) {
  const size_t n = strlen(name);
  if (n < capacity)
    strcpy(out, name);
  else
    snprintf(out, capacity, "...%s", name + n - (capacity - 4));
  return out;
}

static void add_suspect(const assay_search_suspect_t* s, char* out, size_t capacity) {
  char name[32];
  *out = 0;
  if (!s->node) return;
  short_name(s->node->label, name, sizeof name);
  if (s->left >= 0 && s->left < 1)
    snprintf(out, capacity, "; suspect '%s' (leaves %.0f %%)", name, 100 * s->left);
  else
    snprintf(out, capacity, "; suspect '%s'", name);
}

void assay_search_watch_tell(assay_search_watch_t* w, const assay_search_suspect_t* suspect,
                             const char* doing, const char* cause, const assay_node_t* at) {
  char text[256], best[96], value[24], name[32];
  if (!w || !w->progress) return;
  w->told = assay_clock_seconds();
  add_suspect(suspect, best, sizeof best);
  short_name(w->value->name, value, sizeof value);
  snprintf(text, sizeof text, "'%s' off by %.3g%s; %s%s%s%s%s%s", value, w->off, best, doing,
           *cause ? " " : "", cause, at ? *cause ? " at '" : " '" : "",
           at ? short_name(at->label, name, sizeof name) : "", at ? "'" : "");
  const double all = w->end - w->start, part = all > 0 ? (w->told - w->start) / all : 0;
  w->progress(w->user, text, part < 0.99 ? fmax(part, 0) : 0.99);
}
