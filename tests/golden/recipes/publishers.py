#!/usr/bin/env python3
"""Runs every publisher's own quantizer over inputs.safetensors and writes what it answers, one file a recipe.

Nothing here computes a code, a scale or a value: it calls the packages and lays out what they return. README.md says
which packages, and what the members of a file mean.
"""

import argparse
import ctypes
import importlib.metadata
import itertools
import os
import pathlib
import subprocess
import sys
import tempfile

import gguf
import numpy as np
import torch
from compressed_tensors.compressors import (
    MXFP4PackedCompressor,
    MXFP8QuantizationCompressor,
    NVFP4PackedCompressor,
)
from compressed_tensors.quantization import QuantizationScheme, preset_name_to_scheme
from compressed_tensors.quantization.utils import calculate_qparams, generate_gparam
from fouroversix import QuantizationConfig, dequantize, quantize_to_fp4
from fouroversix.quantize import from_blocked
from modelopt.torch.quantization.config import QuantizerAttributeConfig
from modelopt.torch.quantization.nn.modules.tensor_quantizer import StaticBlockScaleQuantizer, TensorQuantizer
from modelopt.torch.quantization.qtensor import MXFP4QTensor, MXFP8QTensor, NVFP4QTensor
from modelopt.torch.quantization.utils import reduce_amax
from torchao.float8.config import ScalingGranularity
from torchao.float8.float8_scaling_utils import hp_tensor_to_float8_dynamic
from torchao.float8.float8_training_tensor import LinearMMConfig
from torchao.prototype.mx_formats.config import ScaleCalculationMode
from torchao.prototype.mx_formats.mx_tensor import MXTensor
from torchao.prototype.mx_formats.nvfp4_tensor import NVFP4Tensor, per_tensor_amax_to_scale

import tensor_file

HERE = pathlib.Path(__file__).parent
DEQUANTIZED = "gauss_small_bf16"
SIX_BITS_INPUTS = (
    "gauss_small_bf16 gauss_bf16 near_ties_f32 subnormal_f32 zero_blocks_bf16 nan_f32 inf_f32 tiny_beside_huge_f32 "
    "near_flt_max_f32 range_ends_f32 powers_of_two_f32"
).split()
# Of the source distribution that ggml-quants.c is taken from.
GGML_VERSION = "0.3.36"


def torch_tensors():
    tensors = {}
    for name, (dtype, array) in tensor_file.load(HERE / "inputs.safetensors")[1].items():
        tensor = torch.from_numpy(array.copy())
        tensors[name] = tensor.view(torch.bfloat16) if dtype == "BF16" else tensor
    return tensors


def torchao_mx(element, mode):
    def quantize(x):
        quantized = MXTensor.to_mx(x, element, 32, mode)
        return {
            "codes": quantized.qdata,
            "scales": quantized.scale,
            "values": quantized.dequantize(torch.float32),
        }

    return quantize


def torchao_nvfp4(x):
    """Scales as the conversion of a weight computes them (inference_workflow.py)."""
    outer = per_tensor_amax_to_scale(torch.max(torch.abs(x)))
    quantized = NVFP4Tensor.to_nvfp4(x, per_tensor_scale=outer)
    return {
        "codes": quantized.qdata,
        "scales": quantized.scale,
        "global_scale": outer,
        "values": quantized.dequantize(torch.float32),
    }


def torchao_nvfp4_one_level(x):
    quantized = NVFP4Tensor.to_nvfp4(x)
    return {"codes": quantized.qdata, "scales": quantized.scale, "values": quantized.dequantize(torch.float32)}


def torchao_float8(dtype, granularity, dim, power_of_two):
    def quantize(x):
        quantized = hp_tensor_to_float8_dynamic(
            x,
            dtype,
            LinearMMConfig(),
            scaling_granularity=granularity,
            axiswise_dim=dim,
            round_scales_to_power_of_2=power_of_two,
        )
        return {
            "codes": quantized._data,
            "scales": quantized._scale.reshape(-1),
            "values": quantized.to_original_precision().float(),
        }

    return quantize


