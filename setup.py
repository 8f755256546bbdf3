"""The part of the build that is not in pyproject.toml: the compiled kernels."""

import os
import sysconfig
from glob import glob

from setuptools import Extension, setup

KERNELS = Extension(
    "shared_core.native._kernels",
    sorted(glob("shared_core/native/*.c")),
    depends=["shared_core/native/kernels.h"],
    extra_compile_args=["-O3", "-g0", "-ffp-contract=off", "-fvisibility=hidden"],
    py_limited_api=True,
    optional=True,  # without a compiler, numpy does the kernels' work
)

no_limited_api = sysconfig.get_config_var("Py_GIL_DISABLED")
if no_limited_api or os.environ.get("POSRAG_PURE"):  # a wheel for wherever no other fits
    setup()
else:
    setup(ext_modules=[KERNELS], options={"bdist_wheel": {"py_limited_api": "cp311"}})
