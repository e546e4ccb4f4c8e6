"""Is a text an absolute IRI, does it begin as one? References, resolved against a base; an IRI for any id.

Standards: RFC 3987, and RFC 3986 for references. Prefixes and labels in a namespace: `triplewire.model.namespaces`.
"""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import quote

# RFC 3987, 2.2. Characters above ASCII: ucschar, and iprivate in queries.
_UCS = "\xa0-\ud7ff\uf900-\ufdcf\ufdf0-\uffef" + "".join(
    f"{chr(plane << 16)}-{chr((plane << 16) + 0xFFFD)}" for plane in range(1, 15)
)
_PRIVATE = "\ue000-\uf8ff\U000f0000-\U000ffffd\U00100000-\U0010fffd"
PLAIN = rf"A-Za-z0-9._~!$&'()*+,;={_UCS}-"  # iunreserved and sub-delims
_HEX = "%[0-9A-Fa-f]{2}"
_SCHEME = "[A-Za-z][A-Za-z0-9+.-]*+"
_BEGINNING = re.compile(rf"({_SCHEME}):(//)?")
_ABSOLUTE = re.compile(
    rf"{_SCHEME}:"
    rf"(?://(?:(?:[{PLAIN}:]|{_HEX})*@)?(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?:[{PLAIN}]|{_HEX})*+)(?::[0-9]*+)?(?=[/?#]|\Z)"
    rf"|(?!//))"
    rf"(?:[{PLAIN}:@/]|{_HEX})*+(?:\?(?:[{PLAIN}{_PRIVATE}:@/?]|{_HEX})*+)?(?:#(?:[{PLAIN}:@/?]|{_HEX})*+)?"
)
# scheme, authority, path, query, fragment (RFC 3986, appendix B); a part that is absent is None
_PARTS = re.compile(rf"(?:({_SCHEME}):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL)


def has_scheme(text: str) -> bool:
    """Does it begin with a scheme and a colon, as absolute IRIs do? The rest is not looked at."""
    return _BEGINNING.match(text) is not None


def is_url(text: str) -> bool:
    """Does it begin with a scheme of two letters or more? `C:` is a drive."""
    match = _BEGINNING.match(text)
    return match is not None and len(match[1]) > 1


def is_address(text: str) -> bool:
    """Does it begin with a scheme and `://`?"""
    match = _BEGINNING.match(text)
    return match is not None and match[2] is not None


def is_absolute(text: str) -> bool:
    """Is it an absolute IRI (RFC 3987)?"""
    match = _ABSOLUTE.fullmatch(text)
    if match is None or match["v6"] is None:
        return match is not None
    try:
        return bool(ipaddress.IPv6Address(match["v6"]))
    except ValueError:
        return False


def id_iri(identifier: str | bytes) -> str:
    """`identifier` where it is an absolute IRI, else a percent-encoded URN, as bytes that are no UTF-8 are, too."""
    if isinstance(identifier, bytes):
        try:
            identifier = identifier.decode("utf-8")
        except UnicodeDecodeError:
            return "urn:triplewire:id:" + quote(identifier, safe="")
    if is_absolute(identifier):
        return identifier
    return "urn:triplewire:id:" + quote(identifier, safe="", errors="surrogatepass")


def resolve(reference: str, base: str) -> str:
    """An IRI reference against a base (RFC 3986, 5.2); without a base, as it stands. An empty fragment is kept.

    Against a base without slashes (a URN), a relative path replaces what follows the last `/`, `#` or `:`.
    """
    scheme, authority, path, query, _ = _split(reference)
    if not base or scheme is not None:
        return reference
    base_scheme, base_authority, base_path, base_query, _ = _split(base)
    if authority is None:
        authority = base_authority
        if not path:
            path = base_path
            query = base_query if query is None else query
        elif base_authority is None and "/" not in base_path and not path.startswith("/"):
            return base[: max(base.rfind("/"), base.rfind("#"), base.rfind(":")) + 1] + reference
        elif path.startswith("/"):
            path = _without_dots(path)
        elif base_authority is not None and not base_path:
            path = _without_dots("/" + path)
        else:
            path = _without_dots(base_path[: base_path.rfind("/") + 1] + path)
    else:
        path = _without_dots(path)
    before = f"{base_scheme}:" if base_scheme is not None else ""
    before += f"//{authority}" if authority is not None else ""
    fragment = reference.partition("#")[1:]
    return before + path + (f"?{query}" if query is not None else "") + "".join(fragment)


def _split(reference: str) -> tuple[str | None, str | None, str, str | None, str | None]:
    match = _PARTS.fullmatch(reference)
    assert match is not None  # every text fits
    return match[1], match[2], match[3], match[4], match[5]


def _without_dots(path: str) -> str:
    """The path without its dot segments (RFC 3986, 5.2.4), whether or not it starts with a slash."""
    output: list[str] = []
    segments = path.split("/")
    for segment in segments:
        if segment == "..":
            if len(output) > 1 or (output and output[0]):
                output.pop()
        elif segment != ".":
            output.append(segment)
    if segments[-1] in (".", ".."):
        output.append("")
    return "/".join(output)
