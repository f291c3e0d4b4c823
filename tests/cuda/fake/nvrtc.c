// A CUDA compiler without a GPU, for tests: gcc or clang on the kernel's text, behind a prelude for
// the host (kernel/prelude.h). It gives a shared object as the "cubin". What was compiled before
// lies in files of the build folder.
#include "backends/cuda/nvrtc.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "image.h"

#define EXPORT __attribute__((visibility("default")))
#define NVRTC_FUNCTION(name, parameters) EXPORT int name parameters;
#include "backends/cuda/nvrtc.inc"
#undef NVRTC_FUNCTION

extern char** environ;

// Numbers of nvrtc.h.
enum {
  NVRTC_OUT_OF_MEMORY = 1,
  NVRTC_INVALID_INPUT = 3,
  NVRTC_INVALID_OPTION = 5,
  NVRTC_INTERNAL = 11,
  MAX_WORDS = 128
};

typedef struct text {
  char *name, *text;
} text_t;

struct nvrtc_program {
  text_t* texts;  // the source, and headers
  int n;
  char* log;
  char* image;
  size_t image_bytes;
};

// ---- programs -----------------------------------------------------------------------------------

int nvrtcVersion(int* out_major, int* out_minor) {
  *out_major = 13;
  *out_minor = 0;
  return 0;
}

static bool add_text(nvrtc_program_t p, const char* name, const char* text) {
  text_t t = {strdup(name), strdup(text)};
  if (!t.name || !t.text) return free(t.name), free(t.text), false;
  p->texts[p->n++] = t;
  return true;
}

int nvrtcCreateProgram(nvrtc_program_t* out, const char* source, const char* name, int n_headers,
                       const char* const* headers, const char* const* header_names) {
  nvrtc_program_t p = calloc(1, sizeof *p);
  if (!source || !name || n_headers < 0) return free(p), NVRTC_INVALID_INPUT;
  bool good = p && (p->texts = calloc((size_t)n_headers + 1, sizeof *p->texts)) != NULL;
  good = good && add_text(p, name, source);
  for (int i = 0; good && i < n_headers; i++) good = add_text(p, header_names[i], headers[i]);
  if (!good) return nvrtcDestroyProgram(&p), NVRTC_OUT_OF_MEMORY;
  *out = p;
  return 0;
}

int nvrtcDestroyProgram(nvrtc_program_t* program) {
  nvrtc_program_t p = *program;
  if (!p) return 0;
  for (int i = 0; i < p->n; i++) free(p->texts[i].name), free(p->texts[i].text);
  free(p->texts);
  free(p->log);
  free(p->image);
  free(p);
  *program = NULL;
  return 0;
}

int nvrtcGetProgramLogSize(nvrtc_program_t program, size_t* out) {
  *out = (program->log ? strlen(program->log) : 0) + 1;
  return 0;
}

int nvrtcGetProgramLog(nvrtc_program_t program, char* out) {
  strcpy(out, program->log ? program->log : "");
  return 0;
}

int nvrtcGetCUBINSize(nvrtc_program_t program, size_t* out) {
  *out = program->image_bytes;
  return program->image ? 0 : NVRTC_INVALID_INPUT;
}

int nvrtcGetCUBIN(nvrtc_program_t program, char* out) {
  if (program->image) memcpy(out, program->image, program->image_bytes);
  return program->image ? 0 : NVRTC_INVALID_INPUT;
}

// ---- files --------------------------------------------------------------------------------------

static char* read_file(const char* path, size_t* out_bytes) {
  FILE* f = fopen(path, "rb");
  char* data = NULL;
  if (!f) return NULL;
  if (fseek(f, 0, SEEK_END) == 0) {
    const long n = ftell(f);
    rewind(f);
    data = n < 0 ? NULL : malloc((size_t)n + 1);
    if (data && fread(data, 1, (size_t)n, f) != (size_t)n) free(data), data = NULL;
    if (data) data[n] = 0, *out_bytes = (size_t)n;
  }
  fclose(f);
  return data;
}

