// assay --version: what this is, what it is made of, and for which CPU.
#include <omp.h>
#include <stdio.h>
#include <string.h>

#include "base/shown.h"
#include "cli/cli.h"
#include "exec/targets.h"
#include "ops/libraries.h"

static bool has_word(const char* text, const char* word) {
  const size_t n = strlen(word);
  for (const char* at = text; (at = strstr(at, word)); at += n)
    if ((at == text || at[-1] == ' ') && (at[n] == ' ' || at[n] == '\n' || !at[n])) return true;
  return false;
}

// What the system says of the first CPU's name and features that kernels are made for; on a machine
// that does not say it so, nothing.
static void print_cpu(void) {
  static const char* const features[] = {
      "sse4_2",      "avx",      "avx2",     "fma",      "f16c",        "avx_vnni",
      "avx512f",     "avx512bw", "avx512dq", "avx512vl", "avx512_vnni", "avx512_bf16",
      "avx512_fp16", "amx_tile", "amx_int8", "amx_bf16", "amx_fp16",    "asimd",
      "asimddp",     "bf16",     "i8mm",     "sve",      "sve2"};
  char line[8192];
  bool named = false, listed = false;
  FILE* f = fopen("/proc/cpuinfo", "r");
  if (!f) return;
  while (!(named && listed) && fgets(line, sizeof line, f)) {
    const char* colon = strchr(line, ':');
    if (!colon) continue;
    const char* value = colon[1] == ' ' ? colon + 2 : colon + 1;
    line[strcspn(line, "\n")] = 0;
    if (!named && strncmp(line, "model name", 10) == 0) {
      assay_print(stdout, "cpu        %s\n", value);
      named = true;
    } else if (!listed && (strncmp(line, "flags", 5) == 0 || strncmp(line, "Features", 8) == 0)) {
      printf("features  ");
      for (size_t i = 0; i < sizeof features / sizeof *features; i++)
        if (has_word(value, features[i])) assay_print(stdout, " %s", features[i]);
      putchar('\n');
      listed = true;
    }
  }
  fclose(f);
}

void assay_cli_print_version(void) {
  const assay_backend_t* b;
  assay_str_t text = {0};
  puts("assay " ASSAY_VERSION);
  assay_ops_describe_libraries(&text);
  assay_print(stdout, "libraries  %s, Jansson %s\n", assay_str_get(&text), jansson_version_str());
  assay_str_deinit(&text);
  for (size_t i = 0; (b = assay_target_at(i)); i++) {
    text = (assay_str_t){0};
    assay_target_describe(b, &text);
    assay_print(stdout, "target     %s%s%s\n", b->name, text.len ? ": " : "", assay_str_get(&text));
    assay_str_deinit(&text);
  }
  printf("threads    %d\n", omp_get_max_threads());
  print_cpu();
}
