"""Fifth generation: steps, bins, layouts, what is joined, and what a step of a sampler mixes."""
import numpy as np

from surgery import scalar


def bins(c):
    """Number of bins of a matrix that takes means over a side, and whether they are its rows; None: it is no such matrix."""
    if c is None or c.ndim != 2 or c.min() < 0 or min(c.shape) < 2 or c.shape[0] == c.shape[1]:
        return None
    rows = c.shape[0] < c.shape[1]
    m = c if rows else c.T
    return (len(m), rows) if np.allclose(m.sum(1), 1, atol=1e-5) and (m > 0).sum(0).max() > 1 else None


def adaptive_bins(s):
    """Bins of one size, a step apart."""
    sites = [(n, i, *bins(s.const(x))) for n in s.nodes("MatMul") for i, x in enumerate(n.input) if bins(s.const(x))]
    choice = s.choose(sites)
    if choice is None:
        return None
    made = []
    for n, i, count, rows in sites:
        if count != choice[2]:
            continue
        c = s.const(n.input[i])
        side = max(c.shape)
        step = side // count
        size = side - (count - 1) * step
        m = np.zeros((count, side), np.float32)
        for k in range(count):
            m[k, k * step:k * step + size] = 1 / size
        made += s.set_const(n, i, m if rows else np.ascontiguousarray(m.T))
    return made


def step_lost(s):
    """Neighbours, not every second one."""
    made = []
    for n in s.nodes("Slice"):
        step = s.const(n.input[4]) if len(n.input) > 4 and n.input[4] else None
        if step is None or step.size != 1 or step.item() < 2 or s.const(n.input[1]) is None:
            continue
        axis = int(s.const(n.input[3]).item())
        start = int(s.const(n.input[1]).item())
        made += s.set_const(n, 2, np.array([start + s.shape(n.output[0])[axis]]))
        made += s.set_const(n, 4, np.array([1]))
    return made or None


def sides_of_picture(s):
    """Columns before rows."""
    names = {i.name for i in s.graph.input}
    node = s.pick("Transpose", lambda n: n.input[0] in names and s.attr(n, "perm") == [0, 3, 1, 2] and s.shape(n.input[0])[1] == s.shape(n.input[0])[2])
    if node is None:
        return None
    s.set_attr(node, "perm", [0, 3, 2, 1])
    return [node]


def flow_not_scaled(s):
    """Twice as many pixels, and as many of them to go as before."""
    node = s.pick("Mul", lambda n: s.made_by(n.input[0], "Resize") is not None and (scalar(s, n.input[1]) or 0) > 1)
    return s.bypass(node, node.input[0]) if node is not None else None


def guidance_less_one(s):
    """How much beyond the condition, taken for how much beyond no condition."""
    def fits(n):
        gap = s.made_by(n.input[0], "Sub")
        return (scalar(s, n.input[1]) or 0) > 1.5 and gap is not None and any(b.op_type == "Add" and gap.input[1] in b.input for b in s.consumers(n.output[0]))
    node = s.pick("Mul", fits)
    return s.set_const(node, 1, s.const(node.input[1]) + np.float32(s.rng.choice([-1, 1]))) if node is not None else None


def first_axis_for_sums(s):
    node = s.pick("CumSum", lambda n: s.const(n.input[1]) is not None and len(s.shape(n.input[0])) > 1 and int(s.const(n.input[1]).item()) != 0)
    return s.set_const(node, 1, np.zeros_like(s.const(node.input[1]))) if node is not None else None


def score_before_resize(s):
    """Chances are made larger, not what they are made from."""
    def fits(n):
        resize = s.made_by(n.input[0], "Resize")
        return resize is not None and s.attr(resize, "mode") == "linear" and len(s.consumers(n.input[0])) == 1
    node = s.pick(("Sigmoid", "Softmax"), fits)
    if node is None:
        return None
    resize, more = s.producer(node.input[0]), {a.name: s.attr(node, a.name) for a in node.attribute}
    made = s.before(resize, 0, (node.op_type, ["."], more))
    return [*made, *(s.bypass(node, made[-1].output[0]) or [])]


def convolution_before_resize(s):
    """First the filter, then larger."""
    def fits(n):
        resize, w = s.made_by(n.input[0], "Resize"), s.const(n.input[1])
        return resize is not None and len(s.consumers(n.input[0])) == 1 and w is not None and w.ndim == 4 and w.shape[0] == w.shape[1] and w.shape[2] > 1 \
            and s.shape(n.input[0]) == s.shape(n.output[0])
    node = s.pick("Conv", fits)
    if node is None:
        return None
    resize = s.producer(node.input[0])
    kept, out, middle = [*resize.input], node.output[0], s.fresh("filtered")
    more = {a.name: s.attr(resize, a.name) for a in resize.attribute}
    name = resize.name
    s.graph.node.remove(resize)
    node.input[0], node.output[0] = kept[0], middle
    made = s.insert(s.place(node) + 1, "Resize", [middle, *kept[1:]], [out], **more)
    made.name = name
    return [node, made]