// Names may have folders: "backends/vmath/uses.h".
static void make_folders(char* path, size_t from) {
  for (char* at = strchr(path + from, '/'); at; at = strchr(at + 1, '/')) {
    *at = 0;
    mkdir(path, 0777);
    *at = '/';
  }
}

static bool write_text(const char* folder, const char* name, const char* text) {
  char path[1024];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  make_folders(path, strlen(folder) + 1);
  FILE* f = fopen(path, "w");
  bool good = f && fputs(text, f) >= 0;
  if (f && fclose(f) != 0) good = false;
  return good;
}

// ---- keys ---------------------------------------------------------------------------------------

// FNV-1a
static uint64_t hash_text(uint64_t h, const char* text) {
  for (const char* c = text;; c++) {
    h = (h ^ (unsigned char)*c) * 0x100000001b3;
    if (!*c) return h;
  }
}

static uint64_t hash_file(uint64_t h, const char* name) {
  char path[1024];
  size_t bytes = 0;
  snprintf(path, sizeof path, "%s/%s", FAKE_KERNEL_FOLDER, name);
  char* text = read_file(path, &bytes);
  h = hash_text(h, text ? text : "");
  free(text);
  return h;
}

typedef struct words {
  const char* at[MAX_WORDS];
  int n;
} words_t;

static void add(words_t* w, const char* word) {
  if (w->n < MAX_WORDS - 1) w->at[w->n++] = word;
}

static uint64_t key_of(nvrtc_program_t p, const words_t* w) {
  uint64_t h = 0xcbf29ce484222325;
  for (int i = 0; i < w->n; i++) h = hash_text(h, w->at[i]);
  for (int i = 0; i < p->n; i++) h = hash_text(hash_text(h, p->texts[i].name), p->texts[i].text);
  static const char* const own[] = {"prelude.h", "engine.h", "formats.h", "accesses.c"};
  for (size_t i = 0; i < sizeof own / sizeof *own; i++) h = hash_file(h, own[i]);
  return h;
}

// ---- compiling ----------------------------------------------------------------------------------

// Runs a program, with what it says in a file. The process's own signals are not disturbed.
static int run(const words_t* w, const char* log) {
  posix_spawn_file_actions_t actions;
  pid_t child;
  int status = -1;
  char* argv[MAX_WORDS];
  for (int i = 0; i < w->n; i++) argv[i] = (char*)(uintptr_t)w->at[i];
  argv[w->n] = NULL;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, log, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  if (posix_spawnp(&child, argv[0], &actions, NULL, argv, environ) == 0)
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
      ;
  posix_spawn_file_actions_destroy(&actions);
  return status;
}

// The kernels' own prelude is not written: the host's is found instead.
static bool write_texts(nvrtc_program_t p, const char* folder) {
  bool good = true;
  for (int i = 0; good && i < p->n; i++)
    if (strcmp(p->texts[i].name, "prelude.h") != 0)
      good = write_text(folder, p->texts[i].name, p->texts[i].text);
  return good;
}

static void remove_texts(nvrtc_program_t p, const char* folder) {
  char path[1024];
  for (int i = 0; i < p->n; i++) {
    snprintf(path, sizeof path, "%s/%s", folder, p->texts[i].name);
    unlink(path);
  }
  snprintf(path, sizeof path, "%s/log", folder);
  unlink(path);
  snprintf(path, sizeof path, "%s/out.so", folder);
  unlink(path);
  for (int i = 0; i < p->n; i++)
    for (char* at = strrchr(p->texts[i].name, '/'); at; at = strrchr(p->texts[i].name, '/')) {
      *at = 0;
      snprintf(path, sizeof path, "%s/%s", folder, p->texts[i].name);
      rmdir(path);
    }
  rmdir(folder);
}

