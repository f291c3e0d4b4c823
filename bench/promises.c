// What runs promise about bits and memory, of one model on one target.
//
//   promises MODEL TARGET PRECISION RUNS [BATCH]
//
// The same bits: run after run, with other inputs in between; by 1, 2 and 4 contexts side by side;
// of a sample alone and among others; from an engine for open sizes, one that was built for the
// batch, and a plan file. Then RUNS runs: what the process and its contexts take does not grow. A
// line each; exit code 1: one does not hold.
#include <assay/assay.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SETS = 3, MAX_CONTEXTS = 4, SIDE_BY_SIDE = 30, MAX_VALUES = 64, MAX_RANK = 8 };

typedef struct results {
  size_t n;
  assay_tensor_t* at[MAX_VALUES];
} results_t;

typedef struct job {
  assay_model_t* model;
  assay_engine_options_t options;
  int64_t batch;  // 1: the model has a batch of its own
  assay_engine_t* engine;
  assay_samples_t* samples[SETS];
  results_t sets[SETS], want[SETS];  // inputs, borrowed of the samples; outputs
  bool holds;
} job_t;

static void ok(assay_status_t st) {
  if (!st) return;
  fprintf(stderr, "promises: %s\n", assay_status_message(st));
  exit(3);
}

static void tell(job_t* j, const char* what, bool equal) {
  printf("%-52s %s\n", what, equal ? "equal" : "DIFFERENT");
  fflush(stdout);
  j->holds &= equal;
}

// ---- inputs and outputs -------------------------------------------------------------------------

// Inputs that leave their first dimension open have a batch in it.
static bool has_batch(const assay_io_t* io) {
  return assay_io_rank(io) > 0 && assay_io_dim(io, 0) < 0;
}

static void draw(job_t* j, int set) {
  static int64_t dims[MAX_VALUES][MAX_RANK];
  assay_engine_shape_t shapes[MAX_VALUES];
  assay_samples_t* s = NULL;
  size_t n = 0;
  for (size_t i = 0; i < assay_engine_input_count(j->engine) && i < MAX_VALUES; i++) {
    const assay_io_t* io = assay_engine_input(j->engine, i);
    const int rank = assay_io_rank(io);
    if (!has_batch(io) || rank > MAX_RANK) continue;
    for (int d = 0; d < rank; d++) {
      const int64_t size = assay_io_dim(io, d);
      dims[n][d] = d == 0 ? j->batch : size < 0 ? 1 : size;
    }
    shapes[n] = (assay_engine_shape_t){.input = assay_io_name(io), .rank = rank, .dims = dims[n]};
    n++;
  }
  ok(assay_samples_random(j->model, (uint64_t)set + 1, n, shapes, &s));
  j->samples[set] = s;
  j->sets[set].n = assay_engine_input_count(j->engine) < MAX_VALUES
                       ? assay_engine_input_count(j->engine)
                       : MAX_VALUES;
  for (size_t i = 0; i < j->sets[set].n; i++)
    for (size_t k = 0; k < assay_samples_value_count(s); k++)
      if (strcmp(assay_samples_value_name(s, k), assay_io_name(assay_engine_input(j->engine, i))) ==
          0)
        j->sets[set].at[i] = assay_samples_tensor(s, 0, k);
}

// The first sample of a batch.
static assay_tensor_t* first_row(assay_tensor_t* t) {
  int64_t dims[MAX_RANK];
  assay_tensor_t* out = NULL;
  const int rank = assay_tensor_rank(t);
  const size_t bytes = assay_tensor_bytes(t);
  char* all = malloc(bytes + 1);
  if (!all) exit(3);
  ok(assay_tensor_read(t, all, bytes));
  memcpy(dims, assay_tensor_dims(t), (size_t)rank * sizeof *dims);
  const int64_t batch = dims[0];
  dims[0] = 1;
  ok(assay_tensor_make(assay_tensor_type(t), rank, dims, all, bytes / (size_t)batch, &out));
  free(all);
  return out;
}

static void set_inputs(assay_context_t* c, const results_t* inputs, bool only_first) {
  for (size_t i = 0; i < inputs->n; i++) {
    if (!inputs->at[i]) continue;
    assay_tensor_t* t = only_first ? first_row(inputs->at[i]) : assay_tensor_retain(inputs->at[i]);
    ok(assay_context_set_input(c, i, t));
    assay_tensor_release(t);
  }
}

