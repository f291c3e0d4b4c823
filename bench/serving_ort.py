"""The peer of bench/serving.py: ONNX Runtime in MLServer, as its documentation writes a runtime of one's own. Requests are
put together by MLServer's adaptive batching (model-settings.json: max_batch_size, max_batch_time)."""
import asyncio
import os
import sys

from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceResponse
from mlserver.utils import get_model_uri

sys.path.append(os.environ["ASSAY_BENCH_PACKAGES"])  # onnxruntime, which the environment of the servers does not have
import onnxruntime  # noqa: E402


class OrtRuntime(MLModel):
    async def load(self):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = int(self.settings.parameters.extra["threads"])
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(await get_model_uri(self.settings), options,
                                                     providers=["CPUExecutionProvider"])
        self._names = [o.name for o in self._session.get_outputs()]
        return True

    async def predict(self, payload):
        given = {i.name: NumpyCodec.decode_input(i) for i in payload.inputs}
        loop = asyncio.get_running_loop()
        outputs = await loop.run_in_executor(None, lambda: self._session.run(None, given))
        return InferenceResponse(model_name=self.name, model_version=self.version, outputs=[
            NumpyCodec.encode_output(n, o) for n, o in zip(self._names, outputs)])
