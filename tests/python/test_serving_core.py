"""Serving without a server: what is run together, what each request gets, and what ends."""
import asyncio
import gzip
import json
import struct
import threading
import time
import unittest

from api_case import ApiCase, F, T, assay, chain, draw, h, model, np, onnx, value

from assay.serving import (Malformed, NotFound, Overloaded, Repository, ServedModel, Settings, TimedOut, TooLarge,
                           Unavailable, datatypes, http, wire)
from assay.serving.batching import Batch, Pending, Queue


def typed(elem, shape=("N", 2)):
    """x -> Identity -> y."""
    return model([h.make_node("Identity", ["x"], ["y"])], [value("x", elem, list(shape))], [value("y", elem, list(shape))])


def lookup():
    """Row x of a table of four: the second request of a batch can ask for one that is not there."""
    return model([h.make_node("Gather", ["table", "x"], ["y"])], [value("x", T.INT64, ["N"])],
                 [value("y", F, ["N", 3])], {"table": draw(4, 3)})


def slow(width=1024, layers=16):
    return chain(layers, width)


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


class TestQueue(unittest.TestCase):
    def setUp(self):
        self.clock = Clock()

    def queue(self, limit=4, delay=1.0, capacity=8):
        return Queue(lambda key: limit, delay, capacity, self.clock)

    def request(self, rows=1, key="k", deadline=100.0):
        return Pending([], rows, key, deadline)

    def test_a_full_batch_goes_at_once_and_in_order(self):
        queue = self.queue()
        requests = [self.request() for _ in range(6)]
        for r in requests:
            queue.put(r)
        self.assertEqual(queue.take().requests, requests[:4])
        self.clock.now = 1.0
        self.assertEqual(queue.take().requests, requests[4:])
        self.assertEqual(len(queue), 0)

    def test_keys_are_not_mixed(self):
        queue = self.queue(delay=0.0)
        requests = [self.request(key=k) for k in "abab"]
        for r in requests:
            queue.put(r)
        self.assertEqual(queue.take().requests, requests[::2])
        self.assertEqual(queue.take().requests, requests[1::2])

    def test_rows_count_and_a_request_is_never_split(self):
        queue = self.queue(delay=0.0)
        requests = [self.request(rows) for rows in (3, 2, 2, 9)]
        for r in requests:
            queue.put(r)
        taken = [queue.take() for _ in range(3)]
        self.assertEqual([b.requests for b in taken], [requests[:1], requests[1:3], requests[3:]])
        self.assertEqual([b.rows for b in taken], [3, 4, 9])

    def test_late_and_abandoned_requests_are_dropped(self):
        queue = self.queue(delay=0.0)
        late, gone, good = self.request(deadline=1.0), self.request(), self.request()
        for r in (late, gone, good):
            queue.put(r)
        gone.abandon()
        self.clock.now = 2.0
        self.assertEqual(queue.take().requests, [good])
        self.assertIsInstance(late.future.exception(0), TimedOut)

    def test_a_full_queue_refuses_but_not_for_the_dead(self):
        queue = self.queue(capacity=2)
        first = self.request(deadline=1.0)
        queue.put(first)
        queue.put(self.request())
        with self.assertRaises(Overloaded):
            queue.put(self.request())
        self.clock.now = 1.5
        queue.put(self.request())
        self.assertIsInstance(first.future.exception(0), TimedOut)

    def test_a_closed_queue_gives_what_waits_and_then_nothing(self):
        queue = self.queue(delay=50.0)
        queue.put(self.request())
        queue.close()
        self.assertEqual(queue.take().rows, 1)
        self.assertIsNone(queue.take())
        with self.assertRaises(Unavailable):
            queue.put(self.request())

    def test_a_run_ends_when_all_have_gone(self):
        requests, ended = [self.request(), self.request()], []
        batch = Batch(requests)
        batch.run_by(lambda: ended.append(1))
        requests[0].abandon()
        self.assertEqual(ended, [])
        requests[1].abandon()
        self.assertEqual(ended, [1])


class ServedCase(ApiCase):
    def served(self, proto, **settings):
        path = self.path("m%d.onnx" % id(proto))
        onnx.save(proto, path)
        served = ServedModel(path, "m", settings=settings)
        self.addCleanup(served.close)
        return served

    def answers(self, served, requests, timeout_s=None):
        """What each of several requests at once gets: outputs or an exception."""
        async def together():
            return await asyncio.gather(*[served.infer(r, timeout_s) for r in requests], return_exceptions=True)
        return asyncio.run(together())


