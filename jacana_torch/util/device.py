"""Check the device that a user names before any work is done."""

from __future__ import annotations

from ..errors import ConfigError


def usable_device(device: str) -> str:
    """Return the device if torch can use it here; else raise an error that says why not."""
    if device != "cpu":  # the check starts the driver, so only if there is a question
        import torch

        try:
            torch.zeros(1, dtype=torch.float64, device=device)
        except (RuntimeError, AssertionError, NotImplementedError, TypeError) as error:
            reason = (str(error).splitlines() or ["unknown"])[0]
            raise ConfigError(f"the device {device!r} cannot be used here ({reason}): try cpu") from None
    return device


def quick_halves(device: str) -> bool:
    """Whether the device multiplies bfloat16 faster than float32; without hardware for it, it is much slower."""
    import torch

    if device.startswith("cuda"):
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    # Private functions, which not every version of torch has.
    asked = (getattr(torch.cpu, f"_is_{unit}_supported", None) for unit in ("amx_tile", "avx512_bf16"))
    return device == "cpu" and any(ask() for ask in asked if ask is not None)