static int compile_in(nvrtc_program_t p, const words_t* words, const char* folder,
                      const char* out) {
  char include[1024], source[1024], made[1024], log[1024];
  size_t bytes = 0;
  words_t w = *words;
  snprintf(include, sizeof include, "-I%s", folder);
  snprintf(source, sizeof source, "%s/%s", folder, p->texts[0].name);
  snprintf(made, sizeof made, "%s/out.so", folder);
  snprintf(log, sizeof log, "%s/log", folder);
  if (!write_texts(p, folder)) return NVRTC_INTERNAL;
  add(&w, include);
  add(&w, "-o");
  add(&w, made);
  add(&w, source);
  add(&w, "-x");
  add(&w, "none");
#ifdef FAKE_ACCESSES
  add(&w, FAKE_ACCESSES);
#endif
  add(&w, "-lm");
  add(&w, "-lc");
  const int status = run(&w, log);
  p->log = read_file(log, &bytes);
  if (status != 0) return NVRTC_COMPILATION;
  return rename(made, out) == 0 ? 0 : NVRTC_INTERNAL;
}

// For whoever looks for an example of a program: ASSAY_FAKE_PROGRAMS names a folder for them.
static void keep_program(nvrtc_program_t p, uint64_t key) {
  const char* folder = getenv("ASSAY_FAKE_PROGRAMS");
  char name[64];
  snprintf(name, sizeof name, "%016llx.h", (unsigned long long)key);
  for (int i = 0; folder && i < p->n; i++)
    if (strcmp(p->texts[i].name, "program.h") == 0) write_text(folder, name, p->texts[i].text);
}

static int compile(nvrtc_program_t p, const words_t* w, const char* out) {
  char folder[] = FAKE_CACHE "/compile.XXXXXX";
  mkdir(FAKE_CACHE, 0777);
  if (!mkdtemp(folder)) return NVRTC_INTERNAL;
  const int r = compile_in(p, w, folder, out);
  remove_texts(p, folder);
  return r;
}

static int take_image(nvrtc_program_t p, const char* path, fake_image_t image) {
  size_t bytes = 0;
  char* data = read_file(path, &bytes);
  p->image_bytes = sizeof image + bytes;
  p->image = data ? malloc(p->image_bytes) : NULL;
  if (p->image) {
    memcpy(image.magic, FAKE_MAGIC, sizeof image.magic);
    image.bytes = bytes;
    memcpy(p->image, &image, sizeof image);
    memcpy(p->image + sizeof image, data, bytes);
  }
  free(data);
  return p->image ? 0 : NVRTC_INTERNAL;
}

// Options that the real one needs, and the architecture; false: unknown.
static bool take_option(const char* option, words_t* w, fake_image_t* image) {
  static const char* const others[] = {"--fmad=false", "--std=c++17",        "--device-int128",
                                       "--minimal",    "--ptxas-options=-v", "-default-device"};
  static const char arch[] = "--gpu-architecture=sm_";
  if (strncmp(option, "-D", 2) == 0) return add(w, option), true;
  if (strncmp(option, arch, sizeof arch - 1) == 0) {
    char* end;
    image->capability = (int32_t)strtol(option + sizeof arch - 1, &end, 10);
    image->is_special = *end == 'a';
    return image->capability >= 75;
  }
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (strcmp(option, others[i]) == 0) return true;
  return false;
}

int nvrtcCompileProgram(nvrtc_program_t p, int n_options, const char* const* options) {
  static const char* const fixed[] = {FAKE_COMPILER, "-I", FAKE_KERNEL_FOLDER, FAKE_FLAGS};
  words_t w = {.n = 0};
  fake_image_t image = {.capability = 0};
  char path[1024], arch[64];
  for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) add(&w, fixed[i]);
  for (int i = 0; i < n_options; i++)
    if (!take_option(options[i], &w, &image)) {
      free(p->log);
      p->log = malloc(strlen(options[i]) + 64);
      if (p->log) sprintf(p->log, "error: unrecognized option %s\n", options[i]);
      return NVRTC_INVALID_OPTION;
    }
  snprintf(arch, sizeof arch, "-D__CUDA_ARCH__=%d0", (int)image.capability);
  add(&w, arch);
  image.hash = key_of(p, &w);
  snprintf(path, sizeof path, "%s/%016llx.so", FAKE_CACHE, (unsigned long long)image.hash);
  keep_program(p, image.hash);
  const int r = access(path, R_OK) == 0 ? 0 : compile(p, &w, path);
  return r ? r : take_image(p, path, image);
}
