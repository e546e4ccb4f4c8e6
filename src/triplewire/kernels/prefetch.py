"""Ask for a row of an array before it is needed: the processor fetches it meanwhile.

Worth it where rows are read in no order and the index is larger than the processor's caches. It never fails: a row that
does not exist is not fetched.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from triplewire.kernels.shared.compiled import IS_COMPILED

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
