// assay inspect --report, --serve: the page of a model or a plan file.
#ifndef ASSAY_CLI_VERBS_INSPECT_INSPECT_PAGE_H_
#define ASSAY_CLI_VERBS_INSPECT_INSPECT_PAGE_H_

#include "ir/ir.h"

typedef struct cli_page_args {
  const char* file;    // the model or the plan
  const char* report;  // where the page is written; NULL: nowhere
  const char* serve;  // the port that it is served at, until the program is interrupted; NULL: none
} cli_page_args_t;

static inline bool cli_page_asked(const cli_page_args_t* a) { return a->report || a->serve; }
// Whether the port is one; otherwise that is told.
bool cli_page_check(const cli_page_args_t* a);
// Both return the exit code.
int cli_page_of_model(const cli_page_args_t* a, const assay_model_t* m);
int cli_page_of_plan(const cli_page_args_t* a);

#endif  // ASSAY_CLI_VERBS_INSPECT_INSPECT_PAGE_H_
