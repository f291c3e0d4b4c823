// The problem of a model: its layers as units, with times, ranges and errors, after `assay tune`.
#include "tune/model.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/fp32_set.h"
#include "formats/format.h"
#include "tune/errors.h"

static void progress(const assay_tune_model_t* m, const char* what, double fraction) {
  const assay_check_setting_t* o = &m->setting;
  if (o->progress) o->progress(o->user, what, fraction);
}

// ---- plans --------------------------------------------------------------------------------------

static assay_status_t make_base(assay_tune_model_t* m, const assay_precision_t* given,
                                assay_format_t format, assay_tune_base_t* b) {
  assay_status_t st = assay_precision_copy(given, &b->precision);
  b->precision.format = format;
  // Which format a node has is what is asked here, whatever it declares.
  b->precision.undeclared = true;
  return st ? st
            : assay_plan_create(m->model, &b->precision, &m->setting.plan, m->setting.seed,
                                &b->plan);
}

static assay_status_t make_bases(assay_tune_model_t* m, const assay_precision_t* given) {
  const assay_tune_setting_t* o = m->options;
  for (size_t f = 0; f + 1 < o->n_formats; f++) {
    ASSAY_TRY(make_base(m, given, o->formats[f], &m->bases[f]));
    const assay_layers_t *a = assay_plan_layers(m->bases[0].plan),
                         *b = assay_plan_layers(m->bases[f].plan);
    if (a->n_layers != b->n_layers || a->model->n_values != b->model->n_values)
      return ASSAY_ERROR(ASSAY_UNSUPPORTED,
                         "plans in %s and %s have different layers: tune one of them, or unfused",
                         assay_format_name(o->formats[0]), assay_format_name(o->formats[f]));
  }
  return NULL;
}

// Truth of all samples, with what it says of ranges, for a low format.
static assay_status_t predict(assay_tune_model_t* m, size_t f, assay_runs_t* runs) {
  assay_tune_base_t* c = &m->bases[f];
  const assay_account_options_t options = {.unquantized = m->setting.unquantized, .predict = true};
  ASSAY_TRY(assay_account_create(c->plan, m->setting.backend, &options, &c->account));
  for (size_t k = 0; k < m->inputs->n; k++) {
    progress(m, "truth", (double)k / (double)m->inputs->n);
    ASSAY_TRY(assay_account_run(c->account, assay_samples_get(m->inputs, k)));
    // Truth of a rewritten model is not to the bit that of the model, which parts of samples have.
    if (!assay_plan_rewrite(c->plan)) ASSAY_TRY(assay_runs_know(runs, k, c->account));
    for (size_t o = 0; !f && o < m->model->graph->n_outputs; o++)
      ASSAY_TRY(assay_tune_gaps_add(&m->gaps[o], assay_account_truth_output(c->account, o)));
  }
  return NULL;
}

// ---- which formats a unit may have --------------------------------------------------------------

static void allow_only(assay_tune_model_t* m, size_t unit, size_t format) {
  const size_t n = m->options->n_formats;
  for (size_t f = 0; f < n; f++)
    if (f != format) m->layout.problem.time[unit * n + f] = (double)INFINITY;
}

// What the user gave a rule for, and what makes no floats, stays as it is.
static void pin(assay_tune_model_t* m) {
  const assay_layers_t* layers = assay_plan_layers(m->bases[0].plan);
  const assay_tune_setting_t* o = m->options;
  for (size_t u = 0; u < m->layout.n_units; u++) {
    size_t f = 0;
    while (f + 1 < o->n_formats && o->formats[f] != layers->layers[u].format) f++;
    m->pinned[u] = strcmp(layers->layers[u].reason, "--precision") != 0;
    if (m->pinned[u] || !m->layout.floats[u]) allow_only(m, u, m->layout.floats[u] ? f : 0);
  }
}

assay_status_t assay_tune_model_leave_range(assay_tune_model_t* m, size_t format, bool all) {
  const assay_tune_base_t* c = &m->bases[format];
  const assay_layers_t* layers = assay_plan_layers(c->plan);
  const size_t n = m->options->n_formats;
  const assay_fp32_subject_t subject = {.model = m->model,
                                        .plan = c->plan,
                                        .account = c->account,
                                        .precision = &c->precision,
                                        .require = m->setting.require};
  assay_fp32_set_t set = {0};
  ASSAY_TRY(assay_fp32_set_create(&subject, &set));
  assay_fp32_set_add_by_range(&set, all);
  for (size_t u = 0; u < m->layout.n_units; u++) {
    bool out = false;
    for (size_t k = 0; k < layers->layers[u].n_nodes; k++) {
      assay_origins_t o = assay_plan_origins(c->plan, &layers->layers[u].nodes[k]);
      for (size_t i = 0; i < o.n; i++) out |= set.chosen[o.nodes[i]->id];
    }
    if (!out || m->pinned[u] || !m->layout.floats[u]) continue;
    m->out_of_range[u] = true;
    m->layout.problem.time[u * n + format] = (double)INFINITY;
  }
  assay_fp32_set_deinit(&set);
  return NULL;
}

