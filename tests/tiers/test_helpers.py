"""Helpers of kernels: no array comes out of one, as nobody would count references to it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from triplewire.kernels.shared.compiled import helper, kernel


@helper
def _itself(numbers: Any) -> Any:
    return numbers


@helper
def _with_its_size(numbers: Any) -> Any:
    return numbers.size, numbers


@helper
def _first(numbers: Any) -> Any:
    return numbers[0]


@kernel
def _through_itself(numbers: Any) -> Any:
    return _itself(numbers)[0]


@kernel
def _through_a_tuple(numbers: Any) -> Any:
    return _with_its_size(numbers)[0]


@kernel
def _through_a_number(numbers: Any) -> Any:
    return _first(numbers)


@pytest.mark.parametrize("through", [_through_itself, _through_a_tuple])
def test_a_helper_that_returns_an_array_is_refused(through: Any) -> None:
    with pytest.raises(TypeError, match="returns an array"):
        through(np.arange(3))


def test_a_helper_that_returns_a_number_is_not() -> None:
    assert _through_a_number(np.arange(3) + 7) == 7
