// NVIDIA's run-time compiler.
#include "backends/cuda/nvrtc.h"

#include <pthread.h>
#include <string.h>

#include "backends/cuda/api.h"
#include "backends/cuda/kernels.h"
#include "backends/cuda/library.h"
#include "base/alloc.h"
#include "base/shown.h"

enum { MAX_HEADERS = 128, MAX_OPTIONS = 48, LOG_BYTES = 1500 };

static struct {
  pthread_mutex_t lock;
  bool opened;
  cuda_compiler_t api;
} compiler = {.lock = PTHREAD_MUTEX_INITIALIZER};

// ---- opening ------------------------------------------------------------------------------------

static assay_status_t find_all(void* library, cuda_compiler_t* c) {
#define NVRTC_FUNCTION(name, parameters)                                                        \
  {                                                                                             \
    union {                                                                                     \
      void* symbol;                                                                             \
      int(*function) parameters;                                                                \
    } found = {cuda_library_symbol(library, #name)};                                            \
    if (!found.symbol)                                                                          \
      return ASSAY_ERROR(ASSAY_DEVICE, "the CUDA compiler has no function '%s': it is too old", \
                         #name);                                                                \
    c->name = found.function;                                                                   \
  }
#include "backends/cuda/nvrtc.inc"
#undef NVRTC_FUNCTION
  if (c->nvrtcVersion(&c->major, &c->minor) != 0)
    return ASSAY_ERROR(ASSAY_DEVICE, "the CUDA compiler does not say its version");
  return NULL;
}

static assay_status_t open_compiler(int driver_version, cuda_compiler_t* c) {
  static const char* const newest[] = {"libnvrtc.so.13", "libnvrtc.so.12", NULL};
  const char* const* names = driver_version >= 13000 ? newest : newest + 1;
  assay_str_t looked = {0};
  void* library = cuda_library_open(names, &looked);
  assay_status_t st = assay_str_status(&looked);
  if (!st && !library)
    st = ASSAY_ERROR(ASSAY_DEVICE,
                     "plans for a GPU can be run, not built: %s was not found (looked %s); it "
                     "comes with the CUDA toolkit, or in the Python package %s",
                     names[0], assay_str_get(&looked),
                     driver_version >= 13000 ? "nvidia-cuda-nvrtc" : "nvidia-cuda-nvrtc-cu12");
  assay_str_deinit(&looked);
  return st ? st : find_all(library, c);
}

assay_status_t cuda_compiler_get(int driver_version, const cuda_compiler_t** out) {
  assay_status_t st = NULL;
  pthread_mutex_lock(&compiler.lock);
  if (!compiler.opened) st = open_compiler(driver_version, &compiler.api);
  compiler.opened |= !st;
  pthread_mutex_unlock(&compiler.lock);
  *out = st ? NULL : &compiler.api;
  return st;
}

// ---- compiling ----------------------------------------------------------------------------------

typedef struct headers {
  const char *texts[MAX_HEADERS], *names[MAX_HEADERS];
  int n;
} headers_t;

static assay_status_t collect(const cuda_compilation_t* what, headers_t* h) {
  const cuda_kernel_file_t* f;
  for (size_t i = 0; (f = cuda_kernel_file_at(i)) != NULL; i++) {
    const size_t length = strlen(f->name);
    if (length > 3 && strcmp(f->name + length - 3, ".cu") == 0) continue;
    if (h->n == MAX_HEADERS - 1)
      return ASSAY_ERROR(ASSAY_INTERNAL, "kernels have more than %d headers", MAX_HEADERS - 1);
    h->texts[h->n] = f->text;
    h->names[h->n++] = f->name;
  }
  if (what->program) {
    h->texts[h->n] = what->program;
    h->names[h->n++] = "program.h";
  }
  return NULL;
}

// Splits the words of `text` (which is changed) and puts them behind the others.
static assay_status_t add_words(char* text, const char** options, int* n) {
  char* rest = NULL;
  for (char* word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
    if (*n == MAX_OPTIONS)
      return ASSAY_ERROR(ASSAY_INTERNAL, "a kernel has more than %d options", MAX_OPTIONS);
    options[(*n)++] = word;
  }
  return NULL;
}

static void read_log(const cuda_compiler_t* c, nvrtc_program_t p, assay_str_t* out) {
  size_t bytes = 0;
  char* text = NULL;
  if (c->nvrtcGetProgramLogSize(p, &bytes) != 0 || bytes < 2) return;
  text = assay_malloc(bytes);
  if (text && c->nvrtcGetProgramLog(p, text) == 0) assay_str_append(out, text);
  assay_free(text);
}

// The first complaints are what the others follow from.
static assay_status_t failed(const cuda_compilation_t* what, int result, const assay_str_t* log) {
  char first[LOG_BYTES];
  snprintf(first, sizeof first, "%s", assay_str_get(log));
  return ASSAY_ERROR(ASSAY_INTERNAL, "the CUDA compiler refuses '%s' with '%s' (%d):\n" ASSAY_LINES,
                     what->file, what->options, result, first);
}

static assay_status_t take_code(const cuda_compiler_t* c, nvrtc_program_t p, void** out,
                                size_t* out_bytes) {
  size_t bytes = 0;
  if (c->nvrtcGetCUBINSize(p, &bytes) != 0 || !bytes)
    return ASSAY_ERROR(ASSAY_INTERNAL, "the CUDA compiler gave no code");
  char* code = assay_malloc(bytes);
  if (!code) return assay_status_no_memory();
  if (c->nvrtcGetCUBIN(p, code) != 0) {
    assay_free(code);
    return ASSAY_ERROR(ASSAY_INTERNAL, "the CUDA compiler gave no code");
  }
  *out = code;
  *out_bytes = bytes;
  return NULL;
}

static assay_status_t compile(const cuda_compiler_t* c, const cuda_compilation_t* what,
                              const char* const* options, int n_options, void** out,
                              size_t* out_bytes, assay_str_t* log) {
  const cuda_kernel_file_t* file = cuda_kernel_file_find(what->file);
  headers_t h = {.n = 0};
  nvrtc_program_t program = NULL;
  if (!file) return ASSAY_ERROR(ASSAY_INTERNAL, "there is no kernel file '%s'", what->file);
  ASSAY_TRY(collect(what, &h));
  if (c->nvrtcCreateProgram(&program, file->text, file->name, h.n, h.texts, h.names) != 0)
    return ASSAY_ERROR(ASSAY_NO_MEMORY, "the CUDA compiler could not be started");
  const int result = c->nvrtcCompileProgram(program, n_options, options);
  read_log(c, program, log);
  assay_status_t st = result ? failed(what, result, log) : take_code(c, program, out, out_bytes);
  (void)c->nvrtcDestroyProgram(&program);
  return st;
}

assay_status_t cuda_compile(const cuda_compiler_t* c, const cuda_compilation_t* what, void** out,
                            size_t* out_bytes, assay_str_t* log) {
  const char* options[MAX_OPTIONS];
  int n = 0;
  assay_str_t arch = {0}, words = {0}, own_log = {0};
  *out = NULL;
  // Instructions of one architecture alone (wgmma) need its own target.
  assay_str_printf_raw(&arch, "--gpu-architecture=sm_%d%s", what->capability,
                       what->capability >= 90 ? "a" : "");
  assay_str_printf(&words, CUDA_COMPILER_OPTIONS " %s", what->options);
  assay_status_t st = assay_status_join(assay_str_status(&arch), assay_str_status(&words));
  if (!st) {
    options[n++] = assay_str_get(&arch);
    if (c->major >= 13) options[n++] = "--minimal";  // a fifth faster
    st = add_words(words.text, options, &n);
  }
  if (!st) st = compile(c, what, options, n, out, out_bytes, log ? log : &own_log);
  assay_str_deinit(&own_log);
  assay_str_deinit(&words);
  assay_str_deinit(&arch);
  return st;
}
