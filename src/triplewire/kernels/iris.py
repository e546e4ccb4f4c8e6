"""Which IRIs are well-formed beyond doubt (RFC 3987): a scheme and plain ASCII. The others are looked at one by one."""

from __future__ import annotations

from typing import Any

from numba import njit

_COLON, _SLASH, _HASH, _QUESTION = 58, 47, 35, 63


@njit(cache=True, nogil=True)
def _is_letter(c: int) -> bool:
    return 65 <= c <= 90 or 97 <= c <= 122


@njit(cache=True, nogil=True)
def _is_plain(c: int) -> bool:
    """Letters, digits, and `- . _ ~ ! $ & ' ( ) * + , ; = : @ / ?`."""
    if _is_letter(c) or 48 <= c <= 57:
        return True
    return c in (45, 46, 95, 126, 33, 36, 38, 39, 40, 41, 42, 43, 44, 59, 61, 58, 64, 47, 63)


@njit(cache=True, nogil=True)
def _scheme(text: Any, at: int, end: int) -> int:
    """Behind the colon of the scheme, or -1."""
    if at >= end or not _is_letter(text[at]):
        return -1
    while at < end and (_is_letter(text[at]) or 48 <= text[at] <= 57 or text[at] in (43, 45, 46)):
        at += 1
    return at + 1 if at < end and text[at] == _COLON else -1


@njit(cache=True, nogil=True)
def _authority(text: Any, at: int, end: int) -> int:
    """Behind the authority, where there is one; -1 where it is more than a plain host name."""
    if at + 1 >= end or text[at] != _SLASH or text[at + 1] != _SLASH:
        return at
    at += 2
    while at < end and text[at] not in (_SLASH, _QUESTION, _HASH):
        if not (_is_letter(text[at]) or 48 <= text[at] <= 57 or text[at] in (45, 46)):
            return -1
        at += 1
    return at


@njit(cache=True, nogil=True)
def plain(text: Any, start: Any, end: Any, out: Any) -> None:
    """Fill `out`: is this IRI plain and well-formed?"""
    for i in range(start.size):
        at = _scheme(text, start[i], end[i])
        if at >= 0:
            at = _authority(text, at, end[i])
        fragments, good = 0, at >= 0
        while good and at < end[i]:
            if text[at] == _HASH:
                fragments += 1
                good = fragments == 1
            else:
                good = _is_plain(text[at])
            at += 1
        out[i] = good
