"""Arrays in a GPU's memory, in and out of contexts, on the CUDA platform without a GPU."""
import gc
import unittest

from api_case import ApiCase, T, assay, chain, h, model, np, value
from device_case import Array, Driver, Stream

driver = Driver()
random = np.random.default_rng(3)


def fresh(*shape):
    """Normal float32, others each time."""
    return random.standard_normal(shape).astype(np.float32)


class DeviceCase(ApiCase):
    def setUp(self):
        super().setUp()
        self.stream = Stream(driver)

    def engine(self, sizes=2, width=8, **options):
        proto = chain(sizes, width)
        self.on_host = assay.build(proto)
        return assay.build(proto, target="cuda", **options)

    def near(self, have, x):
        np.testing.assert_allclose(have, self.on_host.run(x)[0], rtol=1e-4, atol=1e-5)


class TestInputs(DeviceCase):
    def test_an_input_is_read_where_it_lies(self):
        c = self.engine().context()
        for rows in (1, 3, 3, 5):
            x = fresh(rows, 8)
            self.near(c.run(Array(self.stream, x))[0], x)
            self.near(c.run({"x": Array(self.stream, x, old=True)})[0], x)
            self.near(c.run([x])[0], x)  # and from the host again
            self.near(c.run(Array(self.stream, x, offset=4 * rows))[0], x)

    def test_a_run_comes_after_what_the_package_does(self):
        c = self.engine().context()
        x = Array(self.stream, np.zeros((4, 8), np.float32))
        c.run(x)
        for _ in range(3):
            new = fresh(4, 8)
            x.write(new, late=0.05)
            self.near(c.run(x)[0], new)
        self.assertTrue(all(s not in (None, -1, 0) for s in x.streams))

    def test_a_bound_input_is_followed_in_every_run(self):
        c = self.engine().context()
        x = Array(self.stream, fresh(4, 8))
        c.bind_input("x", x)
        c.run()
        for _ in range(2):
            new = fresh(4, 8)
            x.write(new, late=0.05)
            self.near(c.run()[0], new)
        new = fresh(2, 8)
        c.bind_input("x", new)
        self.near(c.run()[0], new)

    def test_asynchronous_runs_follow_the_caller(self):
        c = self.engine().context()
        runs = []
        for _ in range(3):
            new = fresh(4, 8)
            x = Array(self.stream, np.zeros((4, 8), np.float32))
            x.write(new, late=0.03)
            runs.append((c.run_async({"x": x}), new))
        for future, new in runs:
            self.near(future.result()[0], new)

    def test_the_context_keeps_the_array(self):
        c = self.engine().context()
        x = fresh(4, 8)
        c.bind_input(0, Array(self.stream, x))
        gc.collect()
        self.near(c.run()[0], x)

    def test_what_does_not_fit_is_said(self):
        c = self.engine().context()
        rows = [(Array(self.stream, fresh(4, 8).astype(np.float64)), "float64"),
                (Array(self.stream, fresh(4, 8), strides=(1, 4)), "contiguous"),
                (Array(self.stream, fresh(4, 8), device=1), "GPU 1"),
                (Array(self.stream, fresh(4, 7)), "7")]
        for array, word in rows:
            with self.assertRaises(assay.InvalidArgument) as error:
                c.run(array)
            self.assertSays(error, word)
            x = fresh(4, 8)
            self.near(c.run(Array(self.stream, x))[0], x)
        with self.on_host.context() as other, self.assertRaises(assay.InvalidArgument) as error:
            other.run(Array(self.stream, fresh(4, 8)))
        self.assertSays(error, "the CPU")

    def test_several_inputs_in_both_places(self):
        proto = model([h.make_node("Add", ["a", "b"], ["s"]), h.make_node("Mul", ["s", "c"], ["y"])],
                      [value(n, T.FLOAT, ["N", 3]) for n in "abc"], [value("y", T.FLOAT, ["N", 3])])
        c = assay.build(proto, target="cuda").context()
        for rows in (2, 2, 4):
            for where in range(8):
                x = [fresh(rows, 3) for _ in range(3)]
                given = {n: Array(self.stream, x[k]) if where >> k & 1 else x[k] for k, n in enumerate("abc")}
                np.testing.assert_array_equal(c.run(given)["y"], (x[0] + x[1]) * x[2])


