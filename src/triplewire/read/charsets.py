"""Finds the encoding of a document, and decodes it (XML 1.0, appendix F; the names: Encoding Standard, section 4.2).

What the bytes are counts for more than what is declared: feeds are often passed on in another encoding than they
declare. A byte that does not fit costs its character, which becomes U+FFFD, and no other one.
"""

from __future__ import annotations

import codecs
import contextlib
import re
from dataclasses import dataclass

from triplewire.read.decoded import Problem, warning

_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32-le",
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
_BEGINNINGS = {
    "utf-32-be": re.compile(rb"(?:\0\0\0\s)*+\0\0\0<"),
    "utf-32-le": re.compile(rb"(?:\s\0\0\0)*+<\0\0\0"),
    "utf-16-be": re.compile(rb"(?:\0\s)*+\0<"),
    "utf-16-le": re.compile(rb"(?:\s\0)*+<\0"),
    "cp037": re.compile(rb"\x4c\x6f\xa7\x94"),  # EBCDIC
}
"""How XML begins without a byte order mark, in encodings that are no superset of ASCII."""

_DECLARATION = re.compile(r"""<\?xml\s[^<>]*?encoding\s*=\s*["']\s*([^"'<>]*?)\s*["'][^<>]*?\?>""", re.IGNORECASE)
_REPLACEMENT = "\ufffd".encode()
_ROOT = re.compile(r"<[A-Za-z_]")
HEAD = 4096
"""Characters in which a declaration is looked for."""
_ALIASES = {
    "windows-874": "cp874", "x-sjis": "cp932", "ms_kanji": "cp932", "ks_c_5601-1987": "cp949", "win-1251": "cp1251",
    "unicode-1-1-utf-8": "utf-8", "iso-8859-8-i": "iso8859-8", "iso-8859-8-e": "iso8859-8",
    "windows-31j": "cp932", "windows-949": "cp949", "ks_c_5601-1989": "cp949", "ksc_5601": "cp949",
    "gb_2312": "gb2312", "gb_2312-80": "gb2312", "cn-big5": "big5", "dos-874": "cp874", "mac": "mac-roman",
    "koi": "koi8-r", "koi8": "koi8-r", "koi8-ru": "koi8-u",
}  # fmt: skip
_EXTRA = re.compile(r"^(?:x-)+")  # x-gbk, x-x-big5
_WIDER = {
    "ascii": "utf-8", "utf-8-sig": "utf-8", "iso8859-1": "cp1252", "iso8859-9": "cp1254", "iso8859-11": "cp874",
    "tis-620": "cp874", "shift_jis": "cp932", "euc_kr": "cp949", "gb2312": "gb18030",
    "gbk": "gb18030", "big5": "big5hkscs",
}  # fmt: skip
"""Encodings for which a wider one is written under the same name."""

_MULTI_BYTE = re.compile(r"cp9[345]\d|gb|big5|euc|hz|johab|iso2022|shift")
_SAMPLE = b"<?xml a='+AGE-\\u0041'?>"  # UTF-7 and Python's escapes read it otherwise than ASCII does
_CUT = re.compile(rb"\xe2\x80(?![\x80-\xbf])|\xf0\x9f")  # how quotation marks, dashes and emoji of UTF-8 begin
_HALF = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]")  # of a surrogate pair: some programs write two for an emoji
_NO_ASCII = bytes(range(0x80, 0x100))


@dataclass(frozen=True, slots=True)
class Text:
    """A document as text, and what is to be said of its encoding: one warning, or none."""

    text: str
    problems: list[Problem]


def known(name: str) -> str:
    """Python's name of an encoding that a document or a server states; "" for one that is not known, or that is no
    superset of ASCII."""
    name = name.strip().lower()
    try:
        name = _ALIASES.get(name) or _EXTRA.sub("", name).replace("iso8859", "iso8859-")  # iso885915
        codec = codecs.lookup(name).name
        is_superset = _SAMPLE.decode(codec) == _SAMPLE.decode("ascii")
    except (LookupError, ValueError):
        return ""
    return _WIDER.get(codec, codec) if is_superset and codec not in ("idna", "punycode") else ""


