// The command line: verbs and options are rows of tables; parsing and help come from them.
#ifndef ASSAY_CLI_CLI_H_
#define ASSAY_CLI_CLI_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/str.h"
#include "io/json.h"

// Exit codes: scripts rely on them.
enum {
  ASSAY_EXIT_OK = 0,          // faithful, passed, done
  ASSAY_EXIT_UNFAITHFUL = 1,  // not faithful, or cases failed
  ASSAY_EXIT_USAGE = 2,
  ASSAY_EXIT_INPUT = 3,   // an input is unreadable or not valid ONNX
  ASSAY_EXIT_FAILED = 4,  // could not be carried out: no memory, no device, limit, internal
};

typedef enum opt_kind {
  OPT_FLAG,    // bool
  OPT_STRING,  // const char*
  // const char*, and a path that is written: it is checked before the verb runs (output_paths.h).
  OPT_OUT_FILE,    // "-" is the standard output
  OPT_OUT_FOLDER,  // made where it is not there
  OPT_OUT_EITHER,  // a file, or with '/' at its end a folder
  OPT_OUT_CACHE,   // a file that is read, too, and written if it has to be: checked where it is new
  OPT_INT,         // int64_t
  OPT_FLOAT,       // double
  OPT_BYTES,       // int64_t; 500M, 16G, 1.5Gi
  OPT_LIST,        // opt_list_t: may be given several times
  // const char*, to which each one given adds, with ',' between: rules of layers, or @FILE with
  // them (rules_file.h). OPT_FIX: such a file, which may also give --precision; its offset is that
  // of the rules.
  OPT_RULES,
  OPT_FIX,
} opt_kind_t;

typedef struct opt_list {
  const char** items;
  size_t n, capacity;
} opt_list_t;

// The text is borrowed.
assay_status_t opt_list_add(opt_list_t* list, const char* text) ASSAY_MUST_USE;

typedef struct opt {
  const char* name;  // "--inputs", or "MODEL" for a positional argument
  char letter;       // 'o' for -o; 0: none
  opt_kind_t kind;
  size_t offset;      // of the field in the verb's struct of arguments
  const char* value;  // "FILE" in the help; NULL for flags
  const char* help;
  bool required;  // positional arguments
} opt_t;

typedef struct verb {
  const char* name;        // "check", or two words: "debug precision"
  const char* summary;     // one line
  const char* usage;       // "MODEL [options]"
  const char* examples;    // lines, each with two spaces in front
  const opt_t* options;    // ends with a row without name
  size_t args_bytes;       // size of the struct that `run` gets, zeroed and filled
  int (*run)(void* args);  // returns an exit code
} verb_t;

// Parses argv (after the verb) into args. Returns true, or false with *out_exit set (help shown,
// or usage error told).
bool assay_cli_parse(const verb_t* verb, int argc, char** argv, void* args, int* out_exit);
void assay_cli_free_args(const verb_t* verb, void* args);
// Appends the command that was parsed last, as one could type it: "assay check model.onnx ...".
void assay_cli_command(assay_str_t* out);
// The same with one more option, such as "-o fix".
void assay_cli_command_with(const char* option, assay_str_t* out);
void assay_cli_help(const verb_t* verb, FILE* out);

// Prints "assay: message" to stderr, frees the status, and returns `code`; NO_MEMORY and INTERNAL
// always give ASSAY_EXIT_FAILED.
int assay_cli_fail(assay_status_t status, int code);
// A usage error: prints it with a hint at -h and returns ASSAY_EXIT_USAGE.
int assay_cli_usage(const char* verb, const char* format, ...) ASSAY_PRINTF(2, 3);

// Writes JSON to a file; "-" is the standard output.
assay_status_t assay_cli_write_json(const char* path, const json_t* j) ASSAY_MUST_USE;
// Whether a finding is told as JSON on the standard output, and not as text: `path` is "-".
bool assay_cli_json_to_stdout(const char* path);

// Row of the option that sets assay_memory_set_limit(), for a verb whose args_t has `int64_t
// memory_limit`.
#define CLI_MEMORY_OPTION                                                                        \
  {                                                                                              \
    "--memory-limit", 0, OPT_BYTES, offsetof(args_t, memory_limit), "SIZE",                      \
        "fail rather than take more (8G, 500M); default: what the\nmachine has available", false \
  }

// Row of the option that ends the program after a time (timeout.h), for a verb whose args_t has
// `double timeout`. It counts from before the verb runs.
#define CLI_TIMEOUT_OPTION                                                                     \
  {                                                                                            \
    "--timeout", 0, OPT_FLOAT, offsetof(args_t, timeout), "SECONDS",                           \
        "stop then, with exit code 4 and a line that says what was\ngoing on; what was found " \
        "by then is printed",                                                                  \
        false                                                                                  \
  }

// Row of the option that registers operators (assay/ops.h), for a verb whose args_t has `opt_list_t
// ops`. They are registered before the verb runs.
#define CLI_OPS_OPTION                                                                        \
  {                                                                                           \
    "--ops", 0, OPT_LIST, offsetof(args_t, ops), "LIB.so",                                    \
        "a library of operators of your own\n(docs/custom-operators.md); may be given again", \
        false                                                                                 \
  }

// Rows of what layers have formats of their own, for a verb whose args_t has `const char*` at
// `field`, and --precision.
#define CLI_RULES_OPTIONS(field, before)                                                     \
  {"--layer-precision",                                                                      \
   0,                                                                                        \
   OPT_RULES,                                                                                \
   offsetof(args_t, field),                                                                  \
   "RULES",                                                                                  \
   before                                                                                    \
   "'PATTERN:FORMAT,...' on names of nodes and outputs; later\nrules win; \\ escapes , : * " \
   "? [ and a leading @; @FILE: read\nfrom a file",                                          \
   false},                                                                                   \
  {                                                                                          \
    "--fix-file", 0, OPT_FIX, offsetof(args_t, field), "FILE",                               \
        before "the options in MODEL.fix.txt, or what --save-options\nwrote", false          \
  }

// Which of two fixes the files are to hold: for what looks for one.
#define CLI_FIX_OPTION(field)                                                            \
  {                                                                                      \
    "--fix", 0, OPT_STRING, offsetof(args_t, field), "WHICH",                            \
        "look for two fixes, show both and take this one: fewest layers\nthat meet the " \
        "requirements, or best: the fewest within 3 dB\nof all in fp32",                 \
        false                                                                            \
  }

// Row of the option that reads external data with several names, for a verb whose args_t has `bool
// allow_hard_links`.
#define CLI_HARD_LINKS_OPTION(field)                                                       \
  {                                                                                        \
    "--allow-hard-links", 0, OPT_FLAG, offsetof(args_t, field), NULL,                      \
        "read external data of a model from files with several\nnames (hard links)", false \
  }

// What `assay --version` says: the first line is the program's own version.
void assay_cli_print_version(void);
// Starts the program again, with OpenBLAS's kernels named in the environment, where it chose those
// of a CPU without AVX for one that has it (blas.c).
void assay_cli_use_blas(char** argv);

// Progress of long work on stderr, on a terminal only. fraction in [0, 1]; clears itself at 1.
void assay_cli_progress(const char* what, double fraction);

#define ASSAY_VERB(name) extern const verb_t assay_verb_##name;
#include "cli/verbs.inc"
#undef ASSAY_VERB

#endif  // ASSAY_CLI_CLI_H_
