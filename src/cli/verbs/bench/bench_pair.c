// Two sides measured in turns of A B B A; the verdict, and its figures as text or JSON.
#include "cli/verbs/bench/bench_pair.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "cli/verbs/bench/bench_layers.h"
#include "cli/verbs/bench/bench_ratio.h"
#include "cli/verbs/bench/bench_source.h"

// A turn is runs of one side, for about so long: a clock's grain and the caches that the other side
// left behind do not show in it.
static const double turn_seconds = 2e-3;
enum { MIN_ROUNDS = 8, MAX_TURN_RUNS = 1000 };

typedef struct side {
  const char* path;
  bench_source_t source;
  assay_executor_t* executor;
  size_t turn_runs;
  double* milliseconds;   // a run's mean, by turn: two a round
  double* layer_seconds;  // summed over all runs
  size_t n_turns, cap_turns;
} side_t;

typedef struct pair {
  const bench_pair_args_t* args;
  side_t sides[2];
  bench_ratio_t ratio;
  double* sorted[2];  // the turns' latencies
  size_t n_rounds;
  bench_layer_rows_t rows;
} pair_t;

static void pair_deinit(pair_t* p) {
  for (int i = 0; i < 2; i++) {
    side_t* s = &p->sides[i];
    assay_executor_destroy(s->executor);
    bench_source_deinit(&s->source);
    assay_free(s->milliseconds);
    assay_free(s->layer_seconds);
    assay_free(p->sorted[i]);
  }
  bench_layer_rows_deinit(&p->rows);
}

// ---- measuring ----------------------------------------------------------------------------------

static assay_status_t run_steps(side_t* s) {
  for (size_t i = 0; i < assay_executor_n_steps(s->executor); i++) {
    const double start = assay_clock_seconds();
    ASSAY_TRY(assay_executor_step(s->executor, i));
    s->layer_seconds[i] += assay_clock_seconds() - start;
  }
  return NULL;
}

static assay_status_t run_once(side_t* s, bool layers) {
  assay_executor_stepwise(s->executor, layers);
  assay_executor_reset(s->executor);
  ASSAY_TRY(bench_source_set(&s->source, s->executor));
  return layers ? run_steps(s) : assay_executor_run(s->executor);
}

// Runs a side until all is prepared, and sees how many runs a turn has.
static assay_status_t warm_up(const pair_t* p, side_t* s) {
  const double end = assay_clock_seconds() + p->args->warm_up;
  double fastest = INFINITY;
  do {
    const double start = assay_clock_seconds();
    ASSAY_TRY(run_once(s, p->args->layers));
    fastest = fmin(fastest, assay_clock_seconds() - start);
  } while (assay_clock_seconds() < end);
  const double runs = ceil(turn_seconds / fmax(fastest, 1e-9));
  s->turn_runs = runs < MAX_TURN_RUNS ? (size_t)runs : MAX_TURN_RUNS;
  memset(s->layer_seconds, 0, assay_executor_n_steps(s->executor) * sizeof *s->layer_seconds);
  return NULL;
}

static assay_status_t take_turn(const pair_t* p, side_t* s) {
  ASSAY_TRY(assay_grow(&s->milliseconds, &s->cap_turns, s->n_turns + 1, sizeof *s->milliseconds));
  const double start = assay_clock_seconds();
  for (size_t i = 0; i < s->turn_runs; i++) ASSAY_TRY(run_once(s, p->args->layers));
  s->milliseconds[s->n_turns++] = 1e3 * (assay_clock_seconds() - start) / (double)s->turn_runs;
  return NULL;
}

// A round is A B, then B A: what being first costs, and a machine that slowly gets faster or
// slower, fall on both.
static assay_status_t take_round(pair_t* p) {
  static const int order[] = {0, 1, 1, 0};
  for (size_t i = 0; i < sizeof order / sizeof *order; i++)
    ASSAY_TRY(take_turn(p, &p->sides[order[i]]));
  p->n_rounds++;
  return NULL;
}

