// Modules: what the compiler without a GPU (nvrtc.c) made, a shared object behind a line of text.
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "image.h"
#include "internal.h"

struct cuda_module {
  char path[512];
  pthread_mutex_t lock;
  code_t copies[MAX_COPIES];
  struct cuda_kernel* kernels;
};

// ---- loading ------------------------------------------------------------------------------------

static bool write_file(const char* path, const void* data, size_t bytes) {
  char temporary[600];
  snprintf(temporary, sizeof temporary, "%s.%d", path, (int)getpid());
  FILE* f = fopen(temporary, "wb");
  bool good = f && fwrite(data, 1, bytes, f) == bytes;
  if (f && fclose(f) != 0) good = false;
  if (good) good = rename(temporary, path) == 0;
  if (!good) unlink(temporary);
  return good;
}

// Where shared memory lies: the section that prelude.h puts it into.
static void find_shared(const char* elf, size_t bytes, code_t* c) {
  const Elf64_Ehdr* h = (const void*)elf;
  if (bytes < sizeof *h || h->e_shoff + (size_t)h->e_shnum * sizeof(Elf64_Shdr) > bytes) return;
  const Elf64_Shdr* sections = (const void*)(elf + h->e_shoff);
  const char* names = elf + sections[h->e_shstrndx].sh_offset;
  for (int i = 0; i < h->e_shnum; i++)
    if (strcmp(names + sections[i].sh_name, "shared.memory") == 0) {
      c->shared = c->image + sections[i].sh_addr;
      c->shared_bytes = sections[i].sh_size;
    }
}

static int find_image(struct dl_phdr_info* info, size_t bytes, void* user) {
  (void)bytes;
  code_t* c = user;
  if (info->dlpi_addr != (uintptr_t)c->image) return 0;
  for (int i = 0; i < info->dlpi_phnum; i++)
    if (info->dlpi_phdr[i].p_type == PT_LOAD) {
      const size_t end = info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz;
      if (c->image_bytes < end) c->image_bytes = end;
    }
  return 1;
}

static bool open_code(const char* path, code_t* c) {
  struct link_map* map = NULL;
  c->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!c->library) return fprintf(stderr, "a module cannot be loaded: %s\n", dlerror()), false;
  fake_engine_t* engine = dlsym(c->library, "fake_engine");
  if (!engine || dlinfo(c->library, RTLD_DI_LINKMAP, &map) != 0) return false;
  *engine = fake_engine_of_lanes;
  c->image = (char*)map->l_addr;  // NOLINT(performance-no-int-to-ptr)
  dl_iterate_phdr(find_image, c);
  return true;
}

static char* read_file(const char* path, size_t* out_bytes) {
  FILE* f = fopen(path, "rb");
  char* data = NULL;
  if (!f) return NULL;
  if (fseek(f, 0, SEEK_END) == 0) {
    const long n = ftell(f);
    data = n > 0 ? malloc((size_t)n) : NULL;
    rewind(f);
    if (data && fread(data, 1, (size_t)n, f) != (size_t)n) free(data), data = NULL;
    *out_bytes = (size_t)n;
  }
  fclose(f);
  return data;
}

// Copy 0 is the file itself; the loader takes a file for loaded already, so others are files, too.
// A kernel without shared memory needs no copies.
static bool load_copy(cuda_module_t m, int copy) {
  size_t bytes = 0;
  char path[600];
  char* elf = read_file(m->path, &bytes);
  if (!elf) return false;
  code_t* c = &m->copies[copy];
  snprintf(path, sizeof path, "%s", m->path);
  if (copy) snprintf(path, sizeof path, "%s.copy%d", m->path, copy);
  bool good = access(path, R_OK) == 0 || write_file(path, elf, bytes);
  good = good && open_code(path, c);
  if (good) find_shared(elf, bytes, c);
  free(elf);
  return good;
}

const code_t* module_code(cuda_module_t m, int copy) {
  if (copy < 0 || copy >= MAX_COPIES) return NULL;
  pthread_mutex_lock(&m->lock);
  if (!m->copies[0].shared_bytes) copy = 0;
  if (!m->copies[copy].library && !load_copy(m, copy)) copy = -1;
  pthread_mutex_unlock(&m->lock);
  return copy < 0 ? NULL : &m->copies[copy];
}

const fake_kernel_t* code_kernel(const code_t* c, const char* name) {
  char symbol[160];
  snprintf(symbol, sizeof symbol, "fake_kernel_%s", name);
  return dlsym(c->library, symbol);
}