def compressed_tensors(preset, compressor, weight_name):
    """Scales as llm-compressor's min-max observer asks for them: extremes in the weight's own type."""

    def quantize(x):
        scheme = QuantizationScheme(targets=["Linear"], weights=preset_name_to_scheme(preset, ["Linear"]).weights)
        outer = None
        if scheme.weights.strategy == "tensor_group":
            amax = torch.max(x.max(), -x.min()).reshape(1)
            outer = generate_gparam(-amax, amax)
        groups = x.unflatten(-1, (-1, scheme.weights.group_size))
        scales, _ = calculate_qparams(groups.amin(-1), groups.amax(-1), scheme.weights, global_scale=outer)
        state = {"weight": x, "weight_scale": scales}
        if outer is not None:
            state["weight_global_scale"] = outer
        state = compressor.compress(state, scheme)
        answer = {"codes": state[weight_name], "scales": state["weight_scale"]}
        if outer is not None:
            answer["global_scale"] = outer
        answer["values"] = compressor.decompress(state, scheme)["weight"].float()
        return answer

    return quantize


def modelopt_nvfp4(x, block_scales=None, outer=None):
    quantized, block_scales, outer = NVFP4QTensor.quantize(x.clone(), 16, block_scales, outer)
    values = quantized.dequantize(torch.float32, scale=block_scales, double_scale=outer, block_sizes={-1: 16})
    return {"codes": quantized._quantized_data, "scales": block_scales, "global_scale": outer, "values": values}


def modelopt_nvfp4_static(x):
    """A weight quantizer calibrated with max, made static and exported, as modelopt's export does."""
    attributes = {"num_bits": (2, 1), "block_sizes": {-1: 16, "type": "static", "scale_bits": (4, 3)}}
    quantizer = TensorQuantizer(QuantizerAttributeConfig(**attributes))
    quantizer.disable_quant()
    quantizer.enable_calib()
    quantizer(x)
    quantizer.load_calib_amax()
    StaticBlockScaleQuantizer.from_tensor_quantizer(quantizer, global_amax=reduce_amax(quantizer._amax))
    block_scales, outer = NVFP4QTensor.get_weights_scaling_factor_from_quantizer(quantizer, x)
    return modelopt_nvfp4(x, block_scales, outer)


def modelopt_mxfp8(x):
    quantized, scales = MXFP8QTensor.quantize(x.clone())
    values = quantized.dequantize(torch.float32, scale=scales)
    return {"codes": quantized._quantized_data, "scales": scales, "values": values}


def modelopt_mxfp4(x):
    quantized, scales = MXFP4QTensor.quantize(x.clone(), 32)
    values = quantized.dequantize(torch.float32, scale=scales, block_sizes={-1: 32})
    return {"codes": quantized._quantized_data, "scales": scales.reshape(x.shape[0], -1), "values": values}


