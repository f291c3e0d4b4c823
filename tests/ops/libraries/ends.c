// Ends: an operator that ends the process it runs in, as its attribute says, or does not end at
// all.
#include <assay/ops.h>
#include <stdlib.h>
#include <unistd.h>

enum { RETURN, ABORT, EXIT, HANG };

static assay_status_t ends(assay_op_call_t* call, const assay_ops_api_t* api, void* user) {
  (void)user;
  const int64_t how = api->attr_int(call, "how", RETURN);
  if (how == ABORT) abort();
  if (how == EXIT) _exit(7);
  while (how == HANG) pause();
  return api->error(ASSAY_UNSUPPORTED, "it returned");
}

ASSAY_API assay_status_t assay_register_ops(const assay_ops_api_t* api, assay_ops_list_t* list) {
  assay_op_spec_t s = ASSAY_OP_SPEC_INIT;
  s.domain = "com.example";
  s.name = "Ends";
  s.revision = "1.0";
  s.schema = "X:T -> Y:T | how:i=0 | T=FLOAT";
  s.evaluate = ends;
  return api->add(list, &s);
}
