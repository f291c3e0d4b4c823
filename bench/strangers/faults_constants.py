"""Faults of weights and constants: order, layout, folding, rounding."""
import numpy as np


def weighted(s, least=2):
    """Nodes with a weight that is a constant, and where it is."""
    found = []
    for n in s.nodes("Conv", "ConvTranspose", "Gemm", "MatMul"):
        for i in (1, 0):
            w = s.const(n.input[i])
            if w is not None and w.ndim >= least and w.dtype == np.float32 and w.size > 8:
                found.append((n, i, w))
                break
    return found


def change_weight(test, change, least=2):
    """test: on (node, array); change: (array, rng) to an array of the same shape."""
    def apply(s):
        site = s.choose([x for x in weighted(s, least) if test(x[0], x[2])])
        return s.set_const(site[0], site[1], np.asarray(change(site[2], s.rng), np.float32)) if site else None
    return apply


def any_weight(n, w):
    return True


def square(n, w):
    return n.op_type in ("Gemm", "MatMul") and w.shape[-1] == w.shape[-2]


def spatial(n, w):
    return n.op_type.startswith("Conv") and w.ndim > 2 and max(w.shape[2:]) > 1


def grouped_channels(n, w):
    return n.op_type == "Conv" and w.shape[1] == 1 and w.shape[0] >= 4 and w.shape[0] % 2 == 0


def multiplier_order(w, rng):
    """(channel, multiplier) read as (multiplier, channel)."""
    return w.reshape((2, -1) + w.shape[1:]).swapaxes(0, 1).reshape(w.shape)


def weight_norm_global(w, rng):
    """Each filter's norm replaced by one of all: a weight norm whose axis was lost."""
    axes = tuple(range(1, w.ndim))
    norm = np.sqrt((w * w).sum(axes, keepdims=True))
    return w / (norm + 1e-12) * np.sqrt((norm * norm).mean())


def stale(w, rng):
    """Weights of another moment of training: all off by a little, along few directions and at random."""
    return w + 0.03 * w.std() * rng.standard_normal(w.shape) + 0.01 * w


def half_rounded(w, rng):
    """Seven bits: stored in bfloat16 by truncation somewhere on the way."""
    return (np.ascontiguousarray(w, np.float32).view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)


def duplicated(s):
    """Two weights of one shape taken for one: the second becomes the first."""
    sites = weighted(s)
    pairs = [(a, b) for a in sites for b in sites if a[0] is not b[0] and a[2].shape == b[2].shape and not np.array_equal(a[2], b[2])]
    pair = s.choose(pairs)
    if not pair:
        return None
    (first, i, _), (second, j, _) = pair
    if s.made_by(first.input[i], "Constant") is not None and s.place(first) > s.place(second):
        return None
    second.input[j] = first.input[i]
    return [second]


def fold_batch_norm(change):
    """A normalization is folded into the convolution before it, with a mistake: change(scale, shift parts) gives weight scale and bias."""
    def apply(s):
        def fits(n):
            conv = s.made_by(n.input[0], "Conv")
            return conv is not None and len(s.consumers(n.input[0])) == 1 and s.const(conv.input[1]) is not None and not s.is_output(n.input[0])
        bn = s.pick("BatchNormalization", fits)
        if bn is None:
            return None
        conv = s.producer(bn.input[0])
        gamma, beta, mean, variance = (s.const(x) for x in bn.input[1:5])
        w = s.const(conv.input[1])
        bias = s.const(conv.input[2]) if len(conv.input) > 2 and conv.input[2] else np.zeros_like(mean)
        scale, shift = change(gamma, beta, mean, variance, bias, s.attr(bn, "epsilon", 1e-5))
        s.set_const(conv, 1, (w * scale.reshape((-1,) + (1,) * (w.ndim - 1))).astype(np.float32))
        name = s.constant(shift.astype(np.float32), conv.input[1] + "_bias")
        if len(conv.input) > 2:
            conv.input[2] = name
        else:
            conv.input.append(name)
        out = bn.output[0]
        s.graph.node.remove(bn)
        conv.output[0] = out
        return [conv]
    return apply


