// What numbers and times depend on besides the model: this machine's state, and two compared.
#include "report/environment.h"

#include <fenv.h>
#include <float.h>
#include <omp.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>
#if defined __x86_64__
#include <xmmintrin.h>
#endif

#include "base/shown.h"
#include "exec/targets.h"
#include "io/json.h"
#include "ops/libraries.h"

#define SCHEMA "assay.debug.environment/1"

extern char** environ;

static json_t* put(json_t* list, const char* key, const char* value, bool numbers) {
  return assay_json_push(list, json_pack("{s:o, s:o, s:b}", "key", assay_json_text(key), "value",
                                         assay_json_text(value), "numbers", (int)numbers));
}

static json_t* put_number(json_t* list, const char* key, long long value, bool numbers) {
  char text[32];
  snprintf(text, sizeof text, "%lld", value);
  return put(list, key, text, numbers);
}

// ---- versions -----------------------------------------------------------------------------------

static json_t* put_versions(json_t* list) {
  struct utsname u;
  assay_str_t text = {0};
  assay_ops_describe_libraries(&text);
  list = put(list, "assay", ASSAY_VERSION, true);
  list = put(list, "libraries", assay_str_get(&text), true);
  assay_str_deinit(&text);
  const assay_backend_t* b;
  for (size_t i = 0; (b = assay_target_at(i)); i++) {
    char key[32];
    text = (assay_str_t){0};
    snprintf(key, sizeof key, "target %s", b->name);
    assay_target_describe(b, &text);
    if (text.len) list = put(list, key, assay_str_get(&text), true);
    assay_str_deinit(&text);
  }
  if (uname(&u) == 0) list = put(list, "system", u.release, false);
  return list;
}

// ---- processor ----------------------------------------------------------------------------------

// Lines of /proc/cpuinfo, of its first processor; a machine without has none.
static json_t* put_cpu(json_t* list) {
  static const struct {
    const char *line, *key;
    bool numbers;
  } lines[] = {
      {"model name", "cpu", false}, {"flags", "cpu flags", true}, {"Features", "cpu flags", true}};
  char line[8192];
  FILE* f = fopen("/proc/cpuinfo", "r");
  while (f && fgets(line, sizeof line, f) && *line != '\n') {
    char* colon = strchr(line, ':');
    line[strcspn(line, "\n")] = 0;
    for (size_t i = 0; colon && i < sizeof lines / sizeof *lines; i++)
      if (strncmp(line, lines[i].line, strlen(lines[i].line)) == 0)
        list = put(list, lines[i].key, colon + 1 + (colon[1] == ' '), lines[i].numbers);
  }
  if (f) fclose(f);
#ifdef _SC_LEVEL1_DCACHE_SIZE
  list = put_number(list, "cache L1", sysconf(_SC_LEVEL1_DCACHE_SIZE), false);
  list = put_number(list, "cache L2", sysconf(_SC_LEVEL2_CACHE_SIZE), false);
  list = put_number(list, "cache L3", sysconf(_SC_LEVEL3_CACHE_SIZE), false);
#endif
  return list;
}

// ---- arithmetic ---------------------------------------------------------------------------------

static const char* rounding_mode(void) {
  switch (fegetround()) {
    case FE_TONEAREST:
      return "to nearest";
    case FE_UPWARD:
      return "upward";
    case FE_DOWNWARD:
      return "downward";
    default:
      return "towards zero";
  }
}

// Flush-to-zero (1), denormals-are-zero (2), rounding (4, 8), seen by computing where there is no
// register to be read.
static unsigned thread_state(void) {
#if defined __x86_64__
  const unsigned r = _mm_getcsr();
  return (r >> 15 & 1) | (r >> 5 & 2) | (r >> 11 & 12);
#else
  volatile float small = FLT_MIN, half = 0.5F;
  return small * half == 0 ? 3 : 0;
#endif
}

