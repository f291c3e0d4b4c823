"""Fourth generation: faults of boxes and of what they score."""
import numpy as np

from surgery import scalar


def corners(s):
    """Nodes that join four columns to boxes."""
    return [n for n in s.nodes("Concat") if len(n.input) == 4 and {s.shape(x)[-1:] for x in n.input} == {(1,)} and s.shape(n.output[0])[-1:] == (4,)]


def sides_exchanged(s):
    """Up and down before left and right."""
    node = s.choose(corners(s))
    if node is None:
        return None
    for a, b in ((0, 1), (2, 3)):
        node.input[a], node.input[b] = node.input[b], node.input[a]
    return [node]


def one_more(s):
    """From the first to the last pixel, both counted: a box is one larger."""
    def fits(n):
        maker = s.made_by(n.input[0], "Split")
        return maker is not None and maker is s.producer(n.input[1]) and len(maker.output) == 4
    node = s.pick("Sub", fits)
    return s.after(node.output[0], ("Add", [".", s.constant(np.float32(1))], {})) if node is not None else None


def variance_lost(s):
    def fits(n):
        c, behind = scalar(s, n.input[1]), [b.op_type for b in s.consumers(n.output[0])]
        return c is not None and (np.isclose(c, 0.1) or np.isclose(c, 0.2)) and s.const(n.input[0]) is None and len(s.shape(n.output[0])) > 2 \
            and s.shape(n.output[0])[-1] < 3 and behind in (["Exp"], ["Mul"])
    node = s.pick("Mul", fits)
    return s.bypass(node, node.input[0]) if node is not None else None


def objectness_lost(s):
    """How sure it is that there is anything does not count."""
    def fits(n):
        makers = [s.made_by(x, "Sigmoid") for x in n.input]
        return all(m is not None for m in makers) and s.shape(n.input[0]) != s.shape(n.input[1])
    node = s.pick("Mul", fits)
    if node is None:
        return None
    i = int(np.size(s.values[node.input[1]]) > np.size(s.values[node.input[0]]))
    return s.bypass(node, node.input[i])


def strides_exchanged(s):
    """Each level's steps are another's."""
    sites = [(n, scalar(s, n.input[1])) for n in s.nodes("Mul") if scalar(s, n.input[1]) in (2.0, 4.0, 8.0, 16.0) and len(s.shape(n.output[0])) == 3]
    pair = s.choose([(a, b) for k, a in enumerate(sites) for b in sites[k + 1:] if a[1] != b[1]])
    if pair is None:
        return None
    made = []
    for n, c in sites:
        other = {pair[0][1]: pair[1][1], pair[1][1]: pair[0][1]}.get(c)
        if other:
            made += s.set_const(n, 1, np.float32(other).reshape(s.const(n.input[1]).shape))
    return made


ROWS = [
    ("box_sides_exchanged", "tensorflow models", "tensorflow/models#9988", sides_exchanged),
    ("box_size_plus_one", "deepface", "serengil/deepface#1114", one_more),
    ("box_variance_lost", "TNN", "Tencent/TNN#168", variance_lost),
    ("objectness_lost", "netspresso", "Nota-NetsPresso/netspresso-trainer#372", objectness_lost),
    ("strides_exchanged", "darknet", "AlexeyAB/darknet#4346", strides_exchanged),
]
