// SoftClip and WindowStats in another revision, whose functions fail in every way that there is.
#include <assay/ops.h>

static assay_status_t fails(assay_op_call_t* call, const assay_ops_api_t* api, void* user) {
  (void)user;
  return api->error(ASSAY_UNSUPPORTED, "limits of %g are for tomorrow",
                    api->attr_float(call, "limit", 1));
}

// Forgets its outputs.
static assay_status_t forgets(assay_op_call_t* call, const assay_ops_api_t* api, void* user) {
  (void)call, (void)api, (void)user;
  return NULL;
}

ASSAY_API assay_status_t assay_register_ops(const assay_ops_api_t* api, assay_ops_list_t* list) {
  assay_op_spec_t s = ASSAY_OP_SPEC_INIT;
  s.domain = "com.example";
  s.name = "SoftClip";
  s.revision = "0.9";
  s.schema = "X:T -> Y:T | limit:f=1 | T=FLOAT";
  s.evaluate = fails;
  assay_status_t st = api->add(list, &s);
  s.name = "WindowStats";
  s.schema = "X:T -> Mean:T, Peak?:int64 | size:i!, stride:i=1 | T=FLOAT";
  s.evaluate = forgets;
  return st ? st : api->add(list, &s);
}