// ---- times --------------------------------------------------------------------------------------

static assay_status_t measure_times(assay_tune_model_t* m) {
  const assay_tune_setting_t* o = m->options;
  const assay_tune_base_t* c = &m->bases[0];
  const assay_tune_timing_t timing = {.backend = m->setting.backend,
                                      .inputs = assay_samples_get(m->inputs, 0),
                                      .cache = o->timing_cache,
                                      .seconds = o->seconds > 0 ? o->seconds : 0.5};
  for (size_t f = 0; f < o->n_formats; f++) {
    assay_plan_t* plan = NULL;
    assay_precision_t p = c->precision;
    p.format = o->formats[f];
    progress(m, "timing layers", (double)f / (double)o->n_formats);
    ASSAY_TRY(assay_plan_create(m->model, &p, &m->setting.plan, m->setting.seed, &plan));
    ASSAY_TRY(assay_tune_times_measure(&timing, c->plan, plan, f, &m->layout, &m->total[f]));
  }
  return assay_tune_times_casts(o->formats, &m->works, &m->layout);
}

// As few units in the highest format as possible: seconds only decide between the same numbers.
static void count_layers(assay_tune_model_t* m) {
  assay_tune_problem_t* p = &m->layout.problem;
  const size_t n = p->n_formats;
  double whole = 0;
  for (size_t u = 0; u < p->n_units; u++) whole += m->seconds[u * n + n - 1];
  p->cast_price = 1e-4 / fmax(whole, 1e-12);
  for (size_t i = 0; i < p->n_units * n; i++)
    p->time[i] = (i % n == n - 1) + p->cast_price * m->seconds[i];
}

static assay_status_t fill_times(assay_tune_model_t* m) {
  const assay_tune_setting_t* o = m->options;
  assay_tune_problem_t* p = &m->layout.problem;
  const assay_tune_base_t* c = &m->bases[0];
  ASSAY_TRY(assay_tune_works_measure(c->plan, &m->layout, assay_samples_get(m->inputs, 0),
                                     m->setting.unquantized, &m->works));
  if (o->device)
    assay_tune_times_roofline(o->device, o->formats, &m->works, &m->layout);
  else
    ASSAY_TRY(measure_times(m));
  const size_t choices = p->n_units * p->n_formats;
  ASSAY_TRY(assay_new_array(choices, sizeof *m->seconds, &m->seconds));
  memcpy(m->seconds, p->time, choices * sizeof *m->seconds);
  if (o->goal == ASSAY_TUNE_LAYERS) count_layers(m);
  return NULL;
}

assay_status_t assay_tune_model_seconds(const assay_tune_model_t* m, const uint8_t* format,
                                        double* out) {
  assay_tune_problem_t p = m->layout.problem;
  assay_tune_state_t s = {0};
  p.time = m->seconds;
  p.cast_price = 1;
  ASSAY_TRY(assay_tune_state_create(&p, 0, &s));
  memcpy(s.format, format, p.n_units * sizeof *format);
  assay_tune_state_sum(&p, &s);
  *out = s.time;
  assay_tune_state_deinit(&s);
  return NULL;
}

// ---- errors -------------------------------------------------------------------------------------

// Small models can afford more samples and more probes.
static void choose_effort(const assay_tune_model_t* m, assay_tune_errors_setting_t* s) {
  double work = 1;
  for (size_t u = 0; u < m->layout.n_units; u++)
    work += m->works.unit[u].products + m->works.unit[u].others;
  const double outputs = (double)m->layout.n_outputs;
  const double samples = fmin(fmax(1, 3e9 / (work * outputs)), 8);
  s->samples = (size_t)fmin(samples, (double)m->inputs->n);
  s->draws = (uint64_t)fmin(fmax(1, 1e10 / (work * outputs * (double)s->samples)), 8);
}

// Units in a low format that all may have it in.
static assay_status_t base_state(const assay_tune_model_t* m, size_t format,
                                 assay_tune_state_t* out) {
  return assay_tune_state_create(&m->layout.problem, format, out);
}