static json_t* put_arithmetic(json_t* list) {
  const unsigned own = thread_state();
  int others = 0;
#pragma omp parallel reduction(+ : others)
  others += thread_state() != own;
  list = put(list, "rounding mode", rounding_mode(), true);
  list = put(list, "flush to zero", own & 1 ? "on" : "off", true);
  list = put(list, "denormals are zero", own & 2 ? "on" : "off", true);
  list = put_number(list, "threads of another state", others, true);
  return put(list, "tf32", "only where --precision tf32 asks for it", true);
}

static json_t* put_threads(json_t* list) {
  cpu_set_t set;
  assay_str_t cpus = {0};
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    for (size_t i = 0; i < CPU_SETSIZE; i++)
      if (CPU_ISSET(i, &set)) assay_str_printf(&cpus, "%s%zu", cpus.len ? "," : "", i);
  list = put_number(list, "threads", omp_get_max_threads(), false);
  list = put_number(list, "processors", omp_get_num_procs(), false);
  list = put(list, "affinity", assay_str_get(&cpus), false);
  assay_str_deinit(&cpus);
  list =
      put_number(list, "memory", (long long)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE), false);
  return list;
}

// ---- variables ----------------------------------------------------------------------------------

static const struct {
  const char* prefix;
  bool numbers;  // kernels are chosen by it, or arithmetic is set
} variables[] = {
    {"DNNL_", true},       {"ONEDNN_", true},  {"OPENBLAS_", true},      {"ATEN_CPU_", true},
    {"NVIDIA_TF32", true}, {"ASSAY_", true},   {"OMP_", false},          {"KMP_", false},
    {"GOMP_", false},      {"MALLOC_", false}, {"GLIBC_TUNABLES", true}, {"LD_PRELOAD", true},
};

// In the order of the table, so that files of two machines read alike.
static json_t* put_variables(json_t* list) {
  for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
    for (char** e = environ; *e; e++) {
      char key[128];
      const char* equals = strchr(*e, '=');
      if (!equals || strncmp(*e, variables[i].prefix, strlen(variables[i].prefix)) != 0) continue;
      snprintf(key, sizeof key, "$%.*s", (int)(equals - *e), *e);
      list = put(list, key, equals + 1, variables[i].numbers);
    }
  }
  return list;
}

assay_status_t assay_environment_collect(json_t** out) {
  json_t* list = put_versions(json_array());
  list = put_variables(put_threads(put_arithmetic(put_cpu(list))));
  json_t* j = json_pack("{s:s, s:o}", "schema", SCHEMA, "entries", list);
  if (!j) return assay_status_no_memory();
  *out = j;
  return NULL;
}

// ---- telling ------------------------------------------------------------------------------------

static const char* text_of(const json_t* e, const char* key) {
  const char* t = json_string_value(json_object_get(e, key));
  return t ? t : "";
}

// At most 15 lines: what can change results, one a line, and the rest in one.
assay_status_t assay_environment_text(const json_t* j, assay_str_t* out) {
  enum { WIDTH = 100 };
  const json_t* list = json_object_get(j, "entries");
  assay_str_t rest = {0};
  for (size_t i = 0; i < json_array_size(list); i++) {
    const json_t* e = json_array_get(list, i);
    const char *key = text_of(e, "key"), *value = text_of(e, "value");
    if (json_is_true(json_object_get(e, "numbers")) && *key != '$')
      assay_str_printf(out, "%-24s  %.*s%s\n", key, WIDTH, value,
                       strlen(value) > WIDTH ? " ..." : "");
    else
      assay_str_printf(&rest, "%s%s=%s", rest.len ? "; " : "", key, value);
  }
  assay_str_printf(out, "%-24s  " ASSAY_LINES "\n", "besides", assay_str_get(&rest));
  assay_str_deinit(&rest);
  return assay_str_status(out);
}

// ---- comparing ----------------------------------------------------------------------------------

