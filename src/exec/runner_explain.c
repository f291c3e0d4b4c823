// How the tactic of a layer was chosen, for people.
#include <math.h>
#include <string.h>

#include "exec/runner.h"

static const char* layout_name(assay_layout_t layout) {
  return layout == ASSAY_LAYOUT_CHANNELS_LAST ? " channels last" : "";
}

// The layouts that were assigned among, with what each costs here.
static void explain_layouts(const assay_step_t* s, assay_str_t* out) {
  for (int o = 0; o < s->n_layouts; o++) {
    const assay_layout_report_t* t = &s->layouts[o];
    const char* name = t->followed ? "as inputs lie" : assay_layout_name(t->layout);
    assay_str_printf(out, "%s layout %-16s %10.2f us, %10.2f us of reorders around it (%s)\n",
                     o == s->layout ? "*" : " ", name, t->microseconds, t->reorders,
                     t->measured ? "measured" : "by bytes");
  }
}

static void explain_forms(const assay_step_t* s, assay_str_t* out) {
  assay_str_append(out, "  reads");
  for (int k = 0; k < s->n_in; k++)
    if (s->kernel->in[k].type)
      assay_str_printf(out, " %s%s;", assay_type_name(s->kernel->in[k].type),
                       layout_name(s->kernel->in[k].layout));
  assay_str_append(out, " writes");
  for (int k = 0; k < s->n_out; k++)
    if (s->out[k] >= 0)
      assay_str_printf(out, " %s%s;", assay_type_name(s->kernel->out[k].type),
                       layout_name(s->kernel->out[k].layout));
  assay_str_printf(out, " values moved before it: %zu\n", s->outputs - s->moves);
}

void assay_runner_explain(void* state, size_t i, assay_str_t* out) {
  const assay_step_t* s = assay_runner_last_step(state, i);
  if (!s) {
    assay_str_append(out, "  it has not run\n");
  } else if (s->known) {
    assay_str_append(out, "  nothing runs: its contents follow from sizes\n");
  } else if (!s->kernel) {
    assay_str_append(out, "  no tactic takes it: the emulated engine runs it\n");
  } else {
    for (int t = 0; t < s->n_candidates; t++) {
      const assay_candidate_t* x = &s->candidates[t];
      assay_str_printf(out, "%s %-16s of %-8s ", strcmp(x->name, s->kernel->name) == 0 ? "*" : " ",
                       x->name, x->tactic->source);
      if (x->forced)
        assay_str_append(out, "as a tactic replay says");
      else if (x->differs)
        assay_str_append(out, "left out: its bits are not those of this layer's kernels");
      else if (isnan(x->microseconds))
        assay_str_append(out, "not timed: the first that takes it");
      else
        assay_str_printf(out, "%10.2f us", x->microseconds);
      if (!isnan(x->predicted))
        assay_str_printf(out, "; predicted %.2f us a sample on one thread", x->predicted);
      assay_str_append(out, "\n");
    }
    explain_layouts(s, out);
    explain_forms(s, out);
    if (s->pair)
      assay_str_printf(out, "  runs in one launch with the next layer (%s)\n", s->pair->name);
    if (s->joint)
      assay_str_printf(out, "  runs in one launch with %d layers before it (%s)\n", s->n_joins - 1,
                       s->joint->name);
    if (s->is_joined) assay_str_append(out, "  runs in the launch of a later layer\n");
    if (s->siblings)
      assay_str_printf(out, "  runs in one launch with %d layers that read the same (%s)\n",
                       s->n_with - 1, s->siblings->name);
    if (s->is_sibling) assay_str_append(out, "  runs in the launch of an earlier layer\n");
    if (s->pipeline) assay_str_append(out, "  runs with its neighbours, some rows at a time\n");
    for (int t = 0; t < s->gates.n; t++) {
      const assay_accuracy_gate_t* gate = &s->gates.at[t];
      const bool taken = gate == assay_step_accuracy_gate(s, s->kernel->tactic);
      assay_str_append(out, taken ? "  gated: " : "  not taken: ");
      assay_accuracy_gate_print(gate, out);
      assay_str_append(out, "\n");
    }
  }
}