// What the errors of units have in common beyond what independent ones would: with the whole error
// e, <J d, e> is |J d|^2 and the products with all others.
static void fill_common(assay_tune_model_t* m, const assay_tune_errors_t* e, size_t f, size_t o) {
  static const double NOTABLE = 0.25;
  assay_tune_problem_t* p = &m->layout.problem;
  const size_t n = p->n_outputs;
  double alone = 0, crossed = 0, positive = 0;
  for (size_t u = 0; u < p->n_units; u++) {
    const double cross = e->share[u * n + o] - e->energy[u * n + o];
    alone += e->energy[u * n + o];
    crossed += cross;
    positive += fmax(0, cross);
  }
  if (!(crossed > NOTABLE * alone)) return;
  for (size_t u = 0; u < p->n_units; u++) {
    const double cross = e->share[u * n + o] - e->energy[u * n + o];
    p->common[(u * p->n_formats + f) * n + o] = fmax(0, cross) * sqrt(crossed) / positive;
  }
}

// An output without derivatives: by what units do to what they make.
static void fill_ratios(assay_tune_model_t* m, const assay_tune_errors_t* e, size_t f, size_t o) {
  assay_tune_problem_t* p = &m->layout.problem;
  for (size_t u = 0; u < p->n_units; u++)
    p->energy[(u * p->n_formats + f) * p->n_outputs + o] = e->ratio[u];
}

// An output of which little is left has no more error to show, however many layers would each lose
// it.
bool assay_tune_is_lost(const assay_output_check_t* o) {
  static const double LOST_DB = 6;
  return o->is_float && assay_error_sum_snr_db(&o->error) < LOST_DB;
}

// Energies as they were found, then resized so that the run with all in the format has what it had.
static assay_status_t fill_energies(assay_tune_model_t* m, const assay_tune_errors_t* e, size_t f,
                                    const assay_output_check_t* outputs) {
  assay_tune_problem_t* p = &m->layout.problem;
  const size_t n = p->n_outputs;
  assay_tune_state_t base = {0};
  for (size_t o = 0; o < n; o++) {
    double sum = 0;
    for (size_t u = 0; u < p->n_units; u++) {
      p->energy[(u * p->n_formats + f) * n + o] = e->energy[u * n + o];
      sum += e->energy[u * n + o];
    }
    for (size_t l = 0; l < p->n_links; l++) p->links[l].energy[f * n + o] = e->link[l * n + o];
    if (sum > 0)
      fill_common(m, e, f, o);
    else
      fill_ratios(m, e, f, o);
  }
  ASSAY_TRY(base_state(m, f, &base));
  for (size_t o = 0; o < n; o++) {
    const double model = fmax(0, base.energy[o]) + base.common[o] * base.common[o];
    const double has = fmax(assay_tune_mean_square(&outputs[o]) - p->floor[o], 0);
    const double part = model > 0 ? has / model : 0;
    const double by = assay_tune_is_lost(&outputs[o]) ? fmax(part, 1) : part;
    for (size_t u = 0; u < p->n_units; u++) {
      p->energy[(u * p->n_formats + f) * n + o] *= by;
      p->common[(u * p->n_formats + f) * n + o] *= sqrt(by);
    }
    for (size_t l = 0; l < p->n_links; l++) p->links[l].energy[f * n + o] *= by;
  }
  assay_tune_state_deinit(&base);
  return NULL;
}

static assay_status_t plan_of(const assay_tune_model_t* m, size_t f, assay_format_t** given,
                              assay_plan_t** out) {
  const assay_tune_base_t* c = &m->bases[f];
  assay_tune_state_t base = {0};
  ASSAY_TRY(assay_new_array((size_t)m->model->n_node_ids, sizeof **given, given));
  ASSAY_TRY(base_state(m, f, &base));
  assay_tune_model_given(m, base.format, *given);
  assay_tune_state_deinit(&base);
  assay_precision_t p = c->precision;
  p.given = *given;
  return assay_plan_create(m->model, &p, &m->setting.plan, m->setting.seed, out);
}

assay_status_t assay_tune_model_errors(assay_tune_model_t* m, size_t format,
                                       const assay_output_check_t* outputs) {
  const assay_check_setting_t* o = &m->setting;
  assay_tune_errors_setting_t s = {.backend = o->backend,
                                   .format = m->options->formats[format],
                                   .layout = &m->layout,
                                   .inputs = m->inputs,
                                   .unquantized = o->unquantized,
                                   .progress = o->progress,
                                   .user = o->user};
  assay_format_t* given = NULL;
  assay_plan_t* plan = NULL;
  assay_tune_errors_t errors = {0};
  choose_effort(m, &s);
  assay_status_t st = plan_of(m, format, &given, &plan);
  s.plan = plan;
  if (!st && assay_plan_layers(plan)->n_layers != m->layout.n_units)
    st = ASSAY_ERROR(ASSAY_INTERNAL, "the layers of a plan changed with their formats");
  if (!st) st = assay_tune_errors_measure(&s, &errors);
  if (!st) st = fill_energies(m, &errors, format, outputs);
  for (size_t u = 0; !st && u < m->layout.n_units; u++) m->n_unknown += errors.unknown[u];
  assay_tune_errors_deinit(&errors);
  assay_plan_destroy(plan);
  assay_free(given);
  return st;
}

