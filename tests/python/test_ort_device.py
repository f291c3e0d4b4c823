"""assay.onnxruntime with values in a GPU's memory, on the CUDA platform without a GPU."""
import gc
import unittest

from api_case import ApiCase, T, chain, h, model, np, value
from device_case import Array, Driver, Stream

import assay.onnxruntime as ort

driver = Driver()
random = np.random.default_rng(5)
CUDA, CPU = ["CUDAExecutionProvider"], ["CPUExecutionProvider"]


def fresh(*shape):
    return random.standard_normal(shape).astype(np.float32)


class DeviceCase(ApiCase):
    def setUp(self):
        super().setUp()
        self.stream = Stream(driver)
        self.data = chain(2, 8).SerializeToString()
        self.host = ort.InferenceSession(self.data, providers=CPU)

    def expected(self, x):
        return self.host.run(None, {"x": x})[0]

    def near(self, have, x):
        np.testing.assert_allclose(have, self.expected(x), rtol=1e-4, atol=1e-5)


class TestValues(DeviceCase):
    def test_values_lie_on_the_gpu(self):
        x = fresh(3, 8)
        v = ort.OrtValue.ortvalue_from_numpy(x, "cuda", 0)
        self.assertEqual((v.device_name(), v.shape(), v.data_type(), v.tensor_size_in_bytes()),
                         ("cuda", [3, 8], "tensor(float)", x.nbytes))
        self.assertEqual(v.__dlpack_device__(), (2, 0))
        np.testing.assert_array_equal(v.numpy(), x)
        x[:] = 0
        self.assertTrue(v.numpy().any())  # a copy
        new = fresh(3, 8)
        v.update_inplace(new)
        np.testing.assert_array_equal(v.numpy(), new)
        room = ort.OrtValue.ortvalue_from_shape_and_type([3, 8], np.float32, "cuda", 0)
        ort.copy_tensors([v], [room])
        np.testing.assert_array_equal(room.numpy(), new)
        with self.assertRaises(RuntimeError):
            ort.OrtValue.ortvalue_from_numpy(x, "cuda", 9)

    def test_arrays_of_other_packages(self):
        x = fresh(3, 8)
        theirs = Array(self.stream, x)
        v = ort.OrtValue.from_dlpack(theirs)
        self.assertEqual((v.data_ptr(), v.device_name()), (theirs.address.value, "cuda"))
        session = ort.InferenceSession(self.data, providers=CUDA)
        for late in (0.0, 0.03):
            new = fresh(3, 8)
            theirs.write(new, late)
            self.near(session.run_with_ort_values(None, {"x": v})[0].numpy(), new)
        on_cpu = ort.InferenceSession(self.data, providers=["CPUExecutionProvider"])
        theirs.write(new := fresh(3, 8), late=0.03)
        self.near(on_cpu.run_with_ort_values(None, {"x": v})[0].numpy(), new)  # copied when it was written
        theirs.write(new := fresh(3, 8), late=0.03)
        np.testing.assert_array_equal(v.numpy(), new)
        capsule = ort.OrtValue.from_dlpack(theirs.__dlpack__(stream=None))
        self.assertEqual(capsule.data_ptr(), theirs.address.value)
        with self.assertRaises(RuntimeError):
            ort.OrtValue.from_dlpack(Array(self.stream, x, strides=(1, 3)))
        with self.assertRaises(RuntimeError):
            ort.OrtValue.from_dlpack(Array(self.stream, x, device=3))


class TestBinding(DeviceCase):
    def test_everything_on_the_gpu(self):
        session = ort.InferenceSession(self.data, providers=CUDA)
        for rows in (1, 4, 4):
            x = fresh(rows, 8)
            given = ort.OrtValue.ortvalue_from_numpy(x, "cuda", 0)
            room = ort.OrtValue.ortvalue_from_shape_and_type([rows, 8], np.float32, "cuda", 0)
            binding = session.io_binding()
            binding.bind_ortvalue_input("x", given)
            binding.bind_ortvalue_output("y", room)
            session.run_with_iobinding(binding)
            self.near(room.numpy(), x)
            self.assertEqual(binding.get_outputs()[0].data_ptr(), room.data_ptr())
            self.near(binding.copy_outputs_to_cpu()[0], x)
            binding = session.io_binding()
            binding.bind_input("x", "cuda", 0, np.float32, [rows, 8], given.data_ptr())
            binding.bind_output("y", "cuda")
            session.run_with_iobinding(binding)
            self.assertEqual(binding.get_outputs()[0].device_name(), "cuda")
            self.near(binding.copy_outputs_to_cpu()[0], x)

    def test_memory_of_another_package_by_its_address(self):
        session = ort.InferenceSession(self.data, providers=CUDA)
        x = fresh(4, 8)
        theirs, out = Array(self.stream, x), Array(self.stream, np.zeros((4, 8), np.float32))
        self.stream.wait()
        binding = session.io_binding()
        binding.bind_input("x", "cuda", 0, np.float32, (4, 8), theirs.address.value)
        binding.bind_output("y", "cuda", 0, np.float32, (4, 8), out.address.value)
        binding.synchronize_inputs()
        session.run_with_iobinding(binding)
        binding.synchronize_outputs()
        self.near(out.read(), x)
        self.near(binding.copy_outputs_to_cpu()[0], x)
        with self.assertRaises(RuntimeError):
            binding.bind_input("x", "cuda", 0, np.float32, (4, 8), 0)

    def test_sessions_on_the_cpu_copy(self):
        x = fresh(2, 8)
        given = ort.OrtValue.ortvalue_from_numpy(x, "cuda", 0)
        room = ort.OrtValue.ortvalue_from_shape_and_type([2, 8], np.float32, "cuda", 0)
        binding = self.host.io_binding()
        binding.bind_ortvalue_input("x", given)
        binding.bind_ortvalue_output("y", room)
        self.host.run_with_iobinding(binding)
        np.testing.assert_array_equal(room.numpy(), self.expected(x))
        binding.clear_binding_outputs()
        binding.bind_output("y", "cuda")
        self.host.run_with_iobinding(binding)
        self.assertEqual(binding.get_outputs()[0].device_name(), "cuda")
        np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], self.expected(x))
        self.assertEqual(self.host.run_with_ort_values(["y"], {"x": given})[0].device_name(), "cpu")

    def test_outputs_whose_sizes_only_a_run_tells(self):
        proto = model([h.make_node("NonZero", ["x"], ["i"]), h.make_node("Transpose", ["i"], ["y"], perm=[1, 0])],
                      [value("x", T.FLOAT, ["N"])], [value("y", T.INT64, ["K", 1])])
        session = ort.InferenceSession(proto.SerializeToString(), providers=CUDA)
        for x in ([0, 1, 0, 2], [1, 1, 1, 1], [0, 0, 0, 0]):
            x = np.asarray(x, np.float32)
            binding = session.io_binding()
            binding.bind_ortvalue_input("x", ort.OrtValue.ortvalue_from_numpy(x, "cuda", 0))
            binding.bind_output("y", "cuda")
            session.run_with_iobinding(binding)
            np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], np.argwhere(x))

    def test_memory_is_given_back(self):
        session = ort.InferenceSession(self.data, providers=CUDA)
        values = [ort.OrtValue.ortvalue_from_numpy(fresh(64, 8), "cuda", 0) for _ in range(3)]
        outputs = [session.run_with_ort_values(None, {"x": v})[0].numpy() for v in values]
        del values
        gc.collect()
        self.assertEqual([o.shape for o in outputs], [(64, 8)] * 3)


if __name__ == "__main__":
    unittest.main()
