// An operator that there is already, beside one that would be new.
#include <assay/ops.h>

static assay_status_t evaluate(assay_op_call_t* call, const assay_ops_api_t* api, void* user) {
  (void)call, (void)user;
  return api->error(ASSAY_INTERNAL, "never called");
}

ASSAY_API assay_status_t assay_register_ops(const assay_ops_api_t* api, assay_ops_list_t* list) {
  assay_op_spec_t s = ASSAY_OP_SPEC_INIT;
  s.domain = "com.example";
  s.name = "SoftClip";
  s.schema = "X:T -> Y:T | | T=FLOAT";
  s.evaluate = evaluate;
  assay_status_t st = api->add(list, &s);
  s.domain = "";
  s.name = "Relu";
  return st ? st : api->add(list, &s);
}