static const json_t* find(const json_t* j, const char* key) {
  const json_t* list = json_object_get(j, "entries");
  for (size_t i = 0; i < json_array_size(list); i++)
    if (strcmp(text_of(json_array_get(list, i), "key"), key) == 0) return json_array_get(list, i);
  return NULL;
}

static bool has_word(const char* text, const char* word, size_t n) {
  for (const char* at = text; (at = strstr(at, word)); at += n) {
    if ((at == text || at[-1] == ' ') && (at[n] == ' ' || !at[n])) return true;
    if (!n) break;
  }
  return false;
}

// Of two lists of words, those that only the first has.
static void words_of_one(const char* of, const char* not_in, assay_str_t* out) {
  char word[64];
  int used;
  for (const char* p = of; sscanf(p, " %63s%n", word, &used) == 1; p += used)
    if (!has_word(not_in, word, strlen(word))) assay_str_printf(out, " %s", word);
}

static void report(const char* key, const char* a, const char* b, assay_str_t* out) {
  if (strcmp(key, "cpu flags") != 0) {
    assay_str_printf(out, "  %-24s  %.60s  |  %.60s\n", key, *a ? a : "(not set)",
                     *b ? b : "(not set)");
    return;
  }
  assay_str_printf(out, "  %-24s  only the first:", key);
  words_of_one(a, b, out);
  assay_str_append(out, "; only the second:");
  words_of_one(b, a, out);
  assay_str_append(out, "\n");
}

static bool is_environment(const json_t* j) { return strcmp(text_of(j, "schema"), SCHEMA) == 0; }

// Entries of one file against the other's; those that both have are told for the first.
static json_t* differences(const json_t* of, const json_t* to, bool first, json_t* list) {
  const json_t* entries = json_object_get(of, "entries");
  for (size_t i = 0; i < json_array_size(entries); i++) {
    const json_t* e = json_array_get(entries, i);
    const json_t* other = find(to, text_of(e, "key"));
    const char *own = text_of(e, "value"), *its = other ? text_of(other, "value") : "";
    if ((other && (!first || strcmp(own, its) == 0))) continue;
    list = assay_json_push(
        list,
        json_pack("{s:o, s:o, s:o, s:o}", "key", assay_json_text(text_of(e, "key")), "first",
                  assay_json_text(first ? own : its), "second", assay_json_text(first ? its : own),
                  "numbers", json_boolean(json_is_true(json_object_get(e, "numbers")))));
  }
  return list;
}

assay_status_t assay_environment_difference(const json_t* a, const json_t* b, assay_str_t* out,
                                            json_t** out_json, bool* out_numbers) {
  if (!is_environment(a) || !is_environment(b))
    return ASSAY_ERROR(ASSAY_CORRUPT,
                       "one of the files is not what 'debug environment --json' writes");
  json_t* list = differences(b, a, false, differences(a, b, true, json_array()));
  size_t n = 0, all = json_array_size(list), shown = 0;
  for (size_t i = 0; i < all; i++)
    n += json_is_true(json_object_get(json_array_get(list, i), "numbers"));
  assay_str_printf(out, "%s  %zu entries differ, %zu of them can change numbers\n",
                   n     ? "DIFFERENT"
                   : all ? "ALIKE"
                         : "EQUAL",
                   all, n);
  for (int pass = 1; pass >= 0; pass--) {
    for (size_t i = 0; i < all; i++) {
      const json_t* e = json_array_get(list, i);
      if (json_is_true(json_object_get(e, "numbers")) != pass || shown++ >= 12) continue;
      report(text_of(e, "key"), text_of(e, "first"), text_of(e, "second"), out);
    }
  }
  if (shown > 12) assay_str_printf(out, "  and %zu more (--json has them all)\n", shown - 12);
  json_t* j = json_pack("{s:s, s:b, s:o}", "schema", "assay.debug.environment.compare/1", "numbers",
                        (int)(n > 0), "differences", list);
  if (!j) return assay_status_no_memory();
  *out_json = j;
  *out_numbers = n > 0;
  return assay_str_status(out);
}
