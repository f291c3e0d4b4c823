// The order in which debug precision and debug reduce try things: numbers from 0 to `top`, of which
// the smallest hit is wanted.
#ifndef ASSAY_FRONTENDS_POLYGRAPHY_DEBUG_DEBUG_HUNT_H_
#define ASSAY_FRONTENDS_POLYGRAPHY_DEBUG_DEBUG_HUNT_H_

#include <stdbool.h>
#include <stddef.h>

typedef enum pg_hunt_mode {
  PG_HUNT_BISECT,  // `top` first, then halves: right where all numbers behind a hit are hits, too
  PG_HUNT_UP,      // 0, 1, 2, ... until the first hit
  PG_HUNT_DOWN,    // top, ..., 1, 0: all of them
} pg_hunt_mode_t;

typedef struct pg_hunt {
  pg_hunt_mode_t mode;
  size_t at;  // what is tried next
  size_t top;
  size_t below;  // bisect: numbers under it are none
  size_t best;   // the smallest hit so far
  bool found;    // there is one
  bool done;
} pg_hunt_t;

// known: `top` is a hit, and is not tried (bisect and down).
pg_hunt_t pg_hunt_begin(pg_hunt_mode_t mode, size_t top, bool known);
void pg_hunt_tell(pg_hunt_t* h, bool hit);
// How many tries it may take from the beginning.
size_t pg_hunt_about(const pg_hunt_t* begun);

#endif  // ASSAY_FRONTENDS_POLYGRAPHY_DEBUG_DEBUG_HUNT_H_