class TestOutputs(DeviceCase):
    def test_an_output_is_written_where_it_is_wanted(self):
        c = self.engine().context()
        for _ in range(3):
            for rows in (2, 5):
                x, y = fresh(rows, 8), Array(self.stream, np.zeros((rows, 8), np.float32))
                out = c.run(Array(self.stream, x), outputs={"y": y})
                self.assertIs(out["y"], y)
                self.near(y.read(), x)
                self.near(c.run(x)[0], x)  # and to the host again

    def test_a_run_comes_after_what_is_done_to_its_output(self):
        c = self.engine().context()
        y = Array(self.stream, np.zeros((4, 8), np.float32))
        c.bind_output("y", y)
        for _ in range(3):
            x = fresh(4, 8)
            y.write(np.full((4, 8), 7, np.float32), late=0.03)
            c.run(x)
            self.near(y.read(), x)
        c.bind_output("y", None)
        x = fresh(4, 8)
        self.near(c.run(x)[0], x)

    def test_what_does_not_fit_is_said(self):
        c = self.engine().context()
        rows = [(Array(self.stream, np.zeros((4, 8), np.float32), read_only=True), "not writable"),
                (Array(self.stream, np.zeros((4, 8), np.float16)), "float16"),
                (Array(self.stream, np.zeros((4, 8), np.float32), device=2), "GPU 2"),
                (Array(self.stream, np.zeros((3, 8), np.float32)), ""),
                (Array(self.stream, np.zeros((32,), np.float32)), "[32]"),
                ([0.0], "list")]
        for array, word in rows:
            x = fresh(4, 8)
            with self.assertRaises(assay.InvalidArgument) as error:
                c.run(x, outputs={"y": array})
            self.assertSays(error, word)
            self.near(c.run(x)[0], x)

    def test_one_run_feeds_the_next(self):
        c = self.engine().context()
        x = fresh(4, 8)
        a, b = (assay.device_array((4, 8)) for _ in range(2))
        a.write(x)
        for _ in range(4):
            c.run(a, outputs={"y": b})
            x = self.on_host.run(x)[0]
            np.testing.assert_allclose(b.numpy(), x, rtol=1e-4, atol=1e-5)
            a, b = b, a


class TestDeviceArray(DeviceCase):
    def test_elements_come_back(self):
        for dtype in ("float32", "float16", "int8", "int64", "bool", "complex64"):
            for shape in ((), (3,), (0, 4), (2, 3, 5)):
                x = (100 * fresh(*shape)).astype(dtype) if shape else np.asarray(1, dtype)
                on = assay.to_device(x)
                self.assertEqual((on.shape, on.dtype, on.nbytes, on.ndim), (x.shape, x.dtype, x.nbytes, x.ndim))
                np.testing.assert_array_equal(on.numpy(), x)
                np.testing.assert_array_equal(np.asarray(on), x)
                other = np.ascontiguousarray(x[::-1]) if shape else x
                on.write(other)
                np.testing.assert_array_equal(on.numpy(), other)
                self.assertIn(str(x.dtype), repr(on))

    def test_copies_come_after_what_the_owner_does(self):
        theirs = Array(self.stream, np.zeros((4, 8), np.float32))
        on = assay.DeviceArray.at(theirs.address.value, (4, 8), np.float32, owner=theirs)
        for _ in range(3):
            new = fresh(4, 8)
            theirs.write(new, late=0.05)
            np.testing.assert_array_equal(on.numpy(), new)
            theirs.write(new, late=0.05)
            new = fresh(4, 8)
            on.write(new)
            np.testing.assert_array_equal(theirs.read(), new)
        self.assertTrue(all(s not in (None, -1, 0) for s in theirs.streams))

    def test_other_packages_share_it(self):
        on = assay.to_device(np.arange(6, dtype=np.int32).reshape(2, 3))
        view = assay._dlpack.View(on.__dlpack__(stream=1))
        self.assertEqual((view.address, view.shape, view.elem, view.device), (on.address, (2, 3), 6, 2))
        interface = on.__cuda_array_interface__
        self.assertEqual((interface["data"], interface["shape"], interface["typestr"]), ((on.address, False), (2, 3), "<i4"))
        with self.assertRaises(BufferError):
            on.__dlpack__(copy=True)
        before = len(assay._dlpack._given)
        for _ in range(3):
            capsule = on.__dlpack__()
            self.assertEqual(len(assay._dlpack._given), before + 1)
            del capsule  # nobody took it
        del view
        gc.collect()
        self.assertEqual(len(assay._dlpack._given), before - 1)

    def test_errors(self):
        for make in (lambda: assay.device_array((2,), target="cpu"), lambda: assay.device_array((2,), target="cuda:7"),
                     lambda: assay.device_array((2,), target="gpu"), lambda: assay.device_array((-1,)),
                     lambda: assay.device_array((1 << 40, 1 << 40)), lambda: assay.device_array((2,), dtype=object)):
            with self.assertRaises(assay.AssayError):
                make()
        on = assay.to_device(fresh(3))
        for wrong in (fresh(4), fresh(3).astype(np.float64), [1.0, 2.0]):
            with self.assertRaises(assay.InvalidArgument):
                on.write(wrong)
        on.close()
        for use in (on.numpy, lambda: on.address, lambda: on.write(fresh(3)), on.__dlpack__):
            with self.assertRaises(assay.InvalidArgument):
                use()


if __name__ == "__main__":
    unittest.main()