def fouroversix(rule, two_dimensional):
    def quantize(x):
        config = QuantizationConfig(backend="pytorch", scale_rule=rule, block_scale_2d=two_dimensional)
        quantized = quantize_to_fp4(x, config)
        rows, columns = x.shape
        scales = from_blocked(quantized.scale_factors, (quantized.padded_shape[0], quantized.padded_shape[1] // 16))
        return {
            "codes": quantized.values[:rows, : columns // 2],
            "scales": scales[:rows, : columns // 16],
            "global_scale": quantized.amax,
            "values": dequantize(quantized, torch.float32),
        }

    return quantize


def packed_pairs(codes):
    """[..., n] codes of 4 bits -> [..., n/2] bytes, the even element in the low nibble."""
    return codes[..., 0::2] | codes[..., 1::2] << 4


def ggml_mxfp4(x):
    """The file's block: a scale, then 16 bytes, whose low nibbles are the elements 0..15 and high ones 16..31."""
    quantized = gguf.quants.quantize(x.float().numpy(), gguf.GGMLQuantizationType.MXFP4)
    blocks = quantized.reshape(x.shape[0], -1, 17)
    codes = np.concatenate([blocks[..., 1:] & 15, blocks[..., 1:] >> 4], axis=-1).reshape(x.shape)
    return {
        "codes": torch.from_numpy(packed_pairs(codes)),
        "scales": torch.from_numpy(blocks[..., 0].copy()),
        "values": torch.from_numpy(gguf.quants.dequantize(quantized, gguf.GGMLQuantizationType.MXFP4)),
    }


def ggml_nvfp4(path):
    """The C function: gguf has none. Its block: 4 scales, then for each 16 elements 8 bytes of elements j and j + 8."""

    def quantize(x):
        # Lazily bound: the file's other functions miss the rest of ggml.
        library = ctypes.CDLL(path, mode=os.RTLD_LAZY)
        source = np.ascontiguousarray(x.float().numpy())
        quantized = np.zeros((x.shape[0], x.shape[1] // 64 * 36), np.uint8)
        library.quantize_row_nvfp4_ref(
            ctypes.c_void_p(source.ctypes.data), ctypes.c_void_p(quantized.ctypes.data), ctypes.c_int64(source.size)
        )
        blocks = quantized.reshape(x.shape[0], -1, 36)
        pairs = blocks[..., 4:].reshape(x.shape[0], -1, 8)
        codes = np.concatenate([pairs & 15, pairs >> 4], axis=-1).reshape(x.shape)
        return {
            "codes": torch.from_numpy(packed_pairs(codes)),
            "scales": torch.from_numpy(blocks[..., :4].reshape(x.shape[0], -1).copy()),
            "values": torch.from_numpy(gguf.quants.dequantize(quantized, gguf.GGMLQuantizationType.NVFP4)),
        }

    return quantize


def torchao_recipes():
    found = {}
    elements = {
        "mxfp8-torchao-{}": torch.float8_e4m3fn,
        "mxfp8-torchao-{}-e5m2": torch.float8_e5m2,
        "mxfp4-torchao-{}": torch.float4_e2m1fn_x2,
    }
    for mode in ScaleCalculationMode:
        for name, element in elements.items():
            function = f"MXTensor.to_mx(x, {element}, 32, {mode})"
            found[name.format(mode.value)] = ("torchao", function, torchao_mx(element, mode), {})
    for mode, element in itertools.product(ScaleCalculationMode, ("fp6_e2m3", "fp6_e3m2")):
        name = f"mxfp6-torchao-{mode.value}-{element[4:]}"
        function = f"MXTensor.to_mx(x, {element}, 32, {mode})"
        found[name] = ("torchao", function, torchao_mx(element, mode), {"codes": "one a byte"})
    nvfp4 = "NVFP4Tensor.to_nvfp4(x, per_tensor_scale=per_tensor_amax_to_scale(max(abs(x))))"
    found["nvfp4-torchao"] = ("torchao", nvfp4, torchao_nvfp4, {"global_scale": "decode"})
    found["nvfp4-torchao-one-level"] = ("torchao", "NVFP4Tensor.to_nvfp4(x)", torchao_nvfp4_one_level, {})
    e4m3, e5m2 = torch.float8_e4m3fn, torch.float8_e5m2
    tensor, axis = ScalingGranularity.TENSORWISE, ScalingGranularity.AXISWISE
    float8 = {
        "fp8-torchao-tensorwise": (e4m3, tensor, None, False),
        "fp8-torchao-tensorwise-e5m2": (e5m2, tensor, None, False),
        "fp8-torchao-rowwise": (e4m3, axis, -1, True),
    }
    for name, arguments in float8.items():
        function = "hp_tensor_to_float8_dynamic{}, as Float8LinearConfig.from_recipe_name sets it".format(arguments)
        notes = {"scales": "F32, encode", "values": "in the input's type, then F32"}
        found[name] = ("torchao", function, torchao_float8(*arguments), notes)
    return found


def other_recipes(ggml):
    found = {}
    ct = "compressed-tensors"
    calls = "calculate_qparams, {}.compress"
    bf16_values = {"values": "BF16, then F32"}
    found["nvfp4-compressed-tensors"] = (
        ct,
        "generate_gparam, " + calls.format("NVFP4PackedCompressor"),
        compressed_tensors("NVFP4A16", NVFP4PackedCompressor, "weight_packed"),
        {"global_scale": "encode"} | bf16_values,
    )
    found["mxfp4-compressed-tensors"] = (
        ct,
        calls.format("MXFP4PackedCompressor"),
        compressed_tensors("MXFP4A16", MXFP4PackedCompressor, "weight_packed"),
        bf16_values,
    )
    found["mxfp8-compressed-tensors"] = (
        ct,
        calls.format("MXFP8QuantizationCompressor"),
        compressed_tensors("MXFP8A16", MXFP8QuantizationCompressor, "weight"),
        bf16_values,
    )
    decode = {"global_scale": "decode"}
    modelopt = "nvidia-modelopt"
    found["nvfp4-modelopt"] = (modelopt, "NVFP4QTensor.quantize(x, 16)", modelopt_nvfp4, decode)
    static = "StaticBlockScaleQuantizer, NVFP4QTensor.get_weights_scaling_factor_from_quantizer, NVFP4QTensor.quantize"
    found["nvfp4-modelopt-static"] = (modelopt, static, modelopt_nvfp4_static, decode)
    found["mxfp8-modelopt"] = (modelopt, "MXFP8QTensor.quantize(x)", modelopt_mxfp8, {})
    found["mxfp4-modelopt"] = (modelopt, "MXFP4QTensor.quantize(x, 32)", modelopt_mxfp4, {})
    found["mxfp4-ggml"] = ("gguf", "gguf.quants.quantize(x, MXFP4)", ggml_mxfp4, {})
    found["nvfp4-ggml"] = ("llama-cpp-python", "quantize_row_nvfp4_ref of ggml-quants.c", ggml_nvfp4(ggml), {})
    for rule in ("static_6", "static_4", "mse", "mae", "abs_max"):
        for suffix, two_dimensional in (("", False), ("-2d", True)):
            if two_dimensional and rule not in ("static_6", "mse"):
                continue
            name = "nvfp4-fouroversix-{}{}".format(rule.replace("_", "-"), suffix)
            function = f"quantize_to_fp4, pytorch backend, scale_rule={rule}, block_scale_2d={two_dimensional}"
            found[name] = ("fouroversix", function, fouroversix(rule, two_dimensional), {"global_scale": "amax"})
    return found


def as_file_tensor(member, tensor):
    if member in ("values", "global_scale") or tensor.dtype == torch.float32:
        return "F32", tensor.detach().float().numpy()
    return "U8", tensor.detach().contiguous().view(torch.uint8).numpy()


def takes(recipe, name):
    """The tile is for recipes that scale tiles; the others have rows enough. The six bits' modes of scales beside the
    first are shown on the least that tells them apart.
    """
    if recipe.startswith("mxfp6") and "-floor-" not in recipe:
        return name in SIX_BITS_INPUTS
    return name != "tile_bf16" or recipe.endswith("-2d")


def write(directory, recipe, package, function, quantize, notes, inputs):
    tensors = {}
    refused = []
    for name, x in inputs.items():
        if not takes(recipe, name):
            continue
        try:
            answer = quantize(x.clone())
        except AssertionError:
            refused.append(name)
            continue
        for member, tensor in answer.items():
            if member != "values" or name == DEQUANTIZED:
                tensors[f"{name}.{member}"] = as_file_tensor(member, tensor)
    version = GGML_VERSION if package == "llama-cpp-python" else importlib.metadata.version(package)
    metadata = {"recipe": recipe, "package": package, "version": version, "torch": torch.__version__}
    metadata |= {"function": function} | notes
    if refused:
        metadata["refused"] = " ".join(refused)
    tensor_file.save(directory / f"{recipe}.safetensors", tensors, metadata)


def write_all(directory, ggml, only):
    torch.set_num_threads(1)
    inputs = torch_tensors()
    for recipe, (package, function, quantize, notes) in (torchao_recipes() | other_recipes(ggml)).items():
        if not only or recipe in only:
            write(directory, recipe, package, function, quantize, notes, inputs)


def agree(recipe, name, first, second):
    """Bit for bit, but for the sign and payload of a NaN scale: those are the machine's."""
    if name.endswith(".codes") or not recipe.startswith(("nvfp4", "fp8")):
        return first.tobytes() == second.tobytes()
    is_nan = np.isnan if first.dtype == np.float32 else lambda e4m3: e4m3 & 0x7F == 0x7F
    return bool(((first == second) | is_nan(first) & is_nan(second)).all())


def keep_agreed(path, other_path):
    """Leaves out the members that the two files answer differently, and names them."""
    metadata, tensors = tensor_file.load(path)
    _, others = tensor_file.load(other_path)
    agreed = {
        name: entry for name, entry in tensors.items() if agree(metadata["recipe"], name, entry[1], others[name][1])
    }
    if len(agreed) < len(tensors):
        metadata["machine_dependent"] = " ".join(name for name in tensors if name not in agreed)
    tensor_file.save(HERE / path.name, agreed, metadata)


def main():
    """Runs twice, for torch picks other code by the processor: what depends on that is no answer of the publisher."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ggml", required=True, help="ggml-quants.c compiled to a shared library (README.md)")
    parser.add_argument("--directory", type=pathlib.Path, help="one run's answers, there")
    parser.add_argument("--only", nargs="+", metavar="FILE", help="these files alone, by their stems")
    options = parser.parse_args()
    if options.directory:
        write_all(options.directory, options.ggml, options.only)
        return
    only = ["--only", *options.only] if options.only else []
    with tempfile.TemporaryDirectory() as temporary:
        paths = []
        for capability in ("avx512", "default"):
            directory = pathlib.Path(temporary, capability)
            directory.mkdir()
            command = [sys.executable, __file__, "--ggml", options.ggml, "--directory", directory, *only]
            subprocess.run(command, env=os.environ | {"ATEN_CPU_CAPABILITY": capability}, check=True)
            paths.append(sorted(directory.iterdir()))
        for first, second in zip(*paths):
            keep_agreed(first, second)


if __name__ == "__main__":
    main()