static assay_status_t summarize(pair_t* p) {
  double* logs = NULL;
  ASSAY_TRY(assay_new_array(p->n_rounds, sizeof *logs, &logs));
  const double *a = p->sides[0].milliseconds, *b = p->sides[1].milliseconds;
  for (size_t i = 0; i < p->n_rounds; i++)
    logs[i] = 0.5 * (log(a[2 * i] / b[2 * i]) + log(a[2 * i + 1] / b[2 * i + 1]));
  p->ratio = bench_ratio_of(logs, p->n_rounds);
  assay_free(logs);
  for (int i = 0; i < 2; i++) {
    const side_t* s = &p->sides[i];
    ASSAY_TRY(assay_new_array(s->n_turns, sizeof **p->sorted, &p->sorted[i]));
    memcpy(p->sorted[i], s->milliseconds, s->n_turns * sizeof **p->sorted);
    bench_sort(p->sorted[i], s->n_turns);
  }
  return NULL;
}

static assay_status_t compare_layers(pair_t* p) {
  bench_layer_times_t times[2];
  if (!p->args->layers) return NULL;
  for (int i = 0; i < 2; i++) {
    const side_t* s = &p->sides[i];
    times[i] = (bench_layer_times_t){.plan = assay_engine_plan(s->source.engine),
                                     .seconds = s->layer_seconds,
                                     .runs = s->n_turns * s->turn_runs};
  }
  return bench_layer_rows_make(times, &p->rows);
}

static assay_status_t measure(pair_t* p) {
  for (int i = 0; i < 2; i++) {
    side_t* s = &p->sides[i];
    ASSAY_TRY(assay_executor_run_engine(s->source.engine, NULL, &s->executor));
    ASSAY_TRY(assay_new_array(assay_executor_n_steps(s->executor), sizeof *s->layer_seconds,
                              &s->layer_seconds));
    ASSAY_TRY(assay_status_note(warm_up(p, s), "'%s'", s->path));
  }
  const double end = assay_clock_seconds() + p->args->seconds;
  while (p->n_rounds < MIN_ROUNDS || assay_clock_seconds() < end) ASSAY_TRY(take_round(p));
  ASSAY_TRY(summarize(p));
  return compare_layers(p);
}

// ---- printing -----------------------------------------------------------------------------------

// "B is 1.23 times as fast as A (95 %: 1.20 to 1.26)" with as many digits as tell it from 1.
static void put_ratio(const char* fast, double ratio, double low, double high, const char* slow,
                      assay_str_t* out) {
  const int digits = fabs(ratio - 1) < 0.1 ? 3 : ratio < 100 ? 2 : 0;
  assay_str_printf(out, "%s is %.*f times as fast as %s (95 %%: %.*f to %.*f)", fast, digits, ratio,
                   slow, digits, low, digits, high);
}

static void verdict(const pair_t* p, assay_str_t* out) {
  const bench_ratio_t* r = &p->ratio;
  const bool a_is_faster = r->differs && r->ratio < 1;
  if (!r->differs) assay_str_printf(out, "no difference that %zu rounds can show: ", p->n_rounds);
  if (a_is_faster)
    put_ratio("A", 1 / r->ratio, 1 / r->high, 1 / r->low, "B", out);
  else
    put_ratio("B", r->ratio, r->low, r->high, "A", out);
}

static double at(const pair_t* p, int side, double part) {
  return p->sorted[side][(size_t)(part * (double)(p->sides[side].n_turns - 1) + 0.5)];
}

static void print(const pair_t* p, const char* said) {
  printf("%s\n\n", said);
  for (int i = 0; i < 2; i++)
    printf("%c          median %.4g ms, 10%% %.4g, 90%% %.4g: %s\n", "AB"[i], at(p, i, 0.5),
           at(p, i, 0.1), at(p, i, 0.9), p -> sides[i].path);
  printf(
      "measured   %zu rounds of A B B A, %zu and %zu runs a turn, %d thread%s; the interval is the "
      "sign test's\n",
      p->n_rounds, p->sides[0].turn_runs, p->sides[1].turn_runs, p->args->threads,
      p->args->threads == 1 ? "" : "s");
  if (p->args->layers) bench_layer_rows_print(&p->rows, stdout);
}

