// The arrays that a function is given are files in a temporary folder; what it gives comes as JSON
// over a pipe.
#include "frontends/polygraphy/data/script.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/process.h"
#include "base/shell.h"
#include "base/shown.h"
#include "io/polygraphy.h"

// What the script prints itself goes to stderr, so that stdout holds the answer alone.
// Arguments: the file, the function, of each set a file and the runner.
// Python runs in isolated mode, which keeps the current folder and PYTHONPATH out of sys.path, and
// the user's own packages too, which are appended again, after all others. The script's folder
// comes first, as it does if the script itself is run, but only once everything that this program
// needs has been imported: the pass through array() and read_array() is for what NumPy loads late.
static const char prelude[] =
    "import base64, io, json, os, pkgutil, runpy, site, sys\n"
    "out = os.fdopen(os.dup(1), 'w')\n"
    "os.dup2(2, 1)\n"
    "own = site.getusersitepackages()\n"
    "if sys.prefix == sys.base_prefix and os.path.isabs(own) and os.path.isdir(own):\n"
    "    site.addsitedir(own)\n"
    "import numpy\n"
    "def array(a):\n"
    "    f = io.BytesIO()\n"
    "    if hasattr(a, 'detach'): a = a.detach().cpu().numpy()\n"
    "    numpy.save(f, numpy.ascontiguousarray(a) if numpy.ndim(a) else numpy.asarray(a),\n"
    "               allow_pickle=False)\n"
    "    return {'array': base64.b64encode(f.getvalue()).decode(), 'polygraphy_class': 'ndarray'}\n"
    "def read_array(v): return numpy.load(io.BytesIO(base64.b64decode(v['array'])))\n"
    "class IterationResult(dict):\n"
    "    runtime = None\n"
    "def read(path, runner):\n"
    "    with open(path, encoding='utf-8') as f: [arrays] = json.load(f)\n"
    "    result = IterationResult((k, read_array(v)) for k, v in arrays.items())\n"
    "    result.runner_name = runner\n"
    "    return result\n"
    "json.dumps(array(read_array(array(numpy.zeros(1)))))\n"
    "sets = [read(*pair) for pair in zip(sys.argv[3::2], sys.argv[4::2])]\n"
    "sys.path.insert(0, os.path.dirname(os.path.abspath(sys.argv[1])))\n"
    "names = runpy.run_path(sys.argv[1])\n"
    "if sys.argv[2] not in names: sys.exit('no function ' + sys.argv[2] + ' in ' + sys.argv[1])\n"
    "function = names[sys.argv[2]]\n";

// "FILE.py:FUNCTION" at its last colon.
static assay_status_t split(pg_job_t* j, const pg_script_call_t* call, const char** file,
                            const char** name) {
  const char* colon = strrchr(call->script, ':');
  *file = call->script;
  *name = call->function;
  if (!colon || strchr(colon, '/')) return NULL;
  *name = colon + 1;
  return assay_arena_strndup(j->arena, call->script, (size_t)(colon - call->script), file);
}

static assay_status_t read_all(FILE* f, assay_str_t* out) {
  char buffer[1 << 16];
  for (size_t n; (n = fread(buffer, 1, sizeof buffer, f)) > 0;) assay_str_append_n(out, buffer, n);
  return assay_str_status(out);
}

static assay_status_t explain(const pg_script_call_t* call, const char* file, int code) {
  return ASSAY_ERROR(ASSAY_DEVICE,
                     "%s: '%s' ended with status %d%s: it needs a Python with NumPy (ASSAY_PYTHON "
                     "names another one); %s",
                     call->flag, file, WIFEXITED(code) ? WEXITSTATUS(code) : code,
                     WIFEXITED(code) && WEXITSTATUS(code) == 127 ? ", no Python was found" : "",
                     call->instead);
}

static void put_word(assay_str_t* command, const char* word) {
  assay_str_append(command, " ");
  assay_shell_quote(command, word);
}

static void put_path(assay_str_t* out, const char* folder, size_t i) {
  assay_str_printf_raw(out, "%s/%zu.json", folder, i);
}

// Writes the sets into the folder, and appends their words to the command.
static assay_status_t hand_over(const pg_script_call_t* call, const char* folder,
                                assay_str_t* command) {
  for (size_t i = 0; i < call->n_sets; i++) {
    assay_set_t set = *call->sets[i];
    const assay_saved_t one = {.runs = &set, .n = 1};
    assay_str_t path = {0};
    put_path(&path, folder, i);
    assay_status_t st = assay_str_status(&path);
    if (!st) st = assay_polygraphy_write(path.text, &one, NULL, NULL);
    put_word(command, assay_str_get(&path));
    put_word(command, call->runners[i]);
    assay_str_deinit(&path);
    if (st) return assay_status_note(st, "%s", call->flag);
  }
  return assay_str_status(command);
}

static assay_status_t run(const pg_script_call_t* call, const char* file, const char* command,
                          assay_str_t* out) {
  const char* const words[] = {"/bin/sh", "-c", command, NULL};
  int ends[2], code = 0;
  pid_t pid = 0;
  fflush(NULL);
  if (pipe2(ends, O_CLOEXEC))
    return ASSAY_ERROR(ASSAY_DEVICE, "%s: cannot make a pipe: %s", call->flag, strerror(errno));
  assay_status_t st = assay_process_start(words, ends[1], -1, &pid);
  close(ends[1]);
  FILE* f = st ? NULL : fdopen(ends[0], "r");
  if (!f) close(ends[0]);
  if (st) return assay_status_note(st, "%s", call->flag);
  if (f) st = read_all(f, out);
  if (f) fclose(f);
  while (waitpid(pid, &code, 0) < 0 && errno == EINTR) {
  }
  assay_process_over();
  if (!f) return ASSAY_ERROR(ASSAY_DEVICE, "%s: the pipe cannot be read", call->flag);
  return st || !code ? st : explain(call, file, code);
}

assay_status_t pg_script_call(pg_job_t* j, const pg_script_call_t* call, assay_str_t* out) {
  const char *file, *name, *python = getenv("ASSAY_PYTHON");
  assay_str_t command = {0}, folder = {0}, program = {0};
  ASSAY_TRY(split(j, call, &file, &name));
  if (access(file, R_OK) != 0)
    return ASSAY_ERROR(ASSAY_NOT_FOUND, "%s: '%s' cannot be read", call->flag, file);
  assay_str_printf_raw(&program, "%s%s", prelude, call->driver);
  assay_shell_quote(&command, python && *python ? python : "python3");
  assay_str_append(&command, " -I -c");
  put_word(&command, assay_str_get(&program));
  put_word(&command, file);
  put_word(&command, name);
  assay_status_t st = assay_status_join(assay_str_status(&program), assay_str_status(&command));
  if (!st && call->n_sets) st = assay_folder_make_temporary(&folder);
  if (!st) st = hand_over(call, assay_str_get(&folder), &command);
  pg_log(PG_INFO, "Calling %s() of %s", name, file);
  if (!st) st = run(call, file, assay_str_get(&command), out);
  if (folder.len) assay_folder_remove_temporary(folder.text);
  assay_str_deinit(&program);
  assay_str_deinit(&folder);
  assay_str_deinit(&command);
  return st;
}
