"""Results to show on a page, made up: of every kind of halfulp bias, and of halfulp error on many tensors.

The figures are not measured. They have the shape of real ones, and the names are what a hostile file would hold.
"""

import random

HOSTILE = ["</script><script>window.hacked = 1</script>", "<img src=x onerror=\"window.hacked = 1\">", "\"quoted\" & 'single' &amp;", "tensor\u2028line",
           "重み.層/0", "constructor", "__proto__", "a" * 300, "x#section=2&tensor=y%20+z", "<!--", "]]>", ""]

E2M1 = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
E2M1_VALUES = E2M1 + [-value for value in E2M1]


def figure(value, se, unit="", clusters=4096, method="delta over blocks"):
    z = value / se if se else "nan"
    verdict = "exact" if not se else "biased" if abs(z) >= 4 else "not detected"
    return {"value": value, "se": se, "z": z, "minimum_detectable": 4 * se, "ci95": [value - 2 * se, value + 2 * se], "unit": unit, "n": clusters,
            "elements": 16 * clusters, "method": method, "verdict": verdict}


def magnitude(value, se):
    """A figure that has no bias to speak of."""
    return {"value": value, "se": se, "ci95": [value - 2 * se, value + 2 * se], "unit": "of |exact|^2", "n": 64, "method": "over draws"}


def block(rng, row, col):
    x = [rng.gauss(0, 1) for _ in range(16)]
    scale = max(map(abs, x)) / 6
    codes = [min(range(16), key=lambda code: abs(E2M1_VALUES[code] * scale - value)) for value in x]
    q = [E2M1_VALUES[code] * scale for code in codes]
    squared = sum((a - b) ** 2 for a, b in zip(x, q))
    return {"row": row, "col": col, "rel_mse": squared / sum(a * a for a in x), "squared_error": squared, "scale": scale,
            "scale_code": rng.randrange(60, 120), "x": x, "q": q, "codes": codes,
            "parts": {"grid": squared * 0.8, "scale": squared * 0.15, "dead_zone": squared * 0.05, "clip": 0.0}}


def decomposition(rng, total, shrinkage):
    def parts(sum_):
        cuts = [0.62 + 0.1 * rng.random(), 0.2 * rng.random(), 0.1 * rng.random()]
        return {"grid": sum_ * cuts[0], "scale": sum_ * cuts[1], "dead_zone": sum_ * cuts[2], "clip": sum_ * (1 - sum(cuts)), "total": sum_}
    errors = {name: total * 0.01 for name in ("grid", "scale", "dead_zone", "clip", "total")}
    return {"rel_mse": parts(total), "shrinkage": parts(shrinkage), "se": {"rel_mse": errors, "shrinkage": errors}}


def tensor(rng, name, recipe="nvfp4/te", spread=1.0):
    rel_mse, shrinkage = 0.009 * spread * (0.8 + 0.4 * rng.random()), 0.0044 * spread * rng.random()
    binades = {str(e): figure(rng.gauss(0, 1) * 2.0**e * 1e-3, 2.0**e * 1e-3, "x") for e in range(-20, 3)}
    counts = [round(4000 * 2.0 ** (-((code & 7) - 3) ** 2 / 6)) for code in range(16)]
    scales = [0] * 127
    for code in range(100, 125):
        scales[code] = round(9000 * 2.0 ** (-((code - 113) ** 2) / 12))
    return {
        "file": "model.safetensors", "tensor": name, "dtype": "BF16", "shape": [1024, 4096], "recipe": recipe, "elements": 4194304,
        "rel_mse": rel_mse, "sqnr_db": 20.4, "shrinkage": shrinkage, "mean_error": 1e-6, "rate_bits": 3.39, "residual": rel_mse, "max_abs_error": 0.7,
        "clipped": 0.001 * spread, "dead_zone": 0.068, "scale_min": 60.0, "scale_max": "inf" if name == "" else 448.0, "nonfinite_in": 0,
        "crest": {"p05": 1.6, "p50": 2.07, "p95": 2.7, "max": 3.7}, "se": {"rel_mse": rel_mse * 1e-3, "shrinkage": 9e-5, "mean_error": 6e-5},
        "codes": {"entropy_bits": 3.97, "used": 16, "at_max": 0.11, "histogram": counts, "values": E2M1_VALUES},
        "scales": {"at_max": 4.6e-5, "histogram": scales},
        "bias": {"mean_error": figure(1e-6, 6e-5), "shrinkage": figure(shrinkage, 9e-5),
                 "by_sign": {"positive": figure(-0.0059, 9e-5), "negative": figure(0.0056, 9e-5)}, "by_binade": binades},
        "decomposition": decomposition(rng, rel_mse, shrinkage),
        "worst_blocks": [block(rng, 17 * i, 16 * i) for i in range(8)],
    }


