// Generates tokens, one a run, with a model that has a cache of keys and values as Hugging Face
// optimum exports it: inputs past_key_values.N.key and .value, outputs present.N.key and .value.
// The caches are states of the context, which grow in place; no step prepares anything.
//
//   decode MODEL [STEPS [times|anew]]
//
// times: how long steps take. anew: the same, with the caches as ordinary inputs and outputs, so
// that each step, which has sizes that no step before had, is prepared for anew.
#include <assay/assay.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_CACHES = 256, MAX_NAME = 256 };

// A cache that this program holds itself.
typedef struct cache {
  size_t input, output;
  assay_tensor_t* value;
} cache_t;

typedef struct decoder {
  assay_engine_t* engine;
  assay_context_t* context;
  size_t ids, logits;
  size_t mask, positions;  // SIZE_MAX: the model has no such input
  bool anew;
  cache_t caches[MAX_CACHES];
  size_t n_caches;
  int64_t id, position, *ones;  // what inputs are bound to
} decoder_t;

static double milliseconds(void) {
  struct timespec t;
  timespec_get(&t, TIME_UTC);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static assay_status_t open_engine(const char* path, assay_engine_t** out) {
  const size_t n = strlen(path);
  assay_model_t* model = NULL;
  if (n > 5 && strcmp(path + n - 5, ".plan") == 0) return assay_engine_load(path, out);
  assay_status_t st = assay_model_load(path, &model);
  if (!st) st = assay_engine_build(model, NULL, out);
  assay_model_release(model);
  return st;
}

// An input that a model may do without.
static size_t find(const assay_engine_t* engine, const char* name) {
  size_t i = SIZE_MAX;
  assay_status_free(assay_engine_find_input(engine, name, &i));
  return i;
}

// ---- caches -------------------------------------------------------------------------------------

// An empty cache: [1, heads, 0, size].
static assay_status_t hold(decoder_t* d, size_t input, size_t output) {
  const assay_io_t* io = assay_engine_input(d->engine, input);
  const int64_t dims[] = {1, assay_io_dim(io, 1), 0, assay_io_dim(io, 3)};
  if (d->n_caches == MAX_CACHES || assay_io_rank(io) != 4)
    return assay_status_create(ASSAY_UNSUPPORTED, "caches are of no form that this program knows");
  cache_t* c = &d->caches[d->n_caches++];
  *c = (cache_t){.input = input, .output = output};
  return assay_tensor_make(assay_io_elem(io), 4, dims, NULL, 0, &c->value);
}

static assay_status_t find_caches(decoder_t* d, int64_t steps) {
  static const char past[] = "past_key_values";
  for (size_t i = 0; i < assay_engine_input_count(d->engine); i++) {
    const char* name = assay_io_name(assay_engine_input(d->engine, i));
    char present[MAX_NAME];
    size_t output;
    if (strncmp(name, past, sizeof past - 1) != 0) continue;
    snprintf(present, sizeof present, "present%s", name + sizeof past - 1);
    assay_status_t st = assay_engine_find_output(d->engine, present, &output);
    if (!st)
      st =
          d->anew ? hold(d, i, output) : assay_context_bind_state(d->context, name, present, steps);
    if (st) return st;
  }
  return NULL;
}

// What a step has made of the caches is what the next one reads.
static assay_status_t pass_on(decoder_t* d) {
  for (size_t i = 0; i < d->n_caches; i++) {
    assay_tensor_release(d->caches[i].value);
    d->caches[i].value = assay_context_output(d->context, d->caches[i].output);
    assay_status_t st = assay_context_set_input(d->context, d->caches[i].input, d->caches[i].value);
    if (st) return st;
  }
  return NULL;
}

// ---- steps --------------------------------------------------------------------------------------

// The length of attention_mask grows, too.
static assay_status_t grow_mask(decoder_t* d, int64_t steps) {
  if (d->mask == SIZE_MAX || d->anew) return NULL;
  const char* length = assay_io_dim_name(assay_engine_input(d->engine, d->mask), 1);
  return length ? assay_context_grow(d->context, length, steps) : NULL;
}

static assay_status_t open_decoder(decoder_t* d, const char* path, int64_t steps) {
  assay_status_t st = open_engine(path, &d->engine);
  if (!st) st = assay_context_create(d->engine, NULL, &d->context);
  if (!st) st = assay_engine_find_input(d->engine, "input_ids", &d->ids);
  if (!st) st = assay_engine_find_output(d->engine, "logits", &d->logits);
  if (st) return st;
  d->mask = find(d->engine, "attention_mask");
  d->positions = find(d->engine, "position_ids");
  d->ones = malloc((size_t)steps * sizeof *d->ones);
  if (!d->ones) return assay_status_create(ASSAY_NO_MEMORY, "no memory for a mask");
  for (int64_t i = 0; i < steps; i++) d->ones[i] = 1;
  st = find_caches(d, steps);
  if (!st) st = grow_mask(d, steps);
  for (size_t i = 0; !st && i < d->n_caches; i++)
    st = assay_context_set_input(d->context, d->caches[i].input, d->caches[i].value);
  return st;
}

static void close_decoder(decoder_t* d) {
  for (size_t i = 0; i < d->n_caches; i++) assay_tensor_release(d->caches[i].value);
  assay_context_destroy(d->context);
  assay_engine_release(d->engine);
  free(d->ones);
}

// One token in, the most probable next one out.
static assay_status_t step(decoder_t* d, int64_t token, int64_t* out_next) {
  const int64_t one[] = {1, 1}, all[] = {1, d->position + 1};
  d->id = token;
  assay_status_t st =
      assay_context_bind_input(d->context, d->ids, ASSAY_TYPE_INT64, 2, one, &d->id, sizeof d->id);
  if (!st && d->positions != SIZE_MAX)
    st = assay_context_bind_input(d->context, d->positions, ASSAY_TYPE_INT64, 2, one, &d->position,
                                  sizeof d->position);
  if (!st && d->mask != SIZE_MAX)
    st = assay_context_bind_input(d->context, d->mask, ASSAY_TYPE_INT64, 2, all, d->ones,
                                  (size_t)all[1] * sizeof *d->ones);
  if (!st) st = assay_context_run(d->context);
  if (!st) st = pass_on(d);
  if (st) return st;
  assay_tensor_t* t = assay_context_output(d->context, d->logits);
  const size_t n = (size_t)assay_tensor_size(t);
  float* x = malloc(n * sizeof *x + 1);
  st = x ? assay_tensor_read(t, x, n * sizeof *x)
         : assay_status_create(ASSAY_NO_MEMORY, "no memory for logits");
  *out_next = 0;
  for (size_t i = 1; !st && i < n; i++)
    if (x[i] > x[*out_next]) *out_next = (int64_t)i;
  free(x);
  assay_tensor_release(t);
  d->position++;
  return st;
}

// ---- the program --------------------------------------------------------------------------------

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

// The middle of the times of positions [from, to), of which nothing is left in order.
static double median(double* times, int64_t from, int64_t to) {
  qsort(times + from, (size_t)(to - from), sizeof *times, compare);
  return times[(from + to) / 2];
}

static assay_status_t generate(decoder_t* d, int64_t steps) {
  int64_t token = 1;
  assay_status_t st = NULL;
  size_t made = 0;
  for (int64_t i = 0; !st && i < steps; i++) {
    st = step(d, token, &token);
    if (!st) printf("%lld ", (long long)token);
    if (i < 2) made = assay_context_kernels_made(d->context);
  }
  if (!st)
    printf("\nkernels made after two steps: %zu\n", assay_context_kernels_made(d->context) - made);
  return st;
}

static assay_status_t measure(decoder_t* d, int64_t steps) {
  double* times = malloc((size_t)steps * sizeof *times);
  size_t made = 0;
  int64_t token = 1;
  assay_status_t st = times ? NULL : assay_status_create(ASSAY_NO_MEMORY, "no memory for times");
  printf("%-12s %16s %14s\n", "positions", "ms a step", "kernels made");
  for (int64_t i = 0, from = 0; !st && i < steps; i++) {
    const double begin = milliseconds();
    st = step(d, token, &token);
    times[i] = milliseconds() - begin;
    // Ranges end at powers of two.
    if (st || ((i & (i + 1)) && i + 1 < steps)) continue;
    const size_t now = assay_context_kernels_made(d->context);
    printf("%5lld-%-6lld %16.3f %14zu\n", (long long)from + 1, (long long)i + 1,
           median(times, from, i + 1), now - made);
    made = now;
    from = i + 1;
  }
  free(times);
  return st;
}

int main(int argc, char** argv) {
  decoder_t d = {.anew = argc > 3 && strcmp(argv[3], "anew") == 0};
  const bool times = argc > 3;
  const long long steps = argc > 2 ? atoll(argv[2]) : 64;
  if (argc < 2 || argc > 4 || steps < 1 || steps > 1 << 20 ||
      (times && !d.anew && strcmp(argv[3], "times") != 0)) {
    fprintf(stderr, "usage: decode MODEL [STEPS [times|anew]]\n");
    return 2;
  }
  assay_status_t st = open_decoder(&d, argv[1], steps);
  if (!st) st = times ? measure(&d, steps) : generate(&d, steps);
  close_decoder(&d);
  if (!st) return 0;
  fprintf(stderr, "decode: %s\n", assay_status_message(st));
  assay_status_free(st);
  return 1;
}
