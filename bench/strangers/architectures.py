"""The architectures, and how one is drawn: `build(name, seed)` gives a Model."""
import hashlib
import inspect

import numpy as np
import onnxruntime as ort
from onnx import helper, numpy_helper

import arch2_audio
import arch2_images
import arch2_other
import arch2_sequence
import arch2_vision
import arch3_audio
import arch3_other
import arch3_science
import arch3_sequence
import arch3_vision
import arch4_audio
import arch4_detection
import arch4_sequence
import arch4_tables
import arch4_vision
import arch5_audio
import arch5_detection
import arch5_sequence
import arch5_tables
import arch5_vision
import arch6_audio
import arch6_bodies
import arch6_places
import arch6_sequence
import arch6_tables
import arch6_vision
import arch7_audio
import arch7_further
import arch7_graphs
import arch7_places
import arch7_sequence
import arch7_tables
import arch7_vision
import arch8_choices
import arch8_numbers
import arch8_sequence
import arch8_steps
import arch_other
import arch_sequence
import arch_vision
from data import draw
from net import Net
from styles import EIGHTH as EIGHTH_STYLES, FIFTH as FIFTH_STYLES, FOURTH as FOURTH_STYLES, LATER, SEVENTH as SEVENTH_STYLES, SIXTH as SIXTH_STYLES, STYLES, THIRD as THIRD_STYLES

ort.set_default_logger_severity(4)
HELPERS = {"embed", "positions", "time_first", "padding_mask", "scatter_add", "standardized", "pixels", "channel_shuffle", "pixel_norm", "squash",
           "distances", "rms_plus_one", "soft_cap", "log_mel", "sinusoids", "celu", "standardized_conv", "shared_group_norm", "rms", "stretched_rotary",
           "mel_bank", "mel_bands", "wrapped", "windowed_basis", "gated_residual", "unit", "cross", "cells", "rows", "joined", "spectrum", "decibels", "standard", "units", "places", "powers",
           "slopes", "brightness", "power_mean", "lit", "wide_images", "cell_places", "corners_within", "priors_of", "decoded", "regions_at", "sample", "depth_head",
           "words", "next_word", "coupled_layer", "hard_layer", "with_weight", "log_bands", "value_and_advantage", "atoms", "pair_energy", "kernel_between",
           "process", "stumps", "weighed_counts", "parts_and_back", "accumulated", "noise_body", "square_boxes", "written", "classes_of_pitch", "changes_of", "links",
           "even_both_ways", "oblivious", "bent", "ordered", "reversible", "quarter_places", "in_windows", "read_at_offsets", "root_undone", "small_maps", "turned"}
# Whole architectures and kinds of faults are held out, chosen by a hash. When the held-out column has been used to tune anything,
# draw a new one: another word here.
SPLIT = "second"


def _functions(*modules):
    return {n: f for m in modules for n, f in vars(m).items() if inspect.isfunction(f) and f.__module__ == m.__name__ and n not in HELPERS}


FIRST = _functions(arch_vision, arch_sequence, arch_other)
SECOND = _functions(arch2_vision, arch2_images, arch2_sequence, arch2_audio, arch2_other)
THIRD = _functions(arch3_vision, arch3_sequence, arch3_audio, arch3_other, arch3_science)
FOURTH = _functions(arch4_vision, arch4_detection, arch4_sequence, arch4_audio, arch4_tables)
FIFTH = _functions(arch5_vision, arch5_detection, arch5_sequence, arch5_audio, arch5_tables)
SIXTH = _functions(arch6_vision, arch6_places, arch6_sequence, arch6_audio, arch6_bodies, arch6_tables)
SEVENTH = _functions(arch7_vision, arch7_places, arch7_sequence, arch7_audio, arch7_graphs, arch7_tables, arch7_further)
EIGHTH = _functions(arch8_numbers, arch8_steps, arch8_choices, arch8_sequence)
ARCHITECTURES = {**FIRST, **SECOND, **THIRD, **FOURTH, **FIFTH, **SIXTH, **SEVENTH, **EIGHTH}
# What an operator needs of the operator set.
LEAST = {"transformer_net": 16, "relative_bert": 13, "roi_heads": 16, "deform_net": 16, "hyena": 17, "sage": 18, "warp_net": 16, "deskew": 16,
         "flow_pyramid": 16, "seen_from_above": 16, "frame_between": 16, "registered_scans": 16, "sampled_places": 16, "offset_reader": 16, "offset_field": 16,
         "storm_steps": 13, "settled_state": 13, "said_letters": 13, "ringing_filter": 13}
# Networks that only one framework's users write.
ONLY = {"keras_lstm": ("tf2onnx", "keras2onnx"), "memory": ("torch", "torch17", "dynamo", "unnamed"),
        "flow_warp": ("torch", "torch_old", "paddle", "unnamed")}