static results_t take(assay_context_t* c, const assay_engine_t* e) {
  results_t r = {.n = assay_engine_output_count(e)};
  if (r.n > MAX_VALUES) r.n = MAX_VALUES;
  for (size_t i = 0; i < r.n; i++) r.at[i] = assay_context_output(c, i);
  return r;
}

static void drop(results_t* r) {
  for (size_t i = 0; i < r->n; i++) assay_tensor_release(r->at[i]);
  r->n = 0;
}

static char* read_all(assay_tensor_t* t) {
  char* all = malloc(assay_tensor_bytes(t) + 1);
  if (!all) exit(3);
  ok(assay_tensor_read(t, all, assay_tensor_bytes(t)));
  return all;
}

// Whether the first bytes are the same; both have as many.
static bool same_bits(assay_tensor_t* a, assay_tensor_t* b, size_t bytes) {
  char *x = read_all(a), *y = read_all(b);
  const bool same = memcmp(x, y, bytes) == 0;
  free(x);
  free(y);
  return same;
}

static bool same(const results_t* a, const results_t* b) {
  bool same = a->n == b->n;
  for (size_t i = 0; same && i < a->n; i++) {
    if (!a->at[i] || !b->at[i] || assay_tensor_kind(a->at[i]) != ASSAY_KIND_TENSOR) continue;
    same = assay_tensor_bytes(a->at[i]) == assay_tensor_bytes(b->at[i]) &&
           same_bits(a->at[i], b->at[i], assay_tensor_bytes(a->at[i]));
  }
  return same;
}

// Whether a run on set k in this context gives what is wanted.
static bool gives(const job_t* j, assay_context_t* c, const assay_engine_t* e, int k) {
  set_inputs(c, &j->sets[k], false);
  ok(assay_context_run(c));
  results_t got = take(c, e);
  const bool equal = same(&got, &j->want[k]);
  drop(&got);
  return equal;
}

// ---- the promises -------------------------------------------------------------------------------

static void runs_after_runs(job_t* j) {
  assay_context_t* c = NULL;
  bool equal = true;
  ok(assay_context_create(j->engine, NULL, &c));
  for (int k = 0; k < SETS; k++) {
    set_inputs(c, &j->sets[k], false);
    ok(assay_context_run(c));
    j->want[k] = take(c, j->engine);
  }
  for (int i = 0; i < 4 * SETS; i++) equal &= gives(j, c, j->engine, (i * 2 + i / 5) % SETS);
  assay_context_destroy(c);
  tell(j, "run after run, with other inputs in between", equal);
}

typedef struct side {
  job_t* job;
  int number;
  bool equal;
} side_t;

static void* beside(void* p) {
  side_t* s = p;
  assay_context_t* c = NULL;
  ok(assay_context_create(s->job->engine, NULL, &c));
  for (int i = 0; i < SIDE_BY_SIDE; i++)
    s->equal &= gives(s->job, c, s->job->engine, (i + s->number + i / 7) % SETS);
  assay_context_destroy(c);
  return NULL;
}

static void side_by_side(job_t* j, int n) {
  pthread_t threads[MAX_CONTEXTS];
  side_t sides[MAX_CONTEXTS];
  char what[64];
  bool equal = true;
  for (int i = 0; i < n; i++) {
    sides[i] = (side_t){j, i, true};
    if (pthread_create(&threads[i], NULL, beside, &sides[i])) exit(3);
  }
  for (int i = 0; i < n; i++) {
    pthread_join(threads[i], NULL);
    equal &= sides[i].equal;
  }
  snprintf(what, sizeof what, "%d contexts side by side, %d runs each", n, SIDE_BY_SIDE);
  tell(j, what, equal);
}

static void alone(job_t* j) {
  assay_context_t* c = NULL;
  bool equal = true;
  char what[64];
  ok(assay_context_create(j->engine, NULL, &c));
  for (int k = 0; k < SETS; k++) {
    set_inputs(c, &j->sets[k], true);
    ok(assay_context_run(c));
    results_t got = take(c, j->engine);
    for (size_t i = 0; i < got.n; i++) {
      assay_tensor_t *a = got.at[i], *b = j->want[k].at[i];
      if (!a || !b || assay_tensor_kind(a) != ASSAY_KIND_TENSOR || !assay_tensor_rank(a)) continue;
      const size_t bytes = assay_tensor_bytes(a);
      if (bytes * (size_t)j->batch == assay_tensor_bytes(b)) equal &= same_bits(a, b, bytes);
    }
    drop(&got);
  }
  assay_context_destroy(c);
  snprintf(what, sizeof what, "sample 0 of %lld and alone", (long long)j->batch);
  tell(j, what, equal);
}

