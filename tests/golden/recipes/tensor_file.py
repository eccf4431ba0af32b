"""Reads and writes safetensors files with numpy alone, the same bytes for the same tensors.

The reference writer orders the metadata by a hash that differs from run to run.
"""

import json

import numpy as np

# BF16 is held as its bits: numpy has no such type.
NUMPY_TYPES = {"BF16": np.uint16, "F32": np.float32, "U8": np.uint8}


def save(path, tensors, metadata):
    """tensors: name -> (dtype, array)."""
    header = {"__metadata__": metadata}
    data = b""
    for name, (dtype, array) in tensors.items():
        content = np.ascontiguousarray(array, NUMPY_TYPES[dtype]).tobytes()
        header[name] = {
            "dtype": dtype,
            "shape": list(np.shape(array)),
            "data_offsets": [len(data), len(data) + len(content)],
        }
        data += content
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def load(path):
    """The metadata, and name -> (dtype, array)."""
    content = path.read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:start])
    metadata = header.pop("__metadata__")
    tensors = {}
    for name, entry in header.items():
        first, last = entry["data_offsets"]
        data = content[start + first : start + last]
        tensors[name] = (entry["dtype"], np.frombuffer(data, NUMPY_TYPES[entry["dtype"]]).reshape(entry["shape"]))
    return metadata, tensors
