// Captures of kernel spans.
#include "exec/device/captures.h"

#include <string.h>

#include "base/alloc.h"

typedef struct span {
  assay_captured_t of[ASSAY_CAPTURES_OF_SPAN];
  bool refused;
} span_t;

struct assay_captures {
  const assay_device_driver_t* driver;
  uint64_t clock;
  size_t n;
  span_t spans[];  // by first layer
};

assay_status_t assay_captures_create(const assay_device_driver_t* driver, size_t n_layers,
                                     assay_captures_t** out) {
  assay_captures_t* c = assay_calloc(1, sizeof *c + n_layers * sizeof *c->spans);
  if (!c) return assay_status_no_memory();
  c->driver = driver;
  c->n = n_layers;
  *out = c;
  return NULL;
}

static void clear(const assay_captures_t* c, assay_captured_t* g) {
  if (g->capture) c->driver->capture_destroy(g->capture);
  assay_free(g->at);
  *g = (assay_captured_t){0};
}

void assay_captures_destroy(void* captures) {
  assay_captures_t* c = captures;
  if (!c) return;
  for (size_t i = 0; i < c->n; i++)
    for (int k = 0; k < ASSAY_CAPTURES_OF_SPAN; k++) clear(c, &c->spans[i].of[k]);
  assay_free(c);
}

assay_status_t assay_captures_find(assay_captures_t* c, size_t layer, const assay_device_ptr_t* at,
                                   size_t n, assay_captured_t** out, bool* out_again) {
  span_t* s = &c->spans[layer];
  assay_captured_t* oldest = s->of;
  *out_again = false;
  for (int k = 0; k < ASSAY_CAPTURES_OF_SPAN; k++) {
    assay_captured_t* g = &s->of[k];
    *out_again = g->at && memcmp(g->at, at, n * sizeof *at) == 0;
    if (*out_again || g->used < oldest->used) oldest = g;
    if (*out_again) break;
  }
  if (!*out_again) {
    clear(c, oldest);
    ASSAY_TRY(assay_new_array(n, sizeof *at, &oldest->at));
    memcpy(oldest->at, at, n * sizeof *at);
  }
  oldest->used = ++c->clock;
  *out = oldest;
  return NULL;
}

bool assay_captures_refused(const assay_captures_t* c, size_t layer) {
  return c->spans[layer].refused;
}

void assay_captures_refuse(assay_captures_t* c, size_t layer) { c->spans[layer].refused = true; }
