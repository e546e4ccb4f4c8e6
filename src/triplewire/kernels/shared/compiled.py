"""How kernels are compiled: `kernel` for functions that Python calls, `helper` for functions that only kernels call.

A helper is a part of its callers: LLVM optimises it there, and inlines it. It has no machine code of its own, no
wrapper for calls from Python, and no reference counts, which makes it quicker to compile and to run. Therefore it may
neither make arrays nor return any. Called from Python, a helper runs as plain Python. Without a compiler
(`NUMBA_DISABLE_JIT=1`), and where machine code can be kept nowhere, all of them do. Why this leans on parts of Numba:
`docs/decisions/014-kernels.md`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba
import numpy as np
from llvmlite import ir
from numba import config, types
from numba.core import cgutils
from numba.core.caching import FunctionCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.registry import CPUDispatcher
from numba.core.runtime.nrt import rtsys
from numba.extending import intrinsic

from triplewire import kernel_cache

_Function = TypeVar("_Function", bound=Callable[..., Any])

_njit: Any = numba.njit  # of some options its types know nothing
_types: Any = types
_SHARED = {"nogil": True, "no_cfunc_wrapper": True}
_HELPER = {"nopython": True, "forceinline": True, "no_cpython_wrapper": True, "_nrt": False, **_SHARED}

IS_COMPILED = not getattr(config, "DISABLE_JIT", False) and kernel_cache.folder() is not None
"""Are kernels compiled in this process? Numba's own setting does not say so: it reads it anew with each compilation of
other code, and it holds for other code, too."""


class _Part(JITCodeLibrary):
    """The code of a helper, which is linked into its callers and becomes machine code there."""

    @property
    def codegen(self) -> Any:
        """Where constants are registered: nowhere, see `set_env`."""
        return self

    def set_env(self, name: str, env: Any) -> None:
        """The constants of a function: each caller has its own."""

    def get_pointer_to_function(self, name: str) -> int:
        """There is no machine code."""
        return 0

    def _optimize_final_module(self) -> None:
        """The callers do."""

    def _finalize_final_module(self) -> None:
        library: Any = self  # of whose methods its types know nothing
        library._finalize_dynamic_globals()
        library._verify_declare_only_symbols()
        self._finalized = True


class _Pipeline(Compiler):
    """Numba's compiler, with such a library."""

    def __init__(self, typing: Any, target: Any, library: Any, *rest: Any) -> None:
        part: Any = _Part
        compiler: Any = super()
        compiler.__init__(typing, target, library or part(target.codegen(), "helper"), *rest)


def _widened(kind: Any) -> Any:
    """The type of an argument, with all signed integers as those of 64 bits."""
    kind = _types.unliteral(kind)
    return _types.int64 if isinstance(kind, _types.Integer) and kind.signed else kind


def _holds_an_array(kind: Any) -> bool:
    """Is it the type of an array, or of a tuple with one?"""
    return isinstance(kind, _types.Array) or any(map(_holds_an_array, getattr(kind, "types", ())))


class Helper(CPUDispatcher):
    """A function that only compiled functions call. One compilation serves all widths of signed integers."""

    def __call__(self, *arguments: Any) -> Any:
        """Run as plain Python."""
        return self.py_func(*arguments)

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """The signature that serves a call with arguments of these types."""
        return super().get_call_template(tuple(_widened(kind) for kind in args), kws)

    def compile(self, sig: Any) -> Any:
        """Compile for arguments of some types. Raises `TypeError` where an array would be returned: nobody counts
        references to it."""
        signature = super().compile(sig)
        results: Any = self.overloads.values()  # of which its types know nothing
        for result in results:
            if _holds_an_array(result.signature.return_type):
                raise TypeError(f"the helper {self.py_func.__name__} returns an array")
        return signature


def helper(function: _Function) -> _Function:
    """Compile a function where kernels call it, inlined into them."""
    return _helper(function, _HELPER)


def called_helper(function: _Function) -> _Function:
    """Compile a helper that is long, or seldom called: LLVM decides whether it is inlined."""
    return _helper(function, _HELPER | {"forceinline": False})


def _helper(function: _Function, options: dict[str, Any]) -> _Function:
    wrapped: Any = Helper(function, targetoptions=options, pipeline_class=_Pipeline) if IS_COMPILED else function
    return wrapped  # type: ignore[no-any-return]


def kernel(function: _Function) -> _Function:
    """Compile a function that Python calls, and keep its machine code on disk. It makes no arrays."""
    return _kernel(function, {"_nrt": False, **_SHARED})


def short_kernel(function: _Function) -> _Function:
    """Compile a kernel that does little, and that many threads call at once: no other thread runs Python meanwhile. To
    let them takes two changes of threads where all of them are busy, which is longer."""
    return _kernel(function, {"_nrt": False, **_SHARED, "nogil": False})


def allocating_kernel(function: _Function) -> _Function:
    """Compile a kernel that makes arrays. It counts references to them, which takes time in loops: those belong
    into helpers."""
    return _kernel(function, _SHARED)


class _MachineCode(FunctionCache):
    """The machine code of a kernel on disk. To load it takes Numba's runtime, and not, as in `FunctionCache`, all that
    its compiler knows of types and functions: who compiles has that made ready, too."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """What was compiled for these arguments; None where nothing was."""
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            cache: Any = super()  # of which its types know nothing
            return cache._load_overload(sig, target_context)


def _kernel(function: _Function, options: dict[str, Any]) -> _Function:
    """The kernel; where it runs as plain Python, NumPy does not warn that hashes wrap around."""
    if not IS_COMPILED:
        plain: Any = np.errstate(over="ignore")
        return plain(function)  # type: ignore[no-any-return]
    compiled: Any = _njit(**options)(function)
    cache: Any = _MachineCode
    compiled._cache = cache(function)
    return compiled  # type: ignore[no-any-return]


# --- prefetch: ask for a row of an array before it is needed, and the processor fetches it meanwhile ------------------

_READ, _KEEP, _DATA = 0, 3, 1  # what LLVM's `prefetch` takes
_tools: Any = cgutils  # they have no types


def _typed(context: Any, array: Any, row: Any) -> Any:
    del context, row
    return types.void(array, types.intp), _generated


def _generated(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    distance = builder.mul(arguments[1], _tools.unpack_tuple(builder, array.strides)[0])
    pointer, number = ir.IntType(8).as_pointer(), ir.IntType(32)
    place = builder.gep(builder.bitcast(array.data, pointer), [distance])
    kind = ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
    function = _tools.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    builder.call(function, [place, number(_READ), number(_KEEP), number(_DATA)])
    return context.get_dummy_value()


def _nothing(array: Any, row: Any) -> None:
    """The kernels as plain Python do without."""


prefetch: Any = intrinsic(_typed) if IS_COMPILED else _nothing