// ---- formats of nodes ---------------------------------------------------------------------------

static void give(const assay_node_t* n, assay_format_t format, assay_format_t* given) {
  given[n->id] = format;
  for (size_t a = 0; a < n->n_attrs; a++) {
    const assay_attr_t* attr = &n->attrs[a];
    const size_t graphs = attr->type == ASSAY_ATTR_GRAPH    ? 1
                          : attr->type == ASSAY_ATTR_GRAPHS ? attr->n
                                                            : 0;
    for (size_t g = 0; g < graphs; g++) {
      const assay_graph_t* body = attr->type == ASSAY_ATTR_GRAPH ? attr->u.g : attr->u.graphs[g];
      for (size_t i = 0; i < body->n_nodes; i++) give(body->nodes[i], format, given);
    }
  }
}

// Whether a unit is a Cast that stands where the model declares a type: it has the format of the
// node that it stands for.
static bool is_border(const assay_model_t* m, const assay_layer_t* l) {
  return l->n_nodes == 1 && l->nodes[0]->id >= m->n_node_ids &&
         strcmp(l->nodes[0]->op_type, "Cast") == 0;
}

void assay_tune_model_given(const assay_tune_model_t* m, const uint8_t* format,
                            assay_format_t* given) {
  const assay_plan_t* plan = m->bases[0].plan;
  const assay_layers_t* layers = assay_plan_layers(plan);
  for (size_t u = 0; u < m->layout.n_units; u++) {
    if (m->pinned[u] || !m->layout.floats[u]) continue;
    if (is_border(m->model, &layers->layers[u])) continue;
    for (size_t k = 0; k < layers->layers[u].n_nodes; k++) {
      assay_origins_t o = assay_plan_origins(plan, &layers->layers[u].nodes[k]);
      for (size_t i = 0; i < o.n; i++) give(o.nodes[i], m->options->formats[format[u]], given);
    }
  }
}

// ---- the whole ----------------------------------------------------------------------------------

static assay_status_t make(assay_tune_model_t* m, const assay_precision_t* given,
                           assay_runs_t* runs) {
  ASSAY_TRY(make_bases(m, given));
  ASSAY_TRY(assay_tune_layout_create(m->bases[0].plan, m->options->n_formats, &m->layout));
  for (size_t f = 0; f < m->options->n_formats; f++) {
    const assay_format_info_t* info = assay_format_info(m->options->formats[f]);
    m->layout.problem.bits[f] = m->options->formats[f] == ASSAY_FORMAT_TF32 ? 24 : info->precision;
  }
  ASSAY_TRY(assay_new_array(m->layout.n_outputs, sizeof *m->gaps, &m->gaps));
  ASSAY_TRY(assay_new_array(m->layout.n_units, sizeof *m->pinned, &m->pinned));
  ASSAY_TRY(assay_new_array(m->layout.n_units, sizeof *m->out_of_range, &m->out_of_range));
  for (size_t f = 0; f + 1 < m->options->n_formats; f++) ASSAY_TRY(predict(m, f, runs));
  ASSAY_TRY(fill_times(m));
  pin(m);
  for (size_t f = 0; f + 1 < m->options->n_formats; f++)
    ASSAY_TRY(assay_tune_model_leave_range(m, f, false));
  return NULL;
}

assay_status_t assay_tune_model_create(assay_model_t* model, assay_check_setting_t* check,
                                       const assay_tune_setting_t* options,
                                       const assay_samples_t* inputs, assay_runs_t* runs,
                                       assay_tune_model_t* out) {
  assay_tune_model_t m = {
      .options = options, .inputs = inputs, .model = assay_model_retain(model), .setting = *check};
  m.setting.precision = (assay_precision_t){0};
  assay_status_t st = make(&m, &check->precision, runs);
  assay_precision_deinit(&check->precision);
  if (st) return assay_tune_model_deinit(&m), st;
  *out = m;
  return NULL;
}

void assay_tune_model_deinit(assay_tune_model_t* m) {
  for (size_t o = 0; m->gaps && o < m->layout.n_outputs; o++) assay_tune_gaps_deinit(&m->gaps[o]);
  assay_free(m->gaps);
  for (size_t f = 0; f < ASSAY_TUNE_FORMATS; f++) {
    assay_account_destroy(m->bases[f].account);
    assay_plan_destroy(m->bases[f].plan);
    assay_precision_deinit(&m->bases[f].precision);
  }
  assay_model_release(m->model);
  assay_tune_layout_deinit(&m->layout);
  assay_tune_works_deinit(&m->works);
  assay_free(m->seconds);
  assay_free(m->pinned);
  assay_free(m->out_of_range);
  *m = (assay_tune_model_t){0};
}
