"""Where PyTorch's documented API lives."""

from __future__ import annotations

MODULES = (
    "torch.overrides",
    "torch.nn.functional",
    "torch",
    "torch.nn",
    "torch.linalg",
    "torch.fft",
    "torch.special",
    "torch.optim",
    "torch.optim.lr_scheduler",
    "torch.optim.swa_utils",
    "torch.utils",
    "torch.utils.data",
    "torch.utils.checkpoint",
    "torch.utils.dlpack",
    "torch.distributions",
    "torch.distributions.constraints",
    "torch.autograd",
    "torch.autograd.forward_ad",
    "torch.autograd.functional",
    "torch.autograd.graph",
    "torch.autograd.profiler",
    "torch.nn.init",
    "torch.nn.attention",
    "torch.nn.parallel",
    "torch.nn.utils",
    "torch.nn.utils.rnn",
    "torch.nn.utils.parametrizations",
    "torch.nn.utils.parametrize",
    "torch.nn.utils.prune",
    "torch.cuda",
    "torch.cuda.amp",
    "torch.cuda.nvtx",
    "torch.cuda.tunable",
    "torch.cpu",
    "torch.mps",
    "torch.accelerator",
    "torch.amp",
    "torch.backends.cuda",
    "torch.compiler",
    "torch.func",
    "torch.futures",
    "torch.fx",
    "torch.hub",
    "torch.jit",
    "torch.library",
    "torch.monitor",
    "torch.multiprocessing",
    "torch.nested",
    "torch.package",
    "torch.profiler",
    "torch.random",
    "torch.serialization",
    "torch.signal.windows",
    "torch.sparse",
    "torch.testing",
    "torch.export",
    "torch.distributed",
)
"""The documented modules.

An entry reachable through several is named after the first, so a module that merely re-exports
comes after the one whose pages describe the entry.
"""

CLASSES = ("torch.Tensor", "torch.nn.Module", "torch.optim.Optimizer")
"""The classes whose methods and properties are separate entries."""