static bool engine_gives(job_t* j, assay_engine_t* e) {
  assay_context_t* c = NULL;
  bool equal = true;
  ok(assay_context_create(e, NULL, &c));
  for (int k = 0; k < SETS; k++) equal &= gives(j, c, e, k);
  assay_context_destroy(c);
  return equal;
}

static void other_engines(job_t* j) {
  char path[64];
  assay_engine_t* e = NULL;
  snprintf(path, sizeof path, "/tmp/promises-%ld.plan", (long)getpid());
  ok(assay_engine_save(j->engine, path));
  ok(assay_engine_load_on(path, j->options.target, &e));
  unlink(path);
  tell(j, "from a plan file", engine_gives(j, e));
  assay_engine_release(e);
  if (j->batch < 2) return;
  assay_engine_options_t fixed = j->options;
  fixed.batch = j->batch;
  ok(assay_engine_build(j->model, &fixed, &e));
  tell(j, "built for the batch, and for open sizes", engine_gives(j, e));
  assay_engine_release(e);
}

static double resident_mb(void) {
  long pages = 0;
  FILE* f = fopen("/proc/self/statm", "r");
  if (!f || fscanf(f, "%*s %ld", &pages) != 1) pages = 0;
  if (f) fclose(f);
  return (double)pages * (double)sysconf(_SC_PAGESIZE) / 1e6;
}

static void many(job_t* j, long runs) {
  static const double ROOM_MB = 8;
  assay_context_t* c = NULL;
  double before = 0;
  size_t taken = 0;
  bool equal = true;
  ok(assay_context_create(j->engine, NULL, &c));
  for (long i = 0; i < runs; i++) {
    if (i == runs / 4) before = resident_mb(), taken = assay_context_memory(c);
    equal &= gives(j, c, j->engine, (int)(i % SETS));
  }
  const double after = resident_mb();
  const bool grown = after > 1.02 * before + ROOM_MB || assay_context_memory(c) > taken;
  printf(
      "%ld runs: %.1f MB resident after a quarter, %.1f MB at the end; the context takes %.1f kB: "
      "%s\n",
      runs, before, after, (double)assay_context_memory(c) / 1e3, grown ? "GROWN" : "no growth");
  j->holds &= !grown;
  assay_context_destroy(c);
  tell(j, "all of these runs", equal);
}

int main(int argc, char** argv) {
  job_t j = {
      .options = ASSAY_ENGINE_OPTIONS_INIT, .batch = argc > 5 ? atoll(argv[5]) : 8, .holds = true};
  if (argc < 5) return fprintf(stderr, "promises MODEL TARGET PRECISION RUNS [BATCH]\n"), 2;
  j.options.target = argv[2];
  j.options.precision = assay_format_parse(argv[3]);
  if (j.options.precision == ASSAY_FORMAT_NONE)
    return fprintf(stderr, "promises: '%s' is no format\n", argv[3]), 2;
  ok(assay_model_load(argv[1], &j.model));
  ok(assay_engine_build(j.model, &j.options, &j.engine));
  bool batched = assay_engine_input_count(j.engine) > 0;
  for (size_t i = 0; i < assay_engine_input_count(j.engine); i++)
    batched &= has_batch(assay_engine_input(j.engine, i));
  if (!batched || j.batch < 1) j.batch = 1;
  for (int k = 0; k < SETS; k++) draw(&j, k);
  printf("%s on %s in %s, batch %lld\n", argv[1], argv[2], argv[3], (long long)j.batch);
  runs_after_runs(&j);
  for (int n = 1; n <= MAX_CONTEXTS; n *= 2) side_by_side(&j, n);
  if (j.batch > 1) alone(&j);
  other_engines(&j);
  many(&j, atol(argv[4]));
  for (int k = 0; k < SETS; k++) {
    drop(&j.want[k]);
    assay_samples_destroy(j.samples[k]);
  }
  assay_engine_release(j.engine);
  assay_model_release(j.model);
  return j.holds ? 0 : 1;
}