def by_first_bytes(data: bytes) -> tuple[str, bytes]:
    """The encoding that the first bytes show, if it is no superset of ASCII ("" for none), and the document without its
    byte order mark."""
    if data.startswith(codecs.BOM_UTF8):
        return "", data.removeprefix(codecs.BOM_UTF8)
    for mark, encoding in _MARKS.items():
        if data.startswith(mark):
            return encoding, data.removeprefix(mark)
    return next((encoding for encoding, begin in _BEGINNINGS.items() if begin.match(data)), ""), data


def declared(text: str) -> re.Match[str] | None:
    """The XML declaration, whatever stands between it and the root; group 1 is the encoding that it states."""
    root = _ROOT.search(text, 0, HEAD)
    return _DECLARATION.search(text, 0, root.start() if root else HEAD)


def decoded(data: bytes) -> Text:
    """A document in any encoding as text."""
    encoding, data = by_first_bytes(data)
    head = data[: 4 * HEAD].decode(encoding or "latin-1", "ignore")
    stated = match[1] if (match := declared(head)) else ""
    name = known(stated) if stated else "utf-8"
    if encoding == "cp037":
        with contextlib.suppress(LookupError, ValueError):
            encoding = stated if data[:4].decode(stated) == "<?xm" else encoding
        return _text(data, encoding)
    if encoding:
        said = f"{stated} is declared, but the document is {encoding.upper()}, and is read so"
        return _text(data, encoding, said if stated and name else "")
    if name and name != "utf-8" and not is_utf8_instead(data, name):
        return _text(data, name)
    is_utf8 = name not in ("", "utf-8") or _is_utf8(data)
    if is_utf8 and (not stated or (name == "utf-8" and (data.isascii() or stated.lower().startswith("utf")))):
        return _text(data, "utf-8")
    said = f"{stated[:40] or 'no encoding'} is declared, but the document {'is' if is_utf8 else 'is not'} UTF-8"
    return _text(data, "utf-8" if is_utf8 else "cp1252", f"{said}: read as {'UTF-8' if is_utf8 else 'windows-1252'}")


def _text(data: bytes, encoding: str, note: str = "") -> Text:
    """The text in an encoding, with U+FFFD for what does not fit."""
    try:
        return Text(data.decode(encoding), [warning(note)] if note else [])
    except UnicodeDecodeError as error:
        at = error.start
    start = len(data[:at].decode(encoding, "ignore"))
    text = data.decode(encoding, "replace")
    count = text.count("\ufffd", start) - (data.count(_REPLACEMENT, at) if encoding == "utf-8" else 0)
    many = f"{count} damaged characters, the first of them here, were" if count > 1 else "a damaged character was"
    said = f"{note}{'; ' if note else ''}{many} replaced by U+FFFD"
    return Text(text, [warning(said, text.count("\n", 0, start) + 1)])


def _of_utf8(data: bytes) -> tuple[int, int]:
    """How many sequences of several bytes are UTF-8 (or begin as its usual ones do), and how many parts are not."""
    text = data.decode("utf-8", "replace")
    bad = text.count("\ufffd") - data.count(_REPLACEMENT)
    several = len(text) - len(data.translate(None, _NO_ASCII)) - bad
    halves = len(_HALF.findall(data)) if bad else 0  # each of them is three damaged characters
    return several + halves + (len(_CUT.findall(data)) if bad else 0), bad - 2 * halves


def _is_utf8(data: bytes) -> bool:
    """Is it UTF-8, as it should be, but for parts? In documents of other encodings, few sequences look like UTF-8."""
    several, bad = _of_utf8(data)
    return 2 * several >= bad


def is_utf8_instead(data: bytes, name: str) -> bool:
    """Is it UTF-8, although it declares the encoding of that name?"""
    several, bad = _of_utf8(data)
    if not several or several < 4 * bad:
        return False
    if not _MULTI_BYTE.match(name):
        return True
    try:  # some words of East Asian encodings are UTF-8 by chance, but of two bytes a character
        data.decode(name)
    except UnicodeDecodeError:
        return True
    return not bad and max(data.decode("utf-8")) >= "\u0800"
