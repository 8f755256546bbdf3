"""The part of the build that is not in pyproject.toml: the compiled kernels."""

from glob import glob

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(
            "shared_core.native._kernels",
            sorted(glob("shared_core/native/*.c")),
            depends=["shared_core/native/kernels.h"],
            extra_compile_args=["-O3", "-g0", "-ffp-contract=off", "-fvisibility=hidden"],
            py_limited_api=True,
            optional=True,  # without a compiler, numpy does the kernels' work
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
