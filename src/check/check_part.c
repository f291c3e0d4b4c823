// Checks of parts of the samples: accounts that are saved, and added to a check elsewhere
// (docs/adr/0027-parts-of-accounts.md).
#include <string.h>

#include "account/golden/golden.h"
#include "account/samples_run.h"
#include "base/alloc.h"
#include "base/hash.h"
#include "base/packing.h"
#include "check/against_golden.h"
#include "check/check_public.h"
#include "exec/targets.h"

static const char MAGIC[8] = "assayac1";  // without its NUL

// ---- what a part is of --------------------------------------------------------------------------

static uint64_t add_text(const char* text, uint64_t h) {
  return assay_hash(text ? text : "", text ? strlen(text) + 1 : 1, h);
}

static uint64_t add_number(uint64_t x, uint64_t h) { return assay_hash(&x, sizeof x, h); }

// The instruction sets: of the target, and of the CPU that truth runs on.
static assay_status_t add_machine(const assay_check_t* c, uint64_t* h) {
  assay_str_t machine = {0};
  assay_backend_describe(c->options.backend, &machine);
  assay_backend_describe(assay_target_default(ASSAY_TARGET_BUILD), &machine);
  assay_status_t st = assay_str_status(&machine);
  *h = add_text(assay_str_get(&machine), *h);
  assay_str_deinit(&machine);
  return st;
}

// The layers as they are run, on which target and on which machine, and what is judged. Weights are
// not read: parts are of one model file, which the caller knows.
assay_status_t assay_check_identify(const assay_check_t* c, uint64_t* out) {
  const assay_layers_t* l = assay_plan_layers(c->plan);
  const assay_graph_t* g = l->model->graph;
  uint64_t h = add_text(ASSAY_VERSION, 0);
  ASSAY_TRY(add_machine(c, &h));
  h = add_text(c->options.backend->name, h);
  h = add_number((uint64_t)l->model->n_node_ids, h);
  h = add_number(c->options.unquantized, h);
  h = add_number(c->options.seed, h);
  h = add_number(l->fp32, h);
  h = add_text(l->inject, h);
  for (size_t i = 0; i < l->n_all_layers; i++) {
    h = add_text(l->layers[i].name, h);
    h = add_number(l->layers[i].format, h);
    h = add_number(l->layers[i].accumulator, h);
    h = add_number(l->layers[i].n_nodes, h);
  }
  for (size_t i = 0; i < g->n_outputs; i++) h = add_text(g->outputs[i]->name, h);
  for (size_t i = 0; c->options.require && i < c->options.require->n; i++)
    h = add_text(c->options.require->at[i].text, h);
  *out = h;
  return NULL;
}

static assay_status_t want_parts(const assay_check_t* c) {
  if (c->job->ran || (c->account && !c->n_added))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "the check has run; make another one");
  if (c->job->engine)
    return ASSAY_ERROR(ASSAY_UNSUPPORTED,
                       "the outputs of another engine are not checked in parts; run the check");
  if (c->options.pictures)
    return ASSAY_ERROR(ASSAY_UNSUPPORTED,
                       "pictures of values are of a run of all samples; leave out "
                       "options.pictures, or run the check on one machine");
  if (c->options.require && assay_require_has_commands(c->options.require))
    return ASSAY_ERROR(ASSAY_UNSUPPORTED,
                       "a requirement that is a command reads all outputs at once; run the check "
                       "on one machine");
  return NULL;
}

// ---- adding samples -----------------------------------------------------------------------------

// The first samples begin the account; those after them have to be judged alike.
static assay_status_t begin(assay_check_t* c, const assay_samples_t* inputs,
                            const assay_samples_t* outputs) {
  if (!c->account) {
    ASSAY_TRY(assay_check_begin(c, inputs, outputs));
    assay_outputs_keep_slices(c->outputs, c->n_outputs);
    c->parts_have_golden = outputs != NULL;
    return NULL;
  }
  return c->parts_have_golden == (outputs != NULL)
             ? NULL
             : ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                           "samples with golden are added to samples without; give golden for all "
                           "or for none");
}

static assay_status_t add_samples(assay_check_t* c, const assay_samples_t* inputs,
                                  const assay_samples_t* golden) {
  if (golden && golden->n != inputs->n)
    return ASSAY_ERROR(ASSAY_UNSUPPORTED,
                       "golden has %zu samples and the inputs %zu: in parts each sample needs "
                       "golden of its own",
                       golden->n, inputs->n);
  ASSAY_TRY(begin(c, inputs, golden));
  ASSAY_TRY(
      assay_samples_add(c->account, c->model, inputs, golden, c->golden_quantized, c->outputs));
  c->n_added += inputs->n;
  return NULL;
}

