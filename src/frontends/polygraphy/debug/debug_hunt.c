// The order in which debug precision and debug reduce try things: numbers from 0 to `top`, of which
// the smallest hit is wanted.
#include "frontends/polygraphy/debug/debug_hunt.h"

static void halve(pg_hunt_t* h) {
  h->done = h->below >= h->best;
  // Between the last miss and the best hit.
  if (!h->done) h->at = h->below + (h->best - h->below) / 2;
}

pg_hunt_t pg_hunt_begin(pg_hunt_mode_t mode, size_t top, bool known) {
  pg_hunt_t h = {.mode = mode, .top = top, .at = mode == PG_HUNT_UP ? 0 : top};
  if (!known || mode == PG_HUNT_UP) return h;
  h.found = true;
  h.best = top;
  h.done = !top;
  if (mode == PG_HUNT_BISECT)
    halve(&h);
  else if (top)
    h.at = top - 1;
  return h;
}

void pg_hunt_tell(pg_hunt_t* h, bool hit) {
  if (hit) {
    h->found = true;
    h->best = h->at;
  }
  switch (h->mode) {
    case PG_HUNT_BISECT:
      if (!hit) h->below = h->at + 1;
      if (h->found)
        halve(h);
      else
        h->done = true;
      return;
    case PG_HUNT_UP:
      h->done = hit || h->at == h->top;
      h->at++;
      return;
    case PG_HUNT_DOWN:
      h->done = !h->at;
      if (!h->done) h->at--;
      return;
  }
}

size_t pg_hunt_about(const pg_hunt_t* h) {
  size_t n = 0;
  if (h->mode != PG_HUNT_BISECT) return h->top + !h->found;
  for (size_t left = h->top; left; left /= 2) n++;
  return n + !h->found;
}