def second_flip_lost(s):
    """Only the first of two axes is turned round."""
    node = s.pick("Slice", lambda n: len(n.input) > 4 and s.const(n.input[4]) is not None and s.const(n.input[4]).tolist() == [-1, -1])
    if node is None:
        return None
    made = []
    for i in (1, 2, 3, 4):
        made += s.set_const(node, i, s.const(node.input[i])[:1])
    return made


def by_place(s):
    """The best, in the order in which they stand, not the best first."""
    node = s.pick("TopK", lambda n: len(n.output) == 2 and all(n.output) and s.const(n.input[1]) is not None and not any(map(s.is_output, n.output[1:])))
    if node is None:
        return None
    axis, (values, index), at = s.attr(node, "axis", -1), list(node.output), s.place(node) + 1
    node.output[0], node.output[1] = s.fresh("values"), s.fresh("index")
    sorted_, order = s.fresh("sorted"), s.fresh("order")
    made = [node, s.insert(at, "TopK", [node.output[1], node.input[1]], [sorted_, order], axis=axis, largest=0, sorted=1)]
    made.append(s.insert(at + 1, "GatherElements", [node.output[0], order], [values], axis=axis))
    made.append(s.insert(at + 2, "GatherElements", [node.output[1], order], [index], axis=axis))
    return made


def input_not_scaled(s):
    """What goes in is as large as the noise, whatever the noise."""
    names = {i.name for i in s.graph.input}

    def fits(n):
        root = s.made_by(n.input[1], "Sqrt")
        total = s.made_by(root.input[0], "Add") if root is not None else None
        return n.input[0] in names and total is not None and s.made_by(total.input[0], "Mul") is not None
    node = s.pick("Div", fits)
    return s.bypass(node, node.input[0]) if node is not None else None


def middle_slopes_once(s):
    def fits(n):
        return scalar(s, n.input[1]) == 2 and s.made_by(n.input[0], "Add") is not None and [b.op_type for b in s.consumers(n.output[0])] == ["Add"]
    node = s.pick("Mul", fits)
    return s.bypass(node, node.input[0]) if node is not None else None


def degrees_of_one_end(s):
    """Divided by how many neighbours the one end has, not by the roots of both."""
    def fits(n):
        turned, inner = s.made_by(n.input[1], "Transpose"), s.made_by(n.input[0], "Div")
        return turned is not None and inner is not None and inner.input[1] == turned.input[0] and s.made_by(inner.input[1], "Sqrt") is not None
    node = s.pick("Div", fits)
    if node is None:
        return None
    inner = s.producer(node.input[0])
    inner.input[1] = s.producer(inner.input[1]).input[0]
    return [inner, *s.bypass(node, inner.output[0])]


ROWS = [
    ("sums_along_first_axis", "tvm", "apache/tvm#19437", first_axis_for_sums),
    ("score_before_resize", "ultralytics", "ultralytics/ultralytics#13912", score_before_resize),
    ("convolution_before_resize", "WaveGrad", "ivanvovk/WaveGrad#24", convolution_before_resize),
    ("second_flip_lost", "tvm", "apache/tvm#19511", second_flip_lost),
    ("best_in_order_of_place", "tensorflow", "tensorflow/tensorflow#34973", by_place),
    ("input_not_scaled_by_noise", "diffusers", "huggingface/diffusers#3544", input_not_scaled),
    ("middle_slopes_once", "volesti", "GeomScale/volesti#375", middle_slopes_once),
    ("degrees_of_one_end", "SDCN", "bdy9527/SDCN#25", degrees_of_one_end),
    ("adaptive_bins", "torch.onnx", "pytorch/pytorch#74034", adaptive_bins),
    ("slice_step_lost", "ncnn", "Tencent/ncnn#6257", step_lost),
    ("sides_of_picture_exchanged", "lpips-tensorflow", "alexlee-gk/lpips-tensorflow#2", sides_of_picture),
    ("flow_not_scaled", "optical-flow", "ericPrince/optical-flow#3", flow_not_scaled),
    ("guidance_less_one", "diffusers", "huggingface/diffusers#5882", guidance_less_one),
]
