// Debug replays: what came of each iteration, as a JSON file that a later call starts from.
#ifndef ASSAY_FRONTENDS_POLYGRAPHY_DEBUG_DEBUG_REPLAY_H_
#define ASSAY_FRONTENDS_POLYGRAPHY_DEBUG_DEBUG_REPLAY_H_

#include "base/alloc.h"
#include "io/json.h"

typedef struct pg_replay {
  json_t* loaded;      // of --load-debug-replay; NULL: none
  json_t* saved;       // what there is so far
  const char* path;    // of --save-debug-replay
  const char* beside;  // where a copy goes in which the running iteration failed
} pg_replay_t;

// load may be NULL. Errors: NOT_FOUND, CORRUPT the file.
assay_status_t pg_replay_open(assay_arena_t* arena, const char* load, const char* save,
                              pg_replay_t* out) ASSAY_MUST_USE;
void pg_replay_close(pg_replay_t* r);

// Whether the loaded replay has a result for an iteration of this name; suffix may be NULL.
// n_nodes, of the model that was made, is -1 where there is nothing to say.
bool pg_replay_find(const pg_replay_t* r, size_t index, const char* suffix, bool* out_success,
                    int64_t* out_n_nodes);
assay_status_t pg_replay_put(pg_replay_t* r, size_t index, const char* suffix, int64_t n_nodes,
                             bool success) ASSAY_MUST_USE;
assay_status_t pg_replay_save(const pg_replay_t* r) ASSAY_MUST_USE;
// Before a check: the file that passes it over, for a call after a crash.
assay_status_t pg_replay_save_skipping(const pg_replay_t* r, size_t index, const char* suffix,
                                       int64_t n_nodes) ASSAY_MUST_USE;

#endif  // ASSAY_FRONTENDS_POLYGRAPHY_DEBUG_DEBUG_REPLAY_H_