def other_epsilon(gamma, beta, mean, variance, bias, epsilon):
    scale = gamma / np.sqrt(variance + (1e-5 if epsilon > 1e-4 else 1e-2))
    return scale, beta + (bias - mean) * scale


def mean_forgotten(gamma, beta, mean, variance, bias, epsilon):
    scale = gamma / np.sqrt(variance + epsilon)
    return scale, beta + bias * scale


def variance_for_deviation(gamma, beta, mean, variance, bias, epsilon):
    scale = gamma / (variance + epsilon)
    return scale, beta + (bias - mean) * scale


def bias_lost(s):
    """Gemm, Conv or the Add behind a MatMul."""
    options = [n for n in s.nodes("Conv", "Gemm", "ConvTranspose") if len(n.input) > 2 and n.input[2] and s.const(n.input[2]) is not None]
    adds = [(n, i) for n in s.nodes("Add") for i in (0, 1) if s.made_by(n.input[i], "MatMul") is not None and s.const(n.input[1 - i]) is not None]
    site = s.choose(options + adds)
    if site is None:
        return None
    if isinstance(site, tuple):
        return s.bypass(site[0], site[0].input[site[1]])
    del site.input[2:]
    return [site]


def shared_slope(s):
    node = s.pick("PRelu", lambda n: s.const(n.input[1]) is not None and s.const(n.input[1]).size > 1)
    if node is None:
        return None
    slope = s.const(node.input[1])
    return s.set_const(node, 1, np.full_like(slope, slope.flat[0]))


def scalar_near(s, low, high):
    """Additions of a small constant under a root: an epsilon."""
    found = []
    for n in s.nodes("Add"):
        for i in (0, 1):
            c = s.const(n.input[i])
            if c is not None and c.size == 1 and c.dtype == np.float32 and low <= float(c.reshape(-1)[0]) <= high:
                if any(r.op_type == "Sqrt" for r in s.consumers(n.output[0])):
                    found.append((n, i))
    return found


def epsilon_in_graph(s):
    site = s.choose(scalar_near(s, 1e-13, 2e-3))
    if site is None:
        return None
    old = s.const(site[0].input[site[1]])
    return s.set_const(*site, np.full_like(old, 1e-3 if float(old.reshape(-1)[0]) < 5e-4 else 1e-5))


def embedding_row_zero(s):
    """The padding index zeroes a row that the framework uses."""
    def row(n):
        table, ids = s.const(n.input[0]), s.values.get(n.input[1])
        return table is not None and table.ndim == 2 and table.dtype == np.float32 and ids is not None and ids.size
    node = s.pick("Gather", row)
    if node is None:
        return None
    table = s.const(node.input[0]).copy()
    ids, count = np.unique(s.values[node.input[1]], return_counts=True)
    table[int(ids[count.argmax()])] = 0
    return s.set_const(node, 0, table)


def channel_statistics_reversed(s):
    """Means and deviations in BGR order for RGB pictures: a constant of the network's first Sub or Div is reversed."""
    def stat(n):
        c = s.const(n.input[1])
        return c is not None and c.ndim >= 1 and c.size in (3, 4, 8) and not np.array_equal(np.flip(c), c)
    node = s.pick(("Sub", "Div"), stat)
    return s.set_const(node, 1, np.flip(s.const(node.input[1]))) if node is not None else None


def nms_number(i, change):
    def apply(s):
        node = s.pick("NonMaxSuppression", lambda n: len(n.input) > i and s.const(n.input[i]) is not None)
        return s.set_const(node, i, change(s.const(node.input[i]))) if node is not None else None
    return apply


def clip_bound_lost(s):
    def reached(n):
        bound = s.const(n.input[2]) if len(n.input) > 2 and n.input[2] else None
        return bound is not None and (s.values[n.input[0]] > bound).any()
    node = s.pick("Clip", reached)
    if node is None:
        return None
    del node.input[2:]
    return [node]


