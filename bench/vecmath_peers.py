#!/usr/bin/env python3
"""Throughput of ONNX Runtime and OpenVINO on single pointwise nodes in float32, one thread, elements in thousands of
millions a second at 2^16 and 2^20 elements: what bench_vecmath measures of ours. Needs both packages."""
import time, sys, numpy as np, onnx
from onnx import helper as h, TensorProto as T
import onnxruntime as ort, openvino as ov
OPS=[("Exp",{},13,(-80,80)),("Log",{},13,(1e-3,100)),("Sin",{},22,(-100,100)),("Cos",{},22,(-100,100)),("Tan",{},22,(-100,100)),
("Asin",{},22,(-1,1)),("Acos",{},22,(-1,1)),("Atan",{},22,(-10,10)),("Sinh",{},22,(-20,20)),("Cosh",{},22,(-20,20)),("Tanh",{},13,(-5,5)),
("Asinh",{},22,(-10,10)),("Acosh",{},22,(1,10)),("Atanh",{},22,(-1,1)),("Erf",{},13,(-3,3)),("Sigmoid",{},13,(-10,10)),("Softplus",{},22,(-10,10)),
("Softsign",{},22,(-10,10)),("Elu",{},22,(-5,5)),("Selu",{},22,(-5,5)),("Celu",{},12,(-5,5)),("Gelu",{},20,(-5,5)),("Gelu",{"approximate":"tanh"},20,(-5,5)),("Mish",{},22,(-10,10)),
("Swish",{},24,(-10,10)),("HardSwish",{},22,(-5,5)),("HardSigmoid",{},22,(-5,5)),("Sqrt",{},13,(0,100)),("Reciprocal",{},13,(.1,100)),("Pow",{},15,(0.1,10)),("Mod",{"fmod":1},13,(-100,100))]
def model(op,attrs,opset):
    ins=["x"]+(["y"] if op in("Pow","Mod") else [])
    g=h.make_graph([h.make_node(op,ins,["z"],**attrs)],"g",[h.make_tensor_value_info(i,T.FLOAT,["N"]) for i in ins],[h.make_tensor_value_info("z",T.FLOAT,["N"])])
    return h.make_model(g,opset_imports=[h.make_opsetid("",opset)],ir_version=10).SerializeToString()
core=ov.Core()
rng=np.random.default_rng(0)
for op,a,o,(lo,hi) in OPS:
    m=model(op,a,o); row=[]
    for n in (1<<16,1<<20):
        feeds={"x":rng.uniform(lo,hi,n).astype(np.float32)}
        if op=="Pow": feeds["y"]=rng.uniform(-3,3,n).astype(np.float32)
        if op=="Mod": feeds["y"]=rng.uniform(1,10,n).astype(np.float32)
        try:
            so=ort.SessionOptions(); so.intra_op_num_threads=1; so.log_severity_level=4
            s=ort.InferenceSession(m,so,providers=["CPUExecutionProvider"])
            b=s.io_binding()
            for k,v in feeds.items(): b.bind_ortvalue_input(k,ort.OrtValue.ortvalue_from_numpy(v))
            out=ort.OrtValue.ortvalue_from_shape_and_type([n],np.float32,"cpu"); b.bind_ortvalue_output("z",out)
            best=9
            t0=time.time()
            while time.time()-t0<0.3:
                t=time.perf_counter(); s.run_with_iobinding(b); best=min(best,time.perf_counter()-t)
            row.append("ort %.2f"%(n/best/1e9))
        except Exception as e: row.append("ort -")
        try:
            c=core.compile_model(core.read_model(m),"CPU",{"INFERENCE_NUM_THREADS":1,"INFERENCE_PRECISION_HINT":"f32"})
            r=c.create_infer_request()
            kt=[(k,ov.Tensor(v,shared_memory=True)) for k,v in feeds.items()]
            for k,t in kt: r.set_tensor(k,t)
            keep=[np.empty(n,np.float32)]; keep.append(ov.Tensor(keep[0],shared_memory=True)); r.set_output_tensor(keep[1])
            best=9
            t0=time.time()
            while time.time()-t0<0.3:
                t=time.perf_counter(); r.infer(); best=min(best,time.perf_counter()-t)
            row.append("ov %.2f"%(n/best/1e9))
        except Exception as e: row.append("ov -")
    print(op,a,row,flush=True)