const char* module_path(cuda_module_t m) { return m->path; }

static void unload(cuda_module_t m) {
  for (int i = 0; i < MAX_COPIES; i++)
    if (m->copies[i].library) dlclose(m->copies[i].library);
  for (struct cuda_kernel *k = m->kernels, *next; k; k = next) {
    next = k->next;
    gone(k);
  }
  pthread_mutex_destroy(&m->lock);
  gone(m);
}

// ---- the driver's functions ---------------------------------------------------------------------

// Code for a GPU: whatever is asked of it is there.
static cuda_result_t load_dry(cuda_module_t* out, const void* code) {
  if (memcmp(code, ELFMAG, SELFMAG) != 0) return INVALID_IMAGE;
  cuda_module_t m = made(sizeof *m);
  if (!m) return CUDA_OUT_OF_MEMORY;
  pthread_mutex_init(&m->lock, NULL);
  *out = m;
  return 0;
}

cuda_result_t cuModuleLoadData(cuda_module_t* out, const void* code) {
  CALLED(true);
  fake_image_t image;
  if (fake.state.dry) return load_dry(out, code);
  memcpy(&image, code, sizeof image);
  if (memcmp(image.magic, FAKE_MAGIC, sizeof image.magic) != 0) return INVALID_IMAGE;
  // Code runs on later GPUs of the same major version; that of "sm_90a" on no other.
  if (image.capability / 10 != fake.state.capability / 10 ||
      image.capability > fake.state.capability ||
      (image.is_special && image.capability != fake.state.capability))
    return NO_BINARY_FOR_GPU;
  cuda_module_t m = made(sizeof *m);
  if (!m) return CUDA_OUT_OF_MEMORY;
  pthread_mutex_init(&m->lock, NULL);
  mkdir(FAKE_CACHE, 0777);
  snprintf(m->path, sizeof m->path, "%s/%016llx.so", FAKE_CACHE, (unsigned long long)image.hash);
  const char* elf = (const char*)code + sizeof image;
  if ((access(m->path, R_OK) != 0 && !write_file(m->path, elf, image.bytes)) || !load_copy(m, 0))
    return unload(m), INVALID_IMAGE;
  *out = m;
  return 0;
}

cuda_result_t cuModuleUnload(cuda_module_t module) {
  unload(module);
  CALLED(true);
  return 0;
}

static cuda_kernel_t kernel_before(cuda_module_t module, const char* name) {
  pthread_mutex_lock(&module->lock);
  cuda_kernel_t k = module->kernels;
  while (k && strcmp(k->name, name) != 0) k = k->next;
  pthread_mutex_unlock(&module->lock);
  return k;
}

// The same one whoever asks.
cuda_result_t cuModuleGetFunction(cuda_kernel_t* out, cuda_module_t module, const char* name) {
  CALLED(true);
  static const fake_kernel_t dry = {.max_threads = 1024};
  const fake_kernel_t* found = fake.state.dry ? &dry : code_kernel(&module->copies[0], name);
  if (!found || strlen(name) >= sizeof(*out)->name) return NOT_FOUND;
  cuda_kernel_t k = kernel_before(module, name);
  if (k) return *out = k, 0;
  k = made(sizeof *k);
  if (!k) return CUDA_OUT_OF_MEMORY;
  k->module = module;
  k->kernel = *found;
  k->max_dynamic = SHARED_OF_ALL;
  k->shared_bytes = module->copies[0].shared_bytes;
  snprintf(k->name, sizeof k->name, "%s", name);
  pthread_mutex_lock(&module->lock);
  k->next = module->kernels;
  module->kernels = k;
  pthread_mutex_unlock(&module->lock);
  *out = k;
  return 0;
}

cuda_result_t cuFuncGetAttribute(int* out, int attribute, cuda_kernel_t kernel) {
  CALLED(true);
  if (attribute != CUDA_FUNCTION_DYNAMIC_SHARED) return INVALID_VALUE;
  // Without asking, what the kernel declares itself is taken off of it.
  *out = kernel->asked_for ? kernel->max_dynamic : SHARED_OF_ALL - (int)kernel->shared_bytes;
  return 0;
}

cuda_result_t cuFuncSetAttribute(cuda_kernel_t kernel, int attribute, int value) {
  CALLED(true);
  if (attribute != CUDA_FUNCTION_DYNAMIC_SHARED || value < 0 || value > MAX_SHARED)
    return INVALID_VALUE;
  kernel->max_dynamic = value;
  kernel->asked_for = true;
  return 0;
}
