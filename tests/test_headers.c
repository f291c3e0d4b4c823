// The public headers compile alone, strictly, as C and (test_headers_cxx.cc) as C++; every function
// that they declare can be linked.
#include <assay/assay.h>
#include <stdio.h>
#include <string.h>

int main(void) {
  int wrong = 0;
  assay_status_t ok = NULL;
  if (assay_status_code(ok) != ASSAY_OK || strcmp(assay_status_message(ok), "") != 0) wrong++;
  assay_status_free(ok);
  if (strcmp(assay_type_name(ASSAY_TYPE_BFLOAT16), "bfloat16") != 0) wrong++;
  if (strcmp(assay_format_name(ASSAY_FORMAT_FP16), "fp16") != 0) wrong++;
  const assay_engine_options_t engine = ASSAY_ENGINE_OPTIONS_INIT;
  const assay_context_options_t context = ASSAY_CONTEXT_OPTIONS_INIT;
  const assay_layer_run_t layer = ASSAY_LAYER_RUN_INIT;
  const assay_op_spec_t op = ASSAY_OP_SPEC_INIT;
  const assay_samples_options_t samples = ASSAY_SAMPLES_OPTIONS_INIT;
  if (samples.outputs || samples.dtypes || samples.image_scale != 0 || samples.image_layout)
    wrong++;
  const assay_check_options_t check = ASSAY_CHECK_OPTIONS_INIT;
  const assay_check_output_t output = ASSAY_CHECK_OUTPUT_INIT;
  const assay_check_layer_t account = ASSAY_CHECK_LAYER_INIT;
  const assay_check_culprit_t culprit = ASSAY_CHECK_CULPRIT_INIT;
  const assay_check_fault_t fault = ASSAY_CHECK_FAULT_INIT;
  const assay_check_report_options_t names = ASSAY_CHECK_REPORT_OPTIONS_INIT;
  const assay_golden_options_t golden = ASSAY_GOLDEN_OPTIONS_INIT;
  const assay_tune_options_t tune = ASSAY_TUNE_OPTIONS_INIT;
  const assay_tune_assignment_t assignment = ASSAY_TUNE_ASSIGNMENT_INIT;
  const assay_tune_report_options_t saved = ASSAY_TUNE_REPORT_OPTIONS_INIT;
  if (tune.formats || tune.fewest_layers || tune.user || assignment.chosen || saved.saved_plan)
    wrong++;
  if (check.precision || check.user || check.shares || check.judged || names.to_write) wrong++;
  if (output.name || output.has_golden || account.name || account.flipped || culprit.why) wrong++;
  if (fault.restored || golden.name_map) wrong++;
  const assay_model_options_t model = ASSAY_MODEL_OPTIONS_INIT;
  const assay_compare_options_t compare = ASSAY_COMPARE_OPTIONS_INIT;
  const assay_audit_options_t audit = ASSAY_AUDIT_OPTIONS_INIT;
  const assay_edit_options_t edit = ASSAY_EDIT_OPTIONS_INIT;
  const assay_certify_options_t certify = ASSAY_CERTIFY_OPTIONS_INIT;
  const assay_verify_options_t verify = ASSAY_VERIFY_OPTIONS_INIT;
  if (model.shapes || model.batch || model.allow_unknown) wrong++;
  const assay_debug_options_t debug = ASSAY_DEBUG_OPTIONS_INIT;
  const assay_debug_report_options_t debugged = ASSAY_DEBUG_REPORT_OPTIONS_INIT;
  const assay_precision_search_options_t search = ASSAY_PRECISION_SEARCH_OPTIONS_INIT;
  const assay_batch_search_options_t batch = ASSAY_BATCH_SEARCH_OPTIONS_INIT;
  const assay_batch_node_t node = ASSAY_BATCH_NODE_INIT;
  const assay_reduction_options_t reduction = ASSAY_REDUCTION_OPTIONS_INIT;
  const assay_reduction_report_options_t reduced = ASSAY_REDUCTION_REPORT_OPTIONS_INIT;
  const assay_pass_step_t step = ASSAY_PASS_STEP_INIT;
  const assay_tactic_search_options_t tactics = ASSAY_TACTIC_SEARCH_OPTIONS_INIT;
  const assay_tactic_trial_t tactic = ASSAY_TACTIC_TRIAL_INIT;
  if (debug.precision || debug.unquantized || debug.inject || debug.user || debugged.model ||
      search.mode || search.rebuild || debugged.all || batch.axis || batch.seconds != 0 ||
      reduction.judge || reduced.samples || node.guilty || step.pass || tactics.untimed ||
      tactic.chosen)
    wrong++;
  if (!(compare.atol > 0) || compare.no_tolerance || compare.limits || compare.top_k != 5) wrong++;
  if (audit.precision || audit.no_witness || !(audit.seconds > 0) || audit.user) wrong++;
  if (edit.requests || edit.n_samples != 1 || edit.force || edit.user) wrong++;
  if (certify.target || certify.unquantized || certify.max_bytes || certify.user) wrong++;
  if (verify.target || verify.engine || verify.bits || verify.user) wrong++;
  const assay_audit_report_options_t audited = ASSAY_AUDIT_REPORT_OPTIONS_INIT;
  const assay_edit_report_options_t edited = ASSAY_EDIT_REPORT_OPTIONS_INIT;
  const assay_compare_report_options_t compared = ASSAY_COMPARE_REPORT_OPTIONS_INIT;
  if (audited.topics || edited.path || edited.all || compared.all) wrong++;
  const assay_outputs_options_t saved_outputs = ASSAY_OUTPUTS_OPTIONS_INIT;
  if (saved_outputs.raw_bits || saved_outputs.compress) wrong++;
  if (op.version != ASSAY_OPS_VERSION || op.since_version != 1 || op.takes) wrong++;
  if (engine.precision || engine.fusion || context.threads || context.tap || layer.tactic) wrong++;
  if (wrong) fprintf(stderr, "headers: %d wrong answers\n", wrong);
  return wrong != 0;
}
