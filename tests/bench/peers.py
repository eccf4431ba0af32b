#!/usr/bin/env python3
"""peers.py BUILD_DIR: halfulp beside what else one would use on a CPU, one thread, one run, elements a second.

Runs BUILD_DIR/bin/simd_bench and cuda_headers_bench, and times ml_dtypes and, where PyTorch and torchao can be imported,
their casts and quantizers, all pinned to one core and on 2^16 normal values. Needs numpy and ml_dtypes. Rates on a busy
machine mean little; the ratios of one run mean more.
"""

import json
import os
import pathlib
import subprocess
import sys
import time

import ml_dtypes
import numpy as np

ELEMENTS = 2**16


def best_rate(run, seconds=1.0):
    run()
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.process_time()
        for _ in range(8):
            run()
        best = min(best, (time.process_time() - start) / 8)
    return ELEMENTS / best


def ours(bench, pattern):
    run = subprocess.run([bench, f"--benchmark_filter={pattern}", "--benchmark_format=json", "--benchmark_min_time=0.3"],
                         check=True, capture_output=True, text=True)
    return {row["name"]: row["items_per_second"] for row in json.loads(run.stdout)["benchmarks"]}


def ml_dtypes_rates(x):
    return {f"ml_dtypes/{name}": best_rate(lambda: x.astype(dtype))
            for name, dtype in [("e4m3", ml_dtypes.float8_e4m3fn), ("e2m1", ml_dtypes.float4_e2m1fn)]}


def torch_rates(x):
    try:
        import torch
    except ImportError:
        return {}
    torch.set_num_threads(1)
    t = torch.from_numpy(x).reshape(-1, 512)
    rates = {"torch/e4m3": best_rate(lambda: t.to(torch.float8_e4m3fn))}
    try:
        from torchao.prototype.mx_formats.mx_tensor import ScaleCalculationMode, to_mx
        from torchao.prototype.mx_formats.nvfp4_tensor import nvfp4_quantize
    except ImportError:
        return rates
    scale = t.abs().max() / 2688
    rates["torchao/mxfp8"] = best_rate(lambda: to_mx(t, torch.float8_e4m3fn, 32, ScaleCalculationMode.RCEIL))
    rates["torchao/nvfp4"] = best_rate(lambda: nvfp4_quantize(t, 16, scale))
    return rates


def main():
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    bench = pathlib.Path(sys.argv[1]) / "bin"
    x = np.random.default_rng(1).standard_normal(ELEMENTS, np.float32)
    rates = ours(bench / "simd_bench", f"^(encode/(e4m3|e2m1)|stochastic/.*|(de)?quantize/.*)/{ELEMENTS}$")
    if (bench / "cuda_headers_bench").exists():
        rates |= ours(bench / "cuda_headers_bench", ".")
    rates |= ml_dtypes_rates(x) | torch_rates(x)
    for name, rate in rates.items():
        print(f"{name:44} {rate / 1e6:9.0f} M/s")


main()