def tensors(names, recipes=("nvfp4/te",)):
    rng = random.Random(6)
    results = [tensor(rng, name, recipe) for name in names for recipe in recipes]
    skipped = [{"file": "model.safetensors", "tensor": "ids", "recipe": recipes[0], "reason": "I64 elements are no numbers to quantize"}]
    return {"schema": "halfulp.bias/1", "kind": "tensors", "results": results, "skipped": skipped, "totals": [], "streams": {"independent": True, "pairs": 28, "worst_z": 2.1}}


def conversion():
    x = [i / 40 for i in range(-280, 281)]

    def bias(value):
        magnitude = min(abs(value), 6.0)
        below = max(v for v in E2M1 if v <= magnitude)
        above = min((v for v in E2M1 if v > below), default=below)
        exact = (magnitude - below) / (above - below) if above > below else 0.0
        return (int(exact * 4) / 4 - exact) * (1 if value >= 0 else -1), above - below
    found = [bias(value) for value in x]
    curve = {"x": x, "bias_ulp": [b for b, _ in found], "bias": [b * gap for b, gap in found], "sd": [0.25 * gap for _, gap in found]}
    binades = [{"from": 2.0**e, "to": 2.0 ** (e + 1), "ulp": 2.0 ** (e - 1), "binades": 1, "uniform": -0.125, "log_uniform": -0.12, "largest": 0.25,
                "largest_sd": 0.5, "tie_share": 0.0, "source": None} for e in range(-1, 3)]
    values = [{"x": v + 0.1, "below": v, "above": v + 0.5, "expectation": v, "bias": -0.1, "bias_ulp": -0.2, "variance": 0.0, "probability_above": 0.0, "tie": False} for v in E2M1]
    result = {"name": "cvt.rs.satfinite.e2m1x4.f32", "format": "e2m1", "rounding": "stochastic", "random_bits": 2,
              "convention": "ulp: the gap of the format at x", "curve": curve, "binades": binades, "values": values,
              "pair": {"largest": {"covariance_ulp2": -0.0026, "first_fraction": 0.5, "second_fraction": 0.5}, "values": []}}
    return {"schema": "halfulp.bias/1", "kind": "conversion", "results": [result], "skipped": [], "totals": []}


def product(kind, beta, noise=0.037, **where):
    draws = [4**i for i in range(6)]
    error = [beta + noise / n for n in draws]
    return {**where, "product": kind, "operands": [{"name": "dy_wgrad", "recipe": "nvfp4/te", "shape": [512, 4096]}, {"name": "x_wgrad", "recipe": "nvfp4/te", "shape": [512, 4096]}],
            "shape": [512, 512, 4096], "draws": 1024, "fixed": "data and signs", "rel_error": magnitude(noise, noise / 200), "cosine": magnitude(0.98, 1e-4),
            "projection": magnitude(1 - beta, 1e-4), "squared_bias": figure(beta, 2e-5), "noise": magnitude(noise, noise / 200), "gradient_to_noise": magnitude(5.2, 0.01),
            "concentration": {"draws": draws, "error": error, "se": [e * 0.02 for e in error], "bits": [0.0] * 6, "slope": magnitude(-1.0 if beta < 1e-4 else -0.6, 0.01)}}


def products():
    return {"schema": "halfulp.bias/1", "kind": "products", "results": [product("wgrad", 9.4e-4), product("dgrad", 1e-5)], "skipped": [], "totals": [],
            "streams": {"independent": False, "pairs": 28, "worst_z": 41.0}}


def capture(layers=6):
    rng = random.Random(7)
    results, phases = [], {"pretrain_fwd": ["x_fprop", "w_fprop"], "pretrain_bwd": ["dy_dgrad", "w_dgrad", "dy_wgrad"],
                           "rl_sampler": ["samp_x", "samp_w"], "rl_trainer": ["x_fprop", "dy_wgrad"]}
    for phase, roles in phases.items():
        for role in roles:
            for layer in range(layers):
                for step in (100, 200):
                    where = {"phase": phase, "role": role, "layer": f"blocks.{layer}.mlp", "step": step}
                    spread = 4.0 ** (layer / layers) * (3 if role.startswith("dy") else 1)
                    results.append({**tensor(rng, f"{phase}/{role}/blocks.{layer}.mlp/{step}", spread=spread), **where})
    share = [(r["rel_mse"], r) for r in results]
    total = sum(value for value, _ in share)
    ranking = [{"by": by, **{key: r[key] for key in ("phase", "role", "layer", "step", "recipe", "tensor")}, "share": value / total, "value": value}
               for by in ("error", "bias") for value, r in sorted(share, key=lambda s: -s[0])]
    return {"schema": "halfulp.bias/1", "kind": "capture", "policy": "nvidia-nvfp4", "results": results, "skipped": [], "totals": [], "ranking": ranking,
            "products": [product("wgrad", 9.4e-4, phase="pretrain_bwd", layer="blocks.3.mlp", step=100)], "streams": {"independent": True, "pairs": 28, "worst_z": 2.1}}
