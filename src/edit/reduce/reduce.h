// A minimal model that still fails: a part of a model, the values that enter it, and what should
// leave it.
//
// It starts from what a check blames: that layer by itself, given the values that the engine had at
// its inputs. Where that does not fail, its neighbours are added, ring by ring, and what is not
// needed is taken away again (ddmin; A. Zeller, R. Hildebrandt, 2002). Where that does not help,
// the whole graph is cut from both ends, by bisection, before. Whatever is handed out was run, and
// failed.
//
// It lies here and not in debug/, since it cuts models with the edits.
#ifndef ASSAY_EDIT_REDUCE_REDUCE_H_
#define ASSAY_EDIT_REDUCE_REDUCE_H_

#include <assay/debug.h>

#include "account/engine.h"
#include "check/check.h"

typedef struct assay_reduce_options {
  // How it is run and what the outputs have to keep; the precision stays the caller's. Requirements
  // that name outputs hold for parts that have all of these; of others the default is asked.
  const assay_check_setting_t* check;
  // An engine that is not ours, which runs every part; its model is the path of the whole file.
  // NULL: check's backend.
  const assay_external_engine_command_t* exec;
  // Golden values of the network that the model was exported from, by the model's names: outputs,
  // and inner ones to cut at. Of all samples, after each other along the first axis. NULL: none.
  // Where truth misses them, the export is what is reduced: parts are given golden's values, and
  // have to give golden's.
  const assay_set_t* golden;
  const assay_saved_t* golden_runs;  // in place of these: those of each sample; NULL: they are cut
  // The user's own judge in place of check's verdict: a command with {model} {inputs} {golden}
  // {outputs} put in (files); exit code 0: does not fail. NULL: none.
  const char* judge;
  double judge_seconds;  // of one run; 0: 600
  double seconds;        // begin nothing new after them; 0: 60
} assay_reduce_options_t;

typedef enum assay_reduce_way {
  ASSAY_REDUCE_ALONE = 0,   // the layer to blame
  ASSAY_REDUCE_NEIGHBOURS,  // with some around it
  ASSAY_REDUCE_DELTA,       // what was left of the whole
} assay_reduce_way_t;
const char* assay_reduce_way_name(assay_reduce_way_t w);

// What a run of a part (or the whole) came to.
typedef struct assay_reduce_failure {
  bool fails;
  assay_blame_t blame;
  assay_verdict_t verdict;  // of the layer to blame; EXACT: none is
  char node[128], op[64];   // that layer; ""
  char why[256];            // it, or what the user's command printed last
  double badness;  // the largest relative error of an output; larger where it is not finite
} assay_reduce_failure_t;

typedef struct assay_reduced {
  assay_reduce_verdict_t verdict;
  assay_reduce_way_t way;
  assay_reduce_failure_t before, after;  // on the worst sample
  assay_model_t* model;                  // the part, as it is to be written: its nodes have names
  assay_samples_t inputs;                // of its inputs, for each sample that it fails on
  assay_samples_t golden;  // truth's outputs of it, in declared types; the reference's, as far as
                           // it has them, where the export is to blame
  size_t* sample_of;       // the samples that these are, of those given; the worst one first
  size_t n_samples;        // given
  size_t n_failing;        // of them: the whole model fails by itself
  bool joint;              // it fails on all together only: they count as one
  size_t n_nodes, n_nodes_before;  // of the top graph, but for Constants
  size_t tries;                    // parts that were run
  bool minimal;                    // no node can be taken away so that it still fails
  bool cut_short;                  // the time was over
  bool from_truth;  // some of its inputs are truth's values: the engine's were not to be had, or
                    // not finite
  double seconds;
} assay_reduced_t;

// The model is prepared; samples are of its inputs.
// Errors: those of running the whole model; INVALID_ARGUMENT a judge that reads neither {model} nor
// {outputs}; DEVICE a judge that cannot be run.
assay_status_t assay_reduce_run(assay_model_t* model, const assay_samples_t* samples,
                                const assay_reduce_options_t* options,
                                assay_reduced_t* out) ASSAY_MUST_USE;
void assay_reduced_deinit(assay_reduced_t* r);

// Writes model.onnx, inputs.npz and golden.npz into a folder, which is made. Several samples stand
// after each other along a dimension of their own; where their shapes differ, only the first is
// written. *out_written: how many.
assay_status_t assay_reduced_write(const assay_reduced_t* r, const char* folder,
                                   size_t* out_written) ASSAY_MUST_USE;

#endif  // ASSAY_EDIT_REDUCE_REDUCE_H_
