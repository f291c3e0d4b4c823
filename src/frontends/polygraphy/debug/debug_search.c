// The order in which debug precision and debug reduce try things: numbers from 0 to `top`, of which
// the smallest hit is wanted.
#include "frontends/polygraphy/debug/debug_search.h"

static void halve(pg_search_t* h) {
  h->done = h->below >= h->best;
  // Between the last miss and the best hit.
  if (!h->done) h->at = h->below + (h->best - h->below) / 2;
}

pg_search_t pg_search_begin(pg_search_mode_t mode, size_t top, bool known) {
  pg_search_t h = {.mode = mode, .top = top, .at = mode == PG_SEARCH_UP ? 0 : top};
  if (!known || mode == PG_SEARCH_UP) return h;
  h.found = true;
  h.best = top;
  h.done = !top;
  if (mode == PG_SEARCH_BISECT)
    halve(&h);
  else if (top)
    h.at = top - 1;
  return h;
}

void pg_search_record(pg_search_t* h, bool hit) {
  if (hit) {
    h->found = true;
    h->best = h->at;
  }
  switch (h->mode) {
    case PG_SEARCH_BISECT:
      if (!hit) h->below = h->at + 1;
      if (h->found)
        halve(h);
      else
        h->done = true;
      return;
    case PG_SEARCH_UP:
      h->done = hit || h->at == h->top;
      h->at++;
      return;
    case PG_SEARCH_DOWN:
      h->done = !h->at;
      if (!h->done) h->at--;
      return;
  }
}

size_t pg_search_max_tries(const pg_search_t* h) {
  size_t n = 0;
  if (h->mode != PG_SEARCH_BISECT) return h->top + !h->found;
  for (size_t left = h->top; left; left /= 2) n++;
  return n + !h->found;
}