# Networks of rows: nobody looks at one row.
TABLES = {"dlrm", "deep_fm", "two_towers", "tabular", "flow", "n_beats", "autoencoder", "deep_cross", "ft_transformer", "tab_net", "vae", "interest",
          "prototypes", "universal", "early_exit", "nearest", "kernel_machine", "boosted", "discriminant", "multi_task", "neural_ode", "mixture_density",
          "price", "one_against_rest", "softmax_regression", "mlp_classifier", "self_scaled", "res_table", "ensemble", "recommender", "step_time",
          "sparse_code", "filled_columns", "logged_target", "whitened_parts", "weighed_neighbours", "even_trees", "calibrated_margin",
          "kinds_and_numbers", "scaled_denoiser", "guided_step", "four_slopes", "ray_field", "drawn_codes", "picture_of_places",
          "nearest_centres",
          "dueling_values", "bounded_actions", "bell_process", "rough_process", "counted_claims", "boosted_counts", "boosted_stages", "weighed_terms",
          "term_topics", "whitened_codes", "whitened_alarm", "step_back", "noised_plan", "straight_path", "path_policy", "bell_edges", "adapted_labels",
          "packed_router", "byte_columns", "levels_of_gait",
          "hand_anchors", "binned_gaze", "turned_relations", "support_values", "support_rewards", "noisy_values", "pair_machine", "pair_ratings",
          "crossed_columns", "crossed_shops", "oblivious_credit", "oblivious_prices", "seen_words", "seen_signs", "bent_columns", "bent_alarm",
          "power_kernel", "power_wine", "ordered_ages", "ordered_grades", "hidden_causes", "turned_friends", "rooted_stakes", "weighed_offers", "median_sensors",
          "thousand_steps", "weighed_scales", "far_bells", "evidence_of_bells", "narrow_way", "waves_in_hertz", "storm_steps", "crowded_ponds", "orbit_angles",
          "last_noise", "limits_kept", "stepped_dose", "settled_state"}
FIXED = {"flow_warp", "gcn", "dgcnn", "memory", "roi_heads", "sage", "pooled_regions", "kept_boxes", "second_stage",
         "level_regions", "region_masks"}  # no batch


def generation(architecture):
    return next(g for g, names in ((1, FIRST), (2, SECOND), (3, THIRD), (4, FOURTH), (5, FIFTH), (6, SIXTH), (7, SEVENTH), (8, EIGHTH)) if architecture in names)


def held_out(name):
    return hashlib.sha256(f"{SPLIT}/{name}".encode()).digest()[0] % 3 == 0


def seed_of(*words):
    return int.from_bytes(hashlib.sha256("/".join(map(str, words)).encode()).digest()[:8], "little")


def session(proto, optimized=False):
    options = ort.SessionOptions()
    levels = ort.GraphOptimizationLevel
    options.graph_optimization_level = levels.ORT_ENABLE_ALL if optimized else levels.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return ort.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])


def calibrate(net, model, rng):
    """Batch normalizations get the statistics of what they meet, first to last."""
    place = {t.name: i for i, t in enumerate(model.proto.graph.initializer)}
    keep = list(model.proto.graph.output)
    feed = draw(model, rng, 4)
    for x, mean, variance in net.norms:
        del model.proto.graph.output[:]
        model.proto.graph.output.add().name = x
        value = session(model.proto).run([x], feed)[0].astype(np.float64)
        axes = tuple(i for i in range(value.ndim) if i != 1)
        for name, new in ((mean, value.mean(axes)), (variance, value.var(axes) + 1e-3)):
            old = model.proto.graph.initializer[place[name]]
            jitter = np.exp(0.1 * rng.standard_normal(new.shape))
            old.CopyFrom(numpy_helper.from_array((new * jitter).astype(np.float32), name))
    del model.proto.graph.output[:]
    model.proto.graph.output.extend(keep)


def declare_shapes(model, rng):
    """Outputs whose shape is not inferred get it from runs; what changes with an open batch is left open."""
    missing = [o for o in model.proto.graph.output if not o.type.tensor_type.HasField("shape")]
    if not missing:
        return
    runs = [session(model.proto).run([o.name for o in missing], draw(model, rng, batch)) for batch in (2, 3)]
    for o, *values in zip(missing, *runs):
        shape = [a if a == b else "N" for a, b in zip(values[0].shape, values[1].shape)]
        o.CopyFrom(helper.make_tensor_value_info(o.name, helper.np_dtype_to_tensor_dtype(values[0].dtype), shape))


def build(name, seed, style=None, batch=None):
    """The architecture in a style, an operator set and a batch drawn by the seed, unless given."""
    rng = np.random.default_rng(seed_of(name, seed))
    rows = {**STYLES, **(LATER if generation(name) > 1 else {}), **(THIRD_STYLES if generation(name) > 2 else {}),
            **(FOURTH_STYLES if generation(name) > 3 else {}), **(FIFTH_STYLES if generation(name) > 4 else {}),
            **(SIXTH_STYLES if generation(name) > 5 else {}), **(SEVENTH_STYLES if generation(name) > 6 else {}),
            **(EIGHTH_STYLES if generation(name) > 7 else {})}
    styles = [s for s in ONLY.get(name, rows) if max(rows[s].opsets) >= LEAST.get(name, 0)]
    style = style or styles[int(rng.integers(len(styles)))]
    opsets = [o for o in rows[style].opsets if o >= LEAST.get(name, 0)]
    opset = opsets[int(rng.integers(len(opsets)))]
    choice = ((16, "N", 16, "N") if name in TABLES else (1, 3, "N", 1))[int(rng.integers(4))]
    batch = 1 if name in FIXED else batch or choice
    net = Net(name, style, opset, batch, rng)
    ARCHITECTURES[name](net)
    model = net.finish()
    if net.norms:
        calibrate(net, model, rng)
    declare_shapes(model, rng)
    return model
