// The order in which debug precision and debug reduce try things: numbers from 0 to `top`, of which
// the smallest hit is wanted.
#ifndef ASSAY_FRONTENDS_POLYGRAPHY_DEBUG_DEBUG_SEARCH_H_
#define ASSAY_FRONTENDS_POLYGRAPHY_DEBUG_DEBUG_SEARCH_H_

#include <stdbool.h>
#include <stddef.h>

typedef enum pg_search_mode {
  PG_SEARCH_BISECT,  // `top` first, then halves: right where all numbers after a hit are hits, too
  PG_SEARCH_UP,      // 0, 1, 2, ... until the first hit
  PG_SEARCH_DOWN,    // top, ..., 1, 0: all of them
} pg_search_mode_t;

typedef struct pg_search {
  pg_search_mode_t mode;
  size_t at;  // what is tried next
  size_t top;
  size_t below;  // bisect: numbers under it are none
  size_t best;   // the smallest hit so far
  bool found;    // there is one
  bool done;
} pg_search_t;

// known: `top` is a hit, and is not tried (bisect and down).
pg_search_t pg_search_begin(pg_search_mode_t mode, size_t top, bool known);
void pg_search_record(pg_search_t* h, bool hit);
// How many tries it may take from the beginning.
size_t pg_search_max_tries(const pg_search_t* begun);

#endif  // ASSAY_FRONTENDS_POLYGRAPHY_DEBUG_DEBUG_SEARCH_H_