def sign_of_shift(s):
    """A roll of the other sign: what was cut off behind is cut off in front."""
    def halves(n):
        parts = [s.made_by(x, "Slice") for x in n.input]
        return len(parts) == 2 and None not in parts and parts[0].input[0] == parts[1].input[0] and s.shape(n.output[0]) == s.shape(parts[0].input[0])
    node = s.pick("Concat", halves)
    if node is None:
        return None
    tail, head = (s.producer(x) for x in node.input)
    size, axis = s.shape(tail.input[0])[s.attr(node, "axis")], int(s.const(tail.input[3])[0])
    shift = s.shape(node.input[0])[s.attr(node, "axis")]
    if 2 * shift == size or axis < 0:
        return None
    made = s.set_const(tail, 1, np.array([shift])) + s.set_const(head, 2, np.array([shift]))
    return [*made, node]


def slice_off_by_one(s):
    """Start and end moved together."""
    def room(n):
        starts, ends, axes = (s.const(n.input[i]) for i in (1, 2, 3)) if len(n.input) > 3 else (None, None, None)
        if starts is None or ends is None or axes is None or starts.size != 1:
            return False
        return 0 < starts[0] and ends[0] <= s.shape(n.input[0])[axes[0]]
    node = s.pick("Slice", room)
    if node is None:
        return None
    return s.set_const(node, 1, s.const(node.input[1]) - 1) + s.set_const(node, 2, s.const(node.input[2]) - 1)


ROWS = [
    ("square_weight_transposed", "torch.onnx", "pytorch/pytorch#108342", change_weight(square, lambda w, rng: np.swapaxes(w, -1, -2))),
    ("kernel_flipped", "onnx2tf", "PINTO0309/onnx2tf#56", change_weight(spatial, lambda w, rng: np.flip(w, tuple(range(2, w.ndim))))),
    ("depthwise_order", "keras2onnx", "onnx/keras-onnx#437", change_weight(grouped_channels, multiplier_order)),
    ("weight_norm_axis", "torch.onnx", "pytorch/pytorch#191749", change_weight(any_weight, weight_norm_global, 3)),
    ("spectral_norm_lost", "DeOldify", "jantic/DeOldify#166", change_weight(any_weight, lambda w, rng: w * (1.2 + 0.5 * rng.random()))),
    ("stale_weights", "diffusers", "huggingface/diffusers#1818", change_weight(any_weight, stale)),
    ("truncated_to_bf16", "onnx-tensorrt", "onnx/onnx-tensorrt#919", change_weight(any_weight, half_rounded)),
    ("weights_taken_for_one", "Model-Optimizer", "NVIDIA/Model-Optimizer#2092", duplicated),
    ("fold_epsilon", "onnxsim", "onnxsim/onnxsim#104", fold_batch_norm(other_epsilon)),
    ("fold_mean_forgotten", "mmdetection", "open-mmlab/mmdetection#2924", fold_batch_norm(mean_forgotten)),
    ("fold_variance_for_deviation", "onnxsim", "onnxsim/onnxsim#47", fold_batch_norm(variance_for_deviation)),
    ("bias_lost", "torch.onnx", "pytorch/pytorch#95867", bias_lost),
    ("prelu_slope_shared", "tinygrad", "tinygrad/tinygrad#10270", shared_slope),
    ("epsilon_in_graph", "onnxconverter-common", "microsoft/onnxconverter-common#153", epsilon_in_graph),
    ("embedding_padding_row", "torch.onnx", "pytorch/pytorch#53053", embedding_row_zero),
    ("statistics_bgr", "mmdeploy", "open-mmlab/mmdeploy#421", channel_statistics_reversed),
    ("nms_iou_threshold", "torch.onnx", "pytorch/pytorch#134827", nms_number(3, lambda c: c * 0 + 0.05)),
    ("nms_most_boxes", "mmdetection", "open-mmlab/mmdetection#5107", nms_number(2, lambda c: c - 1)),
    ("clip_bound_lost", "ncnn", "Tencent/ncnn#1609", clip_bound_lost),
    ("roll_sign", "tf2onnx", "onnx/tensorflow-onnx#1616", sign_of_shift),
    ("slice_off_by_one", "X2Paddle", "PaddlePaddle/X2Paddle#297", slice_off_by_one),
]
