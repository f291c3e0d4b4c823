"""Ctrl-C in the middle of long calls: how soon it is answered, and that what was held is freed.

    test_api_interrupt.py            the test: LIMIT_S is generous, for slow machines that do other things as well
    test_api_interrupt.py --figures  prints how long each answer took, several times each
"""
import os
import signal
import statistics
import sys
import tempfile
import threading
import time
import unittest

from api_case import ApiCase, F, T, assay, chain, draw, h, model, np, onnx, value

LIMIT_S = 1.0
WIDTH, ROWS = 768, 1024


def convolutions(layers=4, channels=64, size=96):
    """x float[1, channels, size, size] -> 3x3 convolutions."""
    draws = np.random.default_rng(0)
    nodes, weights = [], {}
    for i in range(layers):
        weights["w%d" % i] = draws.standard_normal((channels, channels, 3, 3)).astype(np.float32) / 24
        nodes.append(h.make_node("Conv", ["x" if i == 0 else "a%d" % (i - 1), "w%d" % i], ["y" if i == layers - 1 else "a%d" % i],
                                 pads=[1, 1, 1, 1]))
    shape = [1, channels, size, size]
    return model(nodes, [value("x", F, shape)], [value("y", F, shape)], weights)


def endless():
    """A Loop of a million small products: minutes in one node. Its size is open: a build does not try it out."""
    body = h.make_graph([h.make_node("MatMul", ["s", "w"], ["t"]), h.make_node("Tanh", ["t"], ["u"]),
                         h.make_node("Identity", ["c"], ["d"])], "body",
                        [value("i", T.INT64, []), value("c", T.BOOL, []), value("s", F, ["N", 64])],
                        [value("d", T.BOOL, []), value("u", F, ["N", 64])])
    return model([h.make_node("Loop", ["n", "", "x"], ["y"], body=body)], [value("x", F, ["N", 64])], [value("y", F, ["N", 64])],
                 {"n": np.int64(1000000), "w": draw(64, 64)})


def calls():
    """name -> a call that takes seconds, on inputs that are made for it."""
    wide, x = assay.load(chain(8, WIDTH)), draw(ROWS, WIDTH)
    image = draw(1, 64, 96, 96)
    context = assay.build(wide).context(threads=1)
    looping = assay.build(endless()).context(threads=1)
    small = draw(64, 64)
    tall = draw(16 * ROWS, WIDTH)
    return {
        "check": lambda: assay.check(wide, precision="fp16", inputs=x),
        "check_conv": lambda: assay.check(convolutions(), precision="bf16", inputs=[{"x": image}] * 8),
        "truth": lambda: wide.run(tall, mode="truth"),
        "loop": lambda: assay.load(endless()).run(small),
        "run": lambda: context.run(tall),
        "run_loop": lambda: looping.run(small),
        "build": lambda: assay.build(wide, shapes={"x": (16 * ROWS, WIDTH)}, measure=True),
        "tune": lambda: assay.tune(wide, inputs={"x": x}, require="snr_db >= 70"),
        "certify": lambda: assay.certify(wide, precision="fp16", inputs={"x": x}),
        "edit": lambda: assay.edit(wide, "cast", to="fp16", inputs={"x": x}),
        "debug_precision": lambda: assay.debug.precision(wide, precision="fp16", inputs={"x": x}, mode="linear", require="snr_db >= 200"),
        "debug_batch": lambda: assay.debug.batch(wide, inputs={"x": x[:64]}),
        "debug_reduce": lambda: assay.debug.reduce(wide, precision="fp16", inputs={"x": x}, require="snr_db >= 200"),
        "audit": lambda: assay.audit(wide, precision="fp16", box=1e5, inputs={"x": x}),
    }


def interrupted(call, after_s):
    """Seconds from the signal until KeyboardInterrupt arrived; None: the call was done before."""
    sent = []

    def send():
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)
    timer = threading.Timer(after_s, send)
    timer.start()
    try:
        call()
    except KeyboardInterrupt:
        return time.perf_counter() - sent[0]
    finally:
        timer.cancel()
    return None


def settled(seconds=20):
    """Bytes that the library has when calls that go on in workers have ended."""
    from assay import _calls
    end = time.perf_counter() + seconds
    while time.perf_counter() < end and any(w.job for w in _calls._workers):
        time.sleep(0.01)
    import gc
    gc.collect()
    return assay._library.lib.assay_memory_used()


class TestInterrupt(ApiCase):
    def test_ctrl_c_is_answered_and_frees(self):
        import assay._library as L
        from ctypes import c_int64
        L.declare({"assay_memory_used": (c_int64, [])})
        answered = 0
        for name, call in calls().items():
            with self.subTest(name):
                before = settled()
                took = interrupted(call, 0.15)
                # A fast machine may be done before: the others are longer.
                answered += took is not None
                self.assertLess(took or 0, LIMIT_S)
                # What a context, a session or a model keeps for its next call is no leak.
                self.assertLess(settled() - before, 300e6)
        self.assertGreaterEqual(answered, 6)

    def test_a_context_runs_again(self):
        context = assay.build(endless()).context(threads=1)
        x = draw(64, 64)
        self.assertIsNotNone(interrupted(lambda: context.run(x), 0.2))
        settled()
        context = assay.build(chain(2, WIDTH)).context(threads=1)
        interrupted(lambda: [context.run(draw(64, WIDTH)) for _ in range(10000)], 0.2)
        settled()
        self.assertEqual(context.run(draw(2, WIDTH))[0].shape, (2, WIDTH))

    def test_a_handler_that_does_not_raise_ends_nothing(self):
        seen = []
        before = signal.signal(signal.SIGINT, lambda *_: seen.append(time.perf_counter()))
        self.addCleanup(signal.signal, signal.SIGINT, before)
        m, x = assay.load(chain(3, 768)), draw(768, 768)
        begin = time.perf_counter()
        threading.Timer(0.02, os.kill, (os.getpid(), signal.SIGINT)).start()
        out = m.run(x, mode="truth")[0]
        self.assertEqual(out.shape, (768, 768))
        while not seen and time.perf_counter() < begin + 5:
            time.sleep(0.01)
        self.assertTrue(seen)

    def test_exceptions_of_progress_end_the_call(self):
        def fail(what, part):
            raise LookupError("enough")
        begin = time.perf_counter()
        with self.assertRaisesRegex(LookupError, "enough"):
            assay.check(chain(8, WIDTH), precision="fp16", inputs=draw(ROWS, WIDTH), progress=fail)
        self.assertLess(time.perf_counter() - begin, 20)


def figures():
    for name, call in calls().items():
        times = [t for t in (interrupted(call, after) for after in (0.05, 0.1, 0.2, 0.3)) if t is not None]
        begin = time.perf_counter()
        settled(30)
        if times:
            print("%-12s median %5.1f ms, slowest %5.1f ms of %d; freed %.1f ms after the last"
                  % (name, 1e3 * statistics.median(times), 1e3 * max(times), len(times), 1e3 * (time.perf_counter() - begin)), flush=True)
        else:
            print("%-12s was done before the signal" % name)


if __name__ == "__main__":
    import assay._library as L
    from ctypes import c_int64
    L.declare({"assay_memory_used": (c_int64, [])})
    if "--figures" in sys.argv:
        figures()
    else:
        unittest.main()
