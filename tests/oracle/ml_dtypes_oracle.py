"""Compares our codes with those of ml_dtypes, over all bf16 inputs, the boundaries of each format, every 255th float32
and doubles. Where the two answer differently by choice, the choice is a row of a table, not a skipped input."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass

import ml_dtypes
import numpy as np


Codes = np.ndarray


@dataclass(frozen=True)
class Deviation:
    """Inputs for which ml_dtypes 0.6 answers otherwise than any of our policies, and what it answers."""

    why: str
    where: Callable[[np.ndarray], np.ndarray]
    answer: Callable[[Codes, int], Codes]  # from our codes and the width of a code in bits


NO_CODE_FOR_ZERO = Deviation(
    "zero, which has no code, becomes NaN", lambda x: x == 0, lambda codes, bits: np.full_like(codes, 2**bits - 1)
)
NAN_TO_NEGATED_ZERO = Deviation(
    "a NaN becomes the zero of the other sign", np.isnan, lambda codes, bits: codes ^ np.uint32(2 ** (bits - 1))
)
# The nearest power of two is 2^-127, code 0, for all of them.
SUBNORMALS_ROUNDED_UP = Deviation(
    "float32 subnormals between 2^-127 and 1.5 * 2^-127 are rounded up",
    lambda x: (x > 2.0**-127) & (x < 1.5 * 2.0**-127),
    lambda codes, bits: np.ones_like(codes),
)


@dataclass(frozen=True)
class Row:
    """One format, our names for the choices that ml_dtypes makes, and where no name fits."""

    format: str
    dtype: type
    overflow: str = "to-special"
    nan: str = "quiet"
    negative: str = "magnitude"
    deviations: tuple[Deviation, ...] = ()

    @property
    def bits(self) -> int:
        return ml_dtypes.finfo(self.dtype).bits


ROWS = [
    Row("e2m1", ml_dtypes.float4_e2m1fn, nan="zero", deviations=(NAN_TO_NEGATED_ZERO,)),
    Row("e2m3", ml_dtypes.float6_e2m3fn, nan="zero", deviations=(NAN_TO_NEGATED_ZERO,)),
    Row("e3m2", ml_dtypes.float6_e3m2fn, nan="zero", deviations=(NAN_TO_NEGATED_ZERO,)),
    Row("e3m4", ml_dtypes.float8_e3m4),
    Row("e4m3", ml_dtypes.float8_e4m3fn),
    Row("e5m2", ml_dtypes.float8_e5m2),
    Row("e4m3fnuz", ml_dtypes.float8_e4m3fnuz),
    Row("e5m2fnuz", ml_dtypes.float8_e5m2fnuz),
    Row("e8m0", ml_dtypes.float8_e8m0fnu, negative="to-nan", deviations=(NO_CODE_FOR_ZERO, SUBNORMALS_ROUNDED_UP)),
    Row("bf16", ml_dtypes.bfloat16),
]
SHOWN = 4


def our_codes(codes_of: str, row: Row, x: np.ndarray) -> Codes:
    source = {4: "f32", 8: "f64"}[x.itemsize]
    command = [codes_of, source, row.format, "nearest-even", row.overflow, "overflow", row.nan, row.negative]
    answer = subprocess.run(command, input=x.tobytes(), stdout=subprocess.PIPE, check=True).stdout
    codes = np.frombuffer(answer, np.uint32)
    for deviation in row.deviations:
        codes = np.where(deviation.where(x), deviation.answer(codes, row.bits), codes)
    return codes


def code_type(row: Row) -> type:
    return np.uint16 if row.bits > 8 else np.uint8


def their_codes(row: Row, x: np.ndarray) -> Codes:
    with np.errstate(all="ignore"):
        return x.astype(row.dtype).view(code_type(row)).astype(np.uint32)


def boundaries(row: Row) -> np.ndarray:
    """Every value of the format, every midpoint, and the float32 neighbours of both, with both signs."""
    codes = np.arange(2**row.bits).astype(code_type(row))
    with np.errstate(all="ignore"):
        values = codes.view(row.dtype).astype(np.float64)
    values = np.unique(np.abs(values[np.isfinite(values)]))
    points = np.concatenate([values, (values[1:] + values[:-1]) / 2, [1.5 * values[-1] - 0.5 * values[-2]]])
    with np.errstate(all="ignore"):
        x = points.astype(np.float32)
    x = np.concatenate([x, np.nextafter(x, np.float32(0)), np.nextafter(x, np.float32(np.inf))])
    return np.concatenate([x, -x])


def compare(name: str, x: np.ndarray, expected: Codes, got: Codes) -> int:
    wrong = np.flatnonzero(expected != got)
    print(f"{name}: {x.size} inputs compared, {wrong.size} mismatches", flush=True)
    integer = np.dtype(f"u{x.itemsize}")
    for i in wrong[:SHOWN]:
        print(f"  input {x[i]!r} (0x{x.view(integer)[i]:x}) ml_dtypes 0x{expected[i]:x} halfulp 0x{got[i]:x}")
    return wrong.size


def check_floats(codes_of: str, row: Row) -> int:
    inputs = {
        "every bf16": (np.arange(2**16, dtype=np.uint32) << 16).view(np.float32),
        "boundaries": boundaries(row),
        "every 255th float32": np.arange(0, 2**32, 255, dtype=np.uint32).view(np.float32),
    }
    return sum(
        compare(f"{row.format}, {name}", x, their_codes(row, x), our_codes(codes_of, row, x)) for name, x in inputs.items()
    )


def check_doubles(codes_of: str, row: Row) -> int:
    """ml_dtypes narrows a double to float32 first, so it must agree with us on that float32; on the double itself we
    differ, and only where the first rounding landed on a tie of the second."""
    random = np.random.default_rng(6)
    finite = boundaries(row).astype(np.float64)
    finite = finite[np.isfinite(finite)]
    x = np.concatenate([finite * (1 + step * 2.0**-40) for step in (-1, 0, 1)] + [random.standard_normal(2**20)])
    with np.errstate(all="ignore"):
        narrow = x.astype(np.float32)
    theirs = their_codes(row, x)
    faults = compare(f"{row.format}, doubles through float32", x, theirs, our_codes(codes_of, row, narrow))
    differ = theirs != our_codes(codes_of, row, x)
    tied = (narrow != x) & np.isin(narrow, boundaries(row))
    print(f"{row.format}, doubles: ml_dtypes rounds {np.count_nonzero(differ)} of {x.size} twice")
    if np.count_nonzero(differ) == 0 or np.any(differ & ~tied):
        print("  but double rounding does not explain all of them, or none occurred")
        faults += 1
    return faults


def main() -> int:
    codes_of = sys.argv[1]
    for row in ROWS:
        for deviation in row.deviations:
            print(f"{row.format}: ml_dtypes differs by choice or fault: {deviation.why}")
    faults = sum(check_floats(codes_of, row) + check_doubles(codes_of, row) for row in ROWS)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
