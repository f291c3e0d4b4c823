// The page of inspect model: --save-visual, --visual.
#include "frontends/polygraphy/inspect/visual.h"

#include <stdio.h>

#include "base/file.h"
#include "cli/page_server.h"
#include "onnx/load.h"
#include "report/model_page.h"

bool pg_wants_page(const pg_job_t* j) {
  return pg_given(j->args, PG_FLAG_visual) || pg_given(j->args, PG_FLAG_save_visual);
}

bool pg_wants_text(const pg_job_t* j) { return !pg_given(j->args, PG_FLAG_visual); }

static assay_model_page_t options_of(const pg_job_t* j, pg_show_t show) {
  const bool all = !pg_given(j->args, PG_FLAG_show);
  return (assay_model_page_t){.path = j->args->positional.items[0],
                              .attrs = all || show.attrs,
                              .weights = all || show.weights,
                              .info = show.info};
}

static assay_status_t serve(const pg_job_t* j, const assay_str_t* page) {
  page_server_t* server = NULL;
  ASSAY_TRY(assay_status_note(
      page_server_start(page->text, page->len, pg_int(j->args, PG_FLAG_visual_port), &server),
      "--visual-port"));
  pg_log(PG_INFO, "Viewer available at http://127.0.0.1:%d/  (press Ctrl+C to exit)",
         page_server_port(server));
  fflush(stdout);
  page_server_wait(server);
  page_server_stop(server);
  return NULL;
}

static assay_status_t show_page(const pg_job_t* j, const assay_str_t* page) {
  if (!pg_given(j->args, PG_FLAG_save_visual)) return serve(j, page);
  const char* path = pg_text(j->args, PG_FLAG_save_visual);
  ASSAY_TRY(assay_file_write(path, page->text, page->len));
  pg_log(PG_INFO, "Viewer HTML saved to %s", path);
  return NULL;
}

// ---- models -------------------------------------------------------------------------------------

// Names that nothing defines are shown, too (assay_onnx_read_options_t.undefined).
static bool is_whole(const assay_model_t* m) {
  for (size_t g = 0; g < m->n_graphs; g++)
    for (size_t i = 0; i < m->graphs[g]->n_nodes; i++) {
      const assay_node_t* n = m->graphs[g]->nodes[i];
      for (size_t k = 0; k < n->n_inputs; k++) {
        const assay_value_t* v = n->inputs[k];
        if (v && !v->producer && !v->constant && !v->is_input) return false;
      }
    }
  return true;
}

// The same model with types of all values, where they can be inferred. Functions stay calls.
static assay_model_t* with_types(assay_model_t* m) {
  assay_model_t* ready = NULL;
  if (m->n_functions || !is_whole(m)) return NULL;
  assay_status_t st = assay_onnx_prepare_known(m, 0, NULL, &ready);
  if (st) pg_log(PG_VERBOSE, "Types are those of the file: %s", assay_status_message(st));
  assay_status_free(st);
  return ready;
}

assay_status_t pg_show_model_page(pg_job_t* j, assay_model_t* m, pg_show_t show) {
  const assay_model_page_t options = options_of(j, show);
  assay_str_t page = {0};
  assay_model_t* typed = with_types(m);
  assay_status_t st = assay_model_page(typed ? typed : m, &options, &page);
  if (!st) st = show_page(j, &page);
  assay_str_deinit(&page);
  assay_model_release(typed);
  return st;
}

assay_status_t pg_show_plan_page(pg_job_t* j, assay_engine_t* engine, pg_show_t show) {
  const assay_model_page_t options = options_of(j, show);
  assay_str_t page = {0};
  assay_executor_t* ran = NULL;
  // Which kernels run is known once they have.
  ASSAY_TRY(cli_engine_try(engine, 0, &ran));
  assay_status_t st = assay_plan_page(engine, ran, &options, &page);
  assay_executor_destroy(ran);
  if (!st) st = show_page(j, &page);
  assay_str_deinit(&page);
  return st;
}