static json_t* side_json(const pair_t* p, int i) {
  const side_t* s = &p->sides[i];
  json_t* turns = json_array();
  for (size_t k = 0; k < s->n_turns; k++)
    turns = assay_json_push(turns, assay_json_number(s->milliseconds[k]));
  json_t* o = assay_json_put(json_object(), "model", assay_json_text(s->path));
  o = assay_json_put(o, "median_ms", assay_json_number(at(p, i, 0.5)));
  o = assay_json_put(o, "p10_ms", assay_json_number(at(p, i, 0.1)));
  o = assay_json_put(o, "p90_ms", assay_json_number(at(p, i, 0.9)));
  o = assay_json_put(o, "runs_per_turn", json_integer((json_int_t)s->turn_runs));
  return assay_json_put(o, "turns_ms", turns);
}

static assay_status_t write_json(const pair_t* p, const char* said) {
  const bench_ratio_t* r = &p->ratio;
  json_t* interval = assay_json_push(json_array(), assay_json_number(r->low));
  interval = assay_json_push(interval, assay_json_number(r->high));
  json_t* o = assay_json_put(json_object(), "schema", json_string("assay.bench_pair/1"));
  o = assay_json_put(o, "verdict", json_string(said));
  o = assay_json_put(o, "differs", json_boolean(r->differs));
  o = assay_json_put(o, "speed_of_b", assay_json_number(r->ratio));
  o = assay_json_put(o, "interval_95", interval);
  o = assay_json_put(o, "method", json_string("sign test of the median of paired log ratios"));
  o = assay_json_put(o, "rounds", json_integer((json_int_t)p->n_rounds));
  o = assay_json_put(o, "threads", json_integer(p->args->threads));
  o = assay_json_put(o, "a", side_json(p, 0));
  o = assay_json_put(o, "b", side_json(p, 1));
  if (p->args->layers) o = assay_json_put(o, "layers", bench_layer_rows_json(&p->rows));
  if (!o) return assay_status_no_memory();
  assay_status_t st = assay_cli_write_json(p->args->json, o);
  json_decref(o);
  return st;
}

static assay_status_t report(const pair_t* p) {
  const char* json = p->args->json;
  assay_str_t said = {0};
  verdict(p, &said);
  assay_status_t st = assay_str_status(&said);
  if (!st && !assay_cli_json_to_stdout(json)) print(p, assay_str_get(&said));
  if (!st && json) st = write_json(p, assay_str_get(&said));
  assay_str_deinit(&said);
  return st;
}

// ---- the whole ----------------------------------------------------------------------------------

int bench_pair_run(const bench_pair_args_t* a) {
  pair_t p = {.args = a, .sides = {{.path = a->engine->model}, {.path = a->model_b}}};
  assay_status_t st = NULL;
  int code = ASSAY_EXIT_FAILED;
  omp_set_num_threads(a->threads);
  for (int i = 0; !st && i < 2; i++) {
    cli_engine_args_t engine = *a->engine;
    engine.model = p.sides[i].path;
    st = bench_source_open(&engine, a->inputs, a->reading, &p.sides[i].source, &code);
    if (st && !strstr(assay_status_message(st), engine.model))
      st = assay_status_note(st, "'%s'", engine.model);
  }
  if (!st) {
    code = ASSAY_EXIT_FAILED;
    st = measure(&p);
  }
  if (!st) st = report(&p);
  fflush(stdout);
  for (int i = 0; !st && i < 2; i++) bench_source_warn(&p.sides[i].source);
  pair_deinit(&p);
  return st ? assay_cli_fail(st, code) : ASSAY_EXIT_OK;
}