class TestServed(ServedCase):
    def test_batches_have_the_bits_of_requests_alone(self):
        proto = chain(4, 48)
        served = self.served(proto, instances=2, threads=1, max_batch=8, max_delay_ms=20)
        self.assertTrue(served.batching)
        runs = []
        served._metrics.ran = lambda rows, seconds: runs.append(rows)
        requests = [{"x": draw(1 + k % 3, 48, seed=k)} for k in range(60)]
        engine = assay.build(proto)
        for request, answer in zip(requests, self.answers(served, requests)):
            self.assertEqual(answer[0].tobytes(), engine.run(request)[0].tobytes())
        self.assertEqual(sum(runs), sum(len(r["x"]) for r in requests))
        self.assertLess(len(runs), 40)
        self.assertLessEqual(max(runs), 8)

    def test_other_sizes_are_not_mixed(self):
        proto = model([h.make_node("Softmax", ["x"], ["y"], axis=1)], [value("x", F, ["N", "L"])],
                      [value("y", F, ["N", "L"])])
        served = self.served(proto, max_delay_ms=20)
        requests = [{"x": draw(1, 5 + k % 3, seed=k)} for k in range(24)]
        engine = assay.build(proto)
        for request, answer in zip(requests, self.answers(served, requests)):
            self.assertEqual(answer[0].tobytes(), engine.run(request)[0].tobytes())

    def test_rows_that_depend_on_each_other_are_not_put_together(self):
        over_batch = model([h.make_node("Softmax", ["x"], ["y"], axis=0)], [value("x", F, ["N", 3])],
                           [value("y", F, ["N", 3])])
        with self.assertLogs("assay.serving", "WARNING"):
            served = self.served(over_batch, max_delay_ms=20)
        self.assertFalse(served.batching)
        for answer in self.answers(served, [{"x": draw(1, 3, seed=k)} for k in range(8)]):
            np.testing.assert_array_equal(answer[0], 1)

    def test_one_bad_request_does_not_spoil_its_neighbors(self):
        served = self.served(lookup(), max_delay_ms=50)
        self.assertTrue(served.batching)
        answers = self.answers(served, [{"x": np.array([k])} for k in (0, 99, 1, 2)])
        self.assertIsInstance(answers[1], Malformed)
        table = draw(4, 3)
        for k, answer in zip((0, 1, 2), (answers[0], answers[2], answers[3])):
            np.testing.assert_array_equal(answer[0], table[k:k + 1])

    def test_a_plan_gives_its_profile(self):
        plan = self.path("m.plan")
        assay.build(chain(2, 8), shapes={"x": assay.Range((1, 8), (2, 8), (3, 8))}).save(plan)
        with ServedModel(plan, settings={"max_delay_ms": 20}) as served:
            self.assertEqual(served.signature.limit(((8,),)), 3)
            with self.assertRaises(Malformed) as error:
                served.submit({"x": draw(4, 8)})
            self.assertSays(error, "[1, 8]", "[3, 8]")
            self.assertEqual(len(self.answers(served, [{"x": draw(2, 8)}])[0][0]), 2)
        with self.assertRaises(assay.InvalidArgument):
            ServedModel(plan, settings={"build": {"precision": "fp16"}})

    def test_what_a_request_may_get_wrong(self):
        served = self.served(chain(1, 4))
        for inputs, word in (({}, "missing"), ({"q": draw(1, 4)}, "no input"), ({"x": draw(1, 5)}, "shape"),
                             ({"x": draw(4)}, "shape"), ({"x": draw(1, 4).astype("f8")}, "FP32"),
                             ({"x": draw(0, 4)}, "built for")):
            with self.assertRaises(Malformed, msg=word) as error:
                served.submit(inputs)
            self.assertSays(error, word)

    def test_deadlines_and_a_full_queue(self):
        served = self.served(slow(), max_queue=2, batching=False)
        x = {"x": draw(8, 1024)}
        answers = self.answers(served, [x] * 8, timeout_s=0.001)
        kinds = {type(a) for a in answers}
        self.assertTrue(kinds <= {TimedOut, Overloaded} and len(kinds) == 2, kinds)
        self.assertEqual(len(self.answers(served, [x])), 1)  # it goes on

    def test_a_caller_that_goes_ends_its_run(self):
        served = self.served(slow(), batching=False)
        x, ran = {"x": draw(8, 1024)}, []
        served._metrics.ran = lambda rows, seconds: ran.append(seconds)

        async def scene():
            whole = asyncio.ensure_future(served.infer(x))
            await whole
            while not ran:
                await asyncio.sleep(.001)
            task = asyncio.ensure_future(served.infer(x))
            await asyncio.sleep(ran[0] / 10)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            self.assertTrue(task.cancelled())
            return await served.infer(x)

        self.assertEqual(asyncio.run(scene())[0].shape, (8, 1024))

    def test_closing_answers_what_was_there(self):
        served = self.served(slow(512, 10), max_delay_ms=1000, max_batch=4)
        requests = [served.submit({"x": draw(1, 512)}) for _ in range(7)]
        served.close()
        for request in requests:
            self.assertEqual(request.future.result(0)[0].shape, (1, 512))
        with self.assertRaises(Unavailable):
            served.submit({"x": draw(1, 512)})

    def test_closing_without_patience_refuses(self):
        served = self.served(slow(), batching=False)
        requests = [served.submit({"x": draw(8, 1024)}) for _ in range(4)]
        served.close(0)
        for request in requests:
            self.assertIsInstance(request.future.exception(0), (Unavailable, type(None)))
        self.assertIsInstance(requests[-1].future.exception(0), Unavailable)

    def test_settings_are_checked(self):
        for wrong, word in (({"instance": 2}, "'instances'?"), ({"instances": 0}, "instances"),
                            ({"timeout_ms": -1}, "timeout_ms"), ({"max_batch": 1.5}, "max_batch"),
                            ({"build": 3}, "build"), ({"threads": True}, "threads")):
            with self.assertRaises(assay.InvalidArgument) as error:
                Settings.of(wrong)
            self.assertSays(error, word)