assay_status_t assay_check_add_samples(assay_check_t* c, const assay_samples_t* inputs,
                                       assay_golden_t* golden) {
  ASSAY_TRY(want_parts(c));
  ASSAY_TRY(assay_check_set_golden(c, inputs, golden));
  const assay_samples_t* outputs = golden ? assay_golden_samples(golden) : NULL;
  assay_status_t st = add_samples(c, inputs, outputs && outputs->n ? outputs : NULL);
  c->options.golden = NULL;  // borrowed for the call
  if (st) assay_check_clear(c);
  return st;
}

size_t assay_check_added(const assay_check_t* c) { return c->n_added; }

// ---- saving -------------------------------------------------------------------------------------

static void pack_head(assay_packing_t* p, uint64_t* identity, uint64_t* n, bool* golden,
                      bool* quantized) {
  assay_pack_u64(p, identity);
  assay_pack_u64(p, n);
  assay_pack_bool(p, golden);
  assay_pack_bool(p, quantized);
}

static assay_status_t save(const assay_check_t* c, assay_packing_t* p) {
  uint64_t identity, n = c->n_added;
  bool golden = c->parts_have_golden, quantized = c->golden_quantized;
  ASSAY_TRY(assay_check_identify(c, &identity));
  pack_head(p, &identity, &n, &golden, &quantized);
  ASSAY_TRY(assay_account_save_part(c->account, p));
  return assay_outputs_save_part(c->outputs, c->n_outputs, p);
}

assay_status_t assay_check_save_part(const assay_check_t* c, assay_report_fn_t* write, void* user) {
  assay_str_t bytes = {0};
  assay_packing_t p;
  if (!c->n_added || c->job->ran)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "no samples have been added to the check, or it has run");
  assay_packing_begin(&p, &bytes);
  assay_status_t st = save(c, &p);
  if (!st) st = assay_packing_end(&p, MAGIC);
  if (!st) st = write(user, bytes.text, bytes.len);
  assay_str_deinit(&bytes);
  return st;
}

// ---- adding what was saved ----------------------------------------------------------------------

// Empty statistics that judge as the part did.
static assay_status_t begin_from(assay_check_t* c, bool golden, bool quantized) {
  if (c->account && (c->parts_have_golden != golden || c->golden_quantized != quantized))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "parts were held against golden of different kinds (none, of the network "
                       "before quantization, of the quantized one)");
  if (c->account) return NULL;
  const assay_samples_t none = {0}, some = {.n = 1};
  ASSAY_TRY(assay_check_begin(c, &none, NULL));
  c->parts_have_golden = golden;
  c->golden_quantized = quantized;
  const bool of_truth = !assay_check_compares_quantizers(c, golden ? &some : NULL) || quantized;
  for (size_t i = 0; i < c->n_outputs; i++) c->outputs[i].slices_of_truth = of_truth;
  assay_outputs_keep_slices(c->outputs, c->n_outputs);
  return NULL;
}

static assay_status_t add_part(assay_check_t* c, assay_packing_t* p) {
  uint64_t identity = 0, own, n = 0;
  bool golden = false, quantized = false;
  pack_head(p, &identity, &n, &golden, &quantized);
  if (p->failed || !n || n > SIZE_MAX / 2) return assay_packing_status(p);
  ASSAY_TRY(assay_check_identify(c, &own));
  if (identity != own)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "the part is of another model, of other options, or was made by another "
                       "version or on another kind of machine than this check's");
  ASSAY_TRY(begin_from(c, golden, quantized));
  ASSAY_TRY(assay_account_add_part(c->account, p));
  if (!p->failed) ASSAY_TRY(assay_outputs_add_part(c->outputs, c->n_outputs, p));
  ASSAY_TRY(assay_packing_status(p));
  c->n_added += (size_t)n;
  return NULL;
}

assay_status_t assay_check_add_part(assay_check_t* c, const void* data, size_t size) {
  assay_packing_t p;
  ASSAY_TRY(want_parts(c));
  ASSAY_TRY(assay_packing_open(data, size, MAGIC, "a check", &p));
  assay_status_t st = add_part(c, &p);
  if (st) assay_check_clear(c);
  return st;
}
