// What a model is given in other units: bytes, samples of 16 bits, per cent, milliseconds.
#include <math.h>
#include <stdio.h>

#include "diagnose/causes/chains.h"
#include "diagnose/causes/surroundings.h"
#include "diagnose/proposals.h"

static const struct {
  double number;
  const char* text;
} units[] = {
    {255, "255"},     {127.5, "127.5"}, {128, "128"},   {256, "256"}, {32768, "32768"},
    {32767, "32767"}, {65535, "65535"}, {1000, "1000"}, {100, "100"}, {60, "60"},
};

static assay_status_t offer(const assay_suspect_t* s, const char* cause, size_t input, size_t unit,
                            bool divides, const assay_trial_t* t, bool* stop) {
  const double number = divides ? 1 / units[unit].number : units[unit].number;
  const assay_chain_step_t steps[ASSAY_CHAIN_STEPS] = {
      {.op_type = "Mul", .of = {ASSAY_START, ASSAY_NUMBER((double)(float)number)}}};
  assay_repair_t r = assay_repair_of(s, cause, ASSAY_EDIT_CHAIN);
  r.edits[0].at_input = true;
  r.edits[0].input = input;
  assay_chain_edit(&r.edits[0], steps, s->in[input]);
  snprintf(r.text, sizeof r.text, "'%.120s' %s %s", s->node->inputs[input]->name,
           divides ? "divided by" : "times", units[unit].text);
  return assay_offer(t, &r, stop);
}

// An input of the model, times or divided by what units are. Sources: images of bytes, samples of
// WAV files, thewh1teagle/pyannote-rs issue 28.
assay_status_t assay_propose_units(const assay_suspect_t* s, const char* cause,
                                   const assay_trial_t* t, bool* stop) {
  for (size_t i = 0; i < s->n_in && s->around; i++) {
    const assay_value_t* v = s->node->inputs[i];
    const assay_tensor_t* x = s->in[i];
    if (!v || v->producer || v->constant || !x || x->kind != ASSAY_KIND_TENSOR ||
        x->store != ASSAY_STORE_F64)
      continue;
    for (size_t k = 0; k < 2 * sizeof units / sizeof *units && !*stop; k++)
      ASSAY_TRY(offer(s, cause, i, k / 2, k % 2, t, stop));
  }
  return NULL;
}