class TestRepository(ServedCase):
    def test_versions_and_replacement_under_load(self):
        for name, seed in (("a", 0), ("b", 1)):
            onnx.save(chain(3, 32, seed=seed), self.path(name))
        onnx.save(chain(3, 32, seed=1), self.path("b"))
        repository = Repository()
        repository.load("m", self.path("a"), "2")
        repository.load("m", self.path("b"), "10")
        self.assertEqual(repository.get("m").version, "10")
        with self.assertRaises(NotFound):
            repository.get("m", "3")
        x = draw(1, 32)
        old, new = (assay.build(self.path(n)).run(x)[0].tobytes() for n in "ab")
        seen, stop = [], threading.Event()

        def client():
            async def calls():
                while not stop.is_set():
                    _, outputs = await repository.infer("m", "2", wire.Call(None, {"x": x}, [], None))
                    seen.append(outputs[0].tobytes())
            asyncio.run(calls())
        threads = [threading.Thread(target=client) for _ in range(3)]
        for t in threads:
            t.start()
        time.sleep(.1)
        repository.load("m", self.path("b"), "2")
        time.sleep(.1)
        stop.set()
        for t in threads:
            t.join()
        self.assertEqual(set(seen), {old, new})
        self.assertEqual(seen[-1], new)
        with self.assertRaises(assay.NotFound):
            repository.load("m", self.path("none"), "2")
        self.assertTrue(repository.get("m", "2").ready)
        repository.unload("m")
        with self.assertRaises(NotFound):
            repository.get("m")
        repository.reload("m")
        self.assertEqual(sorted(m.version for m in repository.all()), ["10", "2"])
        asyncio.run(repository.close())


