// Opens what is measured, and puts its inputs where a run takes them.
#include "cli/verbs/bench/bench_source.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "cli/risks.h"
#include "cli/verbs/bench/bench_sizes.h"

void bench_source_deinit(bench_source_t* s) {
  for (size_t i = 0; i < s->n_inputs; i++) assay_tensor_release(s->inputs[i]);
  assay_free(s->inputs);
  assay_engine_release(s->engine);
  assay_samples_deinit(&s->samples);
  *s = (bench_source_t){0};
}

static assay_status_t read_inputs(const cli_engine_args_t* engine, const opt_list_t* inputs,
                                  const cli_reading_args_t* how, const cli_shapes_t* shapes,
                                  int profile, bench_source_t* s) {
  const uint64_t seed = (uint64_t)engine->seed;
  assay_tensor_reading_t reading = {0};
  assay_status_t st = cli_reading_begin(how, &reading);
  if (!st && inputs->n)
    st = cli_samples(inputs, s->model, &reading, seed, &s->samples);
  else if (!st)
    st = cli_engine_samples(s->engine, shapes, profile, seed, &s->samples);
  st = cli_reading_end(how, &reading, st);
  cli_reading_deinit(&reading);
  return st;
}

// Inputs as a caller hands them over: packed, in the model's types.
static assay_status_t pack_inputs(bench_source_t* s) {
  assay_tensor_t* const* at = assay_samples_get(&s->samples, 0);
  const size_t n = s->model->graph->n_inputs;
  ASSAY_TRY(assay_new_array(n, sizeof *s->inputs, &s->inputs));
  s->n_inputs = n;
  for (size_t i = 0; i < n; i++) {
    if (!at[i]) continue;
    const bool plain = at[i]->kind != ASSAY_KIND_TENSOR || at[i]->store == ASSAY_STORE_STR ||
                       at[i]->store == ASSAY_STORE_PACKED;
    if (plain)
      s->inputs[i] = assay_tensor_retain(at[i]);
    else
      ASSAY_TRY(assay_tensor_pack(at[i], &s->inputs[i]));
  }
  return NULL;
}

assay_status_t bench_source_open(const cli_engine_args_t* engine, const opt_list_t* inputs,
                                 const cli_reading_args_t* reading, bench_source_t* out,
                                 int* exit_code) {
  ASSAY_TRY(cli_engine_open(engine, NULL, &out->engine, exit_code));
  *exit_code = ASSAY_EXIT_INPUT;
  ASSAY_TRY(assay_engine_check_whole(out->engine));
  out->model = assay_plan_layers(assay_engine_plan(out->engine))->model;
  out->given = inputs->n > 0;
  // A model was loaded in its shapes; a plan may still leave some open.
  cli_shapes_t shapes = {0};
  int profile = 0;
  *exit_code = ASSAY_EXIT_USAGE;
  const bool plan = assay_engine_is_plan_file(engine->model);
  if (plan && inputs->n && (engine->shape.batch || engine->shape.dims.n))
    return ASSAY_ERROR(
        ASSAY_INVALID_ARGUMENT,
        "inputs from files have their own sizes: leave out %s, which is for a plan's "
        "made-up inputs",
        engine->shape.batch ? "--batch" : "--dim");
  if (plan) ASSAY_TRY(bench_sizes_of_plan(engine, out->engine, &shapes, &profile));
  *exit_code = ASSAY_EXIT_INPUT;
  assay_status_t st = read_inputs(engine, inputs, reading, &shapes, profile, out);
  cli_shapes_free(&shapes);
  if (st) return st;
  *exit_code = ASSAY_EXIT_FAILED;
  return pack_inputs(out);
}

assay_status_t bench_source_set(const bench_source_t* s, assay_executor_t* e) {
  return assay_executor_set_inputs(e, s->inputs);
}

void bench_source_warn(const bench_source_t* s) {
  cli_warn_of_constants(s->engine, cli_warn_stderr);
  if (s->given) cli_warn_of_hidden(s->engine, s->inputs, cli_warn_stderr);
}
