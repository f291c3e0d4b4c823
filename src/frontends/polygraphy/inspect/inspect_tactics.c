// polygraphy inspect tactics: what a tactic replay holds.
#include "base/shown.h"
#include "frontends/polygraphy/inspect/tactics.h"

assay_status_t pg_run_inspect_tactics(pg_job_t* j) {
  const char* path = j->args->positional.items[0];
  assay_tactics_t t;
  assay_str_t text = {0};
  pg_log(PG_INFO, "Loading tactic replay file from %s", path);
  ASSAY_TRY(assay_tactics_read(j->arena, path, &t));
  for (size_t i = 0; i < t.n; i++) {
    assay_str_printf(&text, ASSAY_LINES "Layer: %s\n    Algorithm: ", i ? "\n" : "",
                     t.entries[i].layer);
    pg_put_algorithm(&text, &t.entries[i]);
  }
  assay_status_t st = assay_str_status(&text);
  if (!st) pg_log(PG_INFO, ASSAY_LINES, t.n ? assay_str_get(&text) : "The replay has no layers");
  assay_str_deinit(&text);
  return st;
}
