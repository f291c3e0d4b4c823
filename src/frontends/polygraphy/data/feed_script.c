// --data-loader-script: inputs that a Python function yields.
#include "frontends/polygraphy/data/feed.h"
#include "frontends/polygraphy/data/script.h"

static const char driver[] =
    "out.write('[')\n"
    "for i, feed in enumerate(function()):\n"
    "    out.write((',' if i else '') + json.dumps({k: array(v) for k, v in feed.items()}))\n"
    "out.write(']')\n"
    "out.close()\n";

assay_status_t pg_feed_script(pg_job_t* j, const char* script, assay_saved_t* out) {
  const pg_script_call_t call = {
      .flag = "--data-loader-script",
      .script = script,
      .function = "load_data",
      .driver = driver,
      .instead = "inputs can be given as files, too: --load-inputs inputs.npz"};
  assay_str_t text = {0};
  assay_status_t st = pg_script_call(j, &call, &text);
  if (!st)
    st = assay_status_note(assay_saved_parse_json(assay_str_get(&text), text.len, NULL, out), "%s",
                           call.flag);
  assay_str_deinit(&text);
  return st;
}