class TestWire(ServedCase):
    def test_every_type_as_bytes_and_as_elements(self):
        for elem, name in ((T.FLOAT, "FP32"), (T.DOUBLE, "FP64"), (T.FLOAT16, "FP16"), (T.BFLOAT16, "BF16"),
                           (T.INT8, "INT8"), (T.INT16, "INT16"), (T.INT32, "INT32"), (T.INT64, "INT64"),
                           (T.UINT8, "UINT8"), (T.UINT16, "UINT16"), (T.UINT32, "UINT32"), (T.UINT64, "UINT64"),
                           (T.BOOL, "BOOL"), (T.STRING, "BYTES")):
            with self.subTest(name):
                served = self.served(typed(elem))
                self.assertEqual(served.metadata()["inputs"], [{"name": "x", "datatype": name, "shape": [-1, 2]}])
                elements = {"BOOL": [True, False], "BYTES": ["a\u00e9", ""]}.get(name, [3, 1])
                raw = bytes(datatypes.to_raw(np.array(elements, served.signature.inputs[0].dtype)))
                item = {"name": "x", "datatype": name, "shape": [1, 2]}
                for body in ({**item, "data": elements}, {**item, "parameters": {"binary_data_size": len(raw)}}):
                    head = json.dumps({"inputs": [body], "outputs": [{"name": "y", "parameters": {"binary_data": True}}]})
                    call = wire.read(served.signature, head.encode() + (raw if "data" not in body else b""),
                                     str(len(head.encode())))
                    headers, parts = wire.write(served, call, self.answers(served, [call.inputs])[0])
                    self.assertEqual(bytes(parts[1]), raw)
                    call = call._replace(outputs=[wire.Wanted(0, False)])
                    answer = json.loads(wire.write(served, call, self.answers(served, [call.inputs])[0])[1][0])
                    self.assertEqual(answer["outputs"][0]["data"], elements)

    def test_what_a_body_may_get_wrong(self):
        signature = self.served(typed(T.INT8)).signature
        good = {"name": "x", "datatype": "INT8", "shape": [1, 2], "data": [1, 2]}
        heads = [b"", b"{", b"[]", b"{}", b'{"inputs": 3}', b'{"inputs": [3]}', b"\xff", b"[" * 100000]
        for change in ({"data": [1]}, {"data": [1, 300]}, {"data": [1.5, 2]}, {"data": ["a", "b"]}, {"data": None},
                       {"data": {"a": 1}}, {"shape": [2, 1]}, {"shape": [-1, -2]}, {"shape": "12"}, {"name": "z"},
                       {"shape": [1 << 62, 1 << 62]}, {"name": []}, {"datatype": "FP32"}, {"parameters": 3},
                       {"parameters": {"binary_data_size": 9}}, {"parameters": {"binary_data_size": -1}},
                       {"parameters": {"shared_memory_region": "r"}}):
            item = {**good, **change}
            heads.append(json.dumps({"inputs": [item]}).encode())
        heads += [json.dumps({"inputs": [good, good]}).encode(), json.dumps({"inputs": [good], "id": 3}).encode(),
                  json.dumps({"inputs": [good], "outputs": [{"name": "q"}]}).encode(),
                  json.dumps({"inputs": [good], "parameters": {"timeout": "soon"}}).encode()]
        for head in heads:
            with self.assertRaises(Malformed, msg=head[:80]):
                call = wire.read(signature, head, None)
                signature.checked(call.inputs)
        for length in ("-1", "x", "100000"):
            with self.assertRaises(Malformed):
                wire.read(signature, json.dumps({"inputs": [good]}).encode(), length)
        with self.assertRaises(Malformed):  # bytes that belong to nothing
            head = json.dumps({"inputs": [good]}).encode()
            wire.read(signature, head + b"zz", str(len(head)))

    def test_strings_that_are_cut_short(self):
        for raw in (b"\1", struct.pack("<I", 5) + b"abc", struct.pack("<I", 1) + b"\xff", struct.pack("<I", 1 << 31)):
            with self.assertRaises(Malformed):
                datatypes.from_raw("x", "BYTES", np.dtype(object), [1], raw)

    def test_bodies_too_large_or_too_slow(self):
        def receiver(*chunks, pause=0.0):
            left = list(chunks)

            async def receive():
                await asyncio.sleep(pause)
                return {"type": "http.request", "body": left.pop(0), "more_body": bool(left)}
            return receive

        def read(receive, headers, patience=5.0):
            return asyncio.run(http.read_body(receive, headers, 10, patience))
        self.assertEqual(read(receiver(b"abc", b"def"), {}), b"abcdef")
        for receive, headers in ((receiver(b"a" * 11), {"content-length": "11"}), (receiver(b"a" * 8, b"a" * 8), {})):
            with self.assertRaises(TooLarge):
                read(receive, headers)
        with self.assertRaises(http.TooSlow):
            read(receiver(b"a", b"b", pause=.2), {}, .05)
        packed = gzip.compress(b"a" * 1000)
        headers = {"content-encoding": "gzip"}
        self.assertEqual(asyncio.run(http.read_body(receiver(packed), headers, 1000, 5.0)), b"a" * 1000)
        with self.assertRaises(TooLarge):
            asyncio.run(http.read_body(receiver(packed), headers, 999, 5.0))
        for body in (packed[:10], b"no gzip"):
            with self.assertRaises(Malformed):
                read(receiver(body), headers)


if __name__ == "__main__":
    unittest.main()
