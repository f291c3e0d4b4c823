// assay inspect --report, --serve: the page of a model or a plan file.
#include "cli/verbs/inspect/inspect_page.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "cli/cli.h"
#include "cli/page_server.h"
#include "cli/verbs/engine_source.h"
#include "report/model_page.h"

bool cli_page_check(const cli_page_args_t* a) {
  const char* port = a->serve;
  if (!port || (*port && strlen(port) <= 5 && strspn(port, "0123456789") == strlen(port) &&
                atoi(port) <= UINT16_MAX))
    return true;
  assay_cli_usage("inspect",
                  "--serve: '%s' is not a port: they go from 0 (any that is free) to 65535", port);
  return false;
}

static int serve(const cli_page_args_t* a, const assay_str_t* page) {
  page_server_t* server = NULL;
  assay_status_t st = page_server_start(page->text, page->len, atoi(a->serve), &server);
  if (st) return assay_cli_fail(assay_status_note(st, "--serve"), ASSAY_EXIT_USAGE);
  fflush(stdout);
  fprintf(stderr, "page       http://127.0.0.1:%d/ until Ctrl-C\n", page_server_port(server));
  page_server_wait(server);
  page_server_stop(server);
  return ASSAY_EXIT_OK;
}

static int show(const cli_page_args_t* a, assay_status_t take_status, const assay_str_t* page) {
  if (!take_status && a->report) take_status = assay_file_write(a->report, page->text, page->len);
  if (take_status) return assay_cli_fail(take_status, ASSAY_EXIT_FAILED);
  return a->serve ? serve(a, page) : ASSAY_EXIT_OK;
}

int cli_page_of_model(const cli_page_args_t* a, const assay_model_t* m) {
  const assay_model_page_t options = {.path = a->file, .attrs = true, .weights = true};
  assay_str_t page = {0};
  const int code = show(a, assay_model_page(m, &options, &page), &page);
  assay_str_deinit(&page);
  return code;
}

int cli_page_of_plan(const cli_page_args_t* a) {
  const assay_model_page_t options = {.path = a->file, .attrs = true, .weights = true};
  assay_str_t page = {0};
  assay_engine_t* engine = NULL;
  assay_executor_t* ran = NULL;
  assay_status_t st = assay_engine_load(a->file, &engine);
  if (st) return assay_cli_fail(st, ASSAY_EXIT_INPUT);
  // Which kernels run is known once they have.
  st = cli_engine_try(engine, 0, &ran);
  if (!st) st = assay_plan_page(engine, ran, &options, &page);
  assay_executor_destroy(ran);
  const int code = show(a, st, &page);
  assay_engine_release(engine);
  assay_str_deinit(&page);
  return code;
}
