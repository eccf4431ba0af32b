#!/usr/bin/env python3
"""Writes the files beside it with numpy, ml_dtypes and the reference safetensors writer, for tests/lib.

python3 -m venv VENV && VENV/bin/pip install numpy==2.4.6 ml_dtypes==0.6.0 safetensors==0.8.0
VENV/bin/python tests/golden/files/make.py
"""

import pathlib

import ml_dtypes
import numpy as np
from safetensors import TensorSpec, serialize_file

HERE = pathlib.Path(__file__).parent

# Reference name of a dtype -> bytes of four elements.
DTYPES = {
    "bool": 4, "float4_e2m1fn_x2": 2, "uint8": 4, "int8": 4, "float8_e5m2": 4, "float8_e4m3fn": 4,
    "float8_e8m0fnu": 4, "float8_e4m3fnuz": 4, "float8_e5m2fnuz": 4, "int16": 8, "uint16": 8, "float16": 8,
    "bfloat16": 8, "int32": 16, "uint32": 16, "float32": 16, "complex64": 32, "float64": 32, "int64": 32, "uint64": 32,
}


def save_safetensors(name, tensors, metadata=None):
    """tensors: name -> (dtype, shape as a framework reports it, bytes)"""
    buffers = {key: np.frombuffer(data, np.uint8) for key, (_, _, data) in tensors.items()}
    specs = {
        key: TensorSpec(dtype=dtype, shape=shape, data_ptr=buffers[key].ctypes.data, data_len=len(data))
        for key, (dtype, shape, data) in tensors.items()
    }
    serialize_file(specs, HERE / name, metadata)


def make_safetensors():
    every = {}
    for i, (dtype, size) in enumerate(DTYPES.items()):
        every[f"t{i:02}"] = (dtype, [2] if dtype == "float4_e2m1fn_x2" else [2, 2], bytes(range(i, i + size)))
    save_safetensors("every_dtype.safetensors", every)
    names = {
        "b": ("float32", [1], bytes([1, 2, 3, 4])),
        "a": ("uint8", [3], bytes([5, 6, 7])),
        "scalar": ("float32", [], bytes([8, 9, 10, 11])),
        "empty": ("float32", [0, 7], b""),
        'quote " backslash \\ tab \t unit \x1f slash / del \x7f é 漢 😀': ("uint8", [1], bytes([12])),
    }
    save_safetensors("names.safetensors", names, {"a \"key\"": "first\n\u00e9"})


def make_npy():
    values = np.arange(24, dtype=np.float32).reshape(2, 3, 4) / 8
    np.save(HERE / "f4_c.npy", values)
    np.save(HERE / "f4_fortran.npy", np.asfortranarray(values))
    np.save(HERE / "f4_big_endian.npy", values.astype(">f4"))
    np.save(HERE / "c8_big_endian_fortran.npy", np.asfortranarray((values[0] + 1j).astype(">c8")))
    np.save(HERE / "f8_scalar.npy", np.float64(1.5))
    np.save(HERE / "i2_vector.npy", np.array([-1, 2, 300], np.int16))
    np.save(HERE / "u1_empty.npy", np.zeros((0, 5), np.uint8))
    # Its header fills 128 bytes without padding, and numpy pads it by another 64.
    np.save(HERE / "u1_full_line.npy", np.zeros((0, *[1] * 12, 100), np.uint8))
    np.save(HERE / "b1.npy", np.array([True, False]))
    np.save(HERE / "bfloat16.npy", np.array([1, -2, 0.5], ml_dtypes.bfloat16))
    np.save(HERE / "float8_e4m3fn.npy", np.array([1, -2, 0.5], ml_dtypes.float8_e4m3fn))
    np.save(HERE / "float8_e5m2.npy", np.array([1, -2, 0.5], ml_dtypes.float8_e5m2))
    np.save(HERE / "float4_e2m1fn.npy", np.array([1, -2, 0.5], ml_dtypes.float4_e2m1fn))
    np.save(HERE / "object.npy", np.array([None]), allow_pickle=True)
    np.save(HERE / "structured.npy", np.zeros(2, [("e", "u1"), ("qs", "u1", (16,))]))
    for version in [(2, 0), (3, 0)]:
        with open(HERE / f"f4_version_{version[0]}.npy", "wb") as file:
            np.lib.format.write_array(file, values, version)


make_safetensors()
make_npy()
