// Rough and fine forms of functions (kernels/rough.h): what they settle is what the function's
// results round to. On the platform without a GPU (fake/), whose exponential and reciprocal are as
// wrong as they may be, of a sample of all float32; on a real one of all.
#include "platform_case.h"
#include "seed_case.h"

typedef struct rough_args {
  uint64_t counts;
  uint32_t first, step;
  float parameter;
} rough_args_t;

typedef struct rough_row {
  const char* function;
  float parameter;
} rough_row_t;

static const rough_row_t rows[] = {{"SIGMOID", 0},     {"SWISH", 1},        {"SWISH", 1.702F},
                                   {"SWISH", 0.0625F}, {"SWISH", 16},       {"SWISH", -1},
                                   {"SHORT_SWISH", 1}, {"SHORT_SWISH", 20}, {"GELU", 0},
                                   {"SHORT_GELU", 0},  {"GELU_TANH", 0},    {"SHORT_GELU_TANH", 0}};
static const char* const uses[][2] = {{"half", "f32_to_f16"}, {"bf16", "f32_to_bf16"}};

enum { THREADS = 256 };

// So many inputs from these bits on; on a real GPU all.
typedef struct range {
  uint32_t first, bits, blocks;
} range_t;
// All; and where activations lie, of either sign, since few of all float32 do.
static const range_t ranges[] = {
    {0, UINT32_MAX, 1 << 6}, {0x3a000000, 0x07000000, 1 << 7}, {0xba000000, 0x07000000, 1 << 7}};
enum { RANGES = sizeof ranges / sizeof *ranges };
static const range_t all = {0, UINT32_MAX, 1 << 24};

// Of those with magnitudes from 0.01 to 4 about 1 in 300 is open, and finely 1 in 50,000.
typedef struct rough_form {
  const char* name;
  double max_open;
} rough_form_t;
static const rough_form_t forms[] = {{"", 0.01}, {"fine ", 0.0001}};

static void check_range(platform_t* p, cuda_kernel_t k, const rough_row_t* row,
                        const rough_form_t* form, const range_t* r, uint32_t seed) {
  uint32_t counts[3] = {0};
  const uint64_t n = (uint64_t)r->blocks * THREADS;
  const uint32_t step = (uint32_t)(((uint64_t)r->bits + 1) / n);
  const rough_args_t args = {upload(p, counts, sizeof counts), r->first + seed % step, step,
                             row->parameter};
  const cuda_grid_t grid = {.blocks = r->blocks, .threads = THREADS};
  ok(cuda_queue_launch(p->queue, k, &grid, &args));
  ok(driver->download(p->queue, args.counts, counts, sizeof counts));
  print_message("%s%s %g: %llu from %08x on: %u wrong, %u of %u near 0 open\n", form->name,
                row->function, (double)row->parameter, (unsigned long long)n, args.first, counts[0],
                counts[1], counts[2]);
  if (counts[0]) fail_msg("inputs are settled wrongly");
  if (row->parameter >= 0 && row->parameter <= 16 && counts[1] > form->max_open * counts[2] + 1)
    fail_msg("too many are open");
  driver->free(p->queue, args.counts);
  ok(driver->queue_wait(p->queue, NULL));
}

static void check_row(platform_t* p, const char* text, const rough_row_t* row,
                      const rough_form_t* form, int use, uint32_t seed) {
  char options[256];
  snprintf(options, sizeof options, "-DUSE=%s -DFINE=%d -DFUNCTION=%s -DTO_16=%s", uses[use][0],
           form == &forms[1], row->function, uses[use][1]);
  cuda_module_t m = load_text(p, text, options);
  cuda_kernel_t k = get_kernel(p, m, "rough", 0);
  print_message("%s ", uses[use][0]);
  if (!fake) check_range(p, k, row, form, &all, 0);
  for (int i = 0; fake && i < RANGES; i++) check_range(p, k, row, form, &ranges[i], seed);
  cuda_module_unload(p->device, m);
}

static void what_is_settled_is_right(void** state) {
  (void)state;
  platform_t p;
  char* text = kernel_text("rough.cu");
  const uint32_t seed = (uint32_t)(test_seed() * 0x9e3779b97f4a7c15u >> 32);
  platform_init(&p);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    for (int use = 0; use < 2; use++)
      for (int form = 0; form < 2; form++) check_row(&p, text, &rows[i], &forms[form], use, seed);
  platform_deinit(&p);
  free(text);
}

int main(void) {
  find_platform();
  const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_settled_is_right)};
  return cmocka_run_group_tests_name("cuda_rough", tests, NULL, NULL);
}
