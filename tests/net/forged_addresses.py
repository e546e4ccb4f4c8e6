"""Addresses that lead to this machine or its network, written in ways that a check may read otherwise.

The ways are those of public lists for server-side request forgery and of the histories of feed readers: numbers in all
bases, wrapped in IPv6, names, and URLs that two parsers read in two ways.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

INSIDE = ("127.0.0.1", "127.0.0.2", "127.255.255.254", "0.0.0.0", "10.0.0.1", "172.16.0.1", "192.168.0.1",
          "169.254.169.254", "100.64.0.1", "192.0.0.8", "198.18.0.1", "224.0.0.1", "255.255.255.255")  # fmt: skip
NAMES = ("internal.example", "127.0.0.1.nip.example", "localtest.example", "a.b.c.example", "metadata.example.")
"""Names that a resolver of the attacker gives the address of this machine."""


def numbers(address: str) -> Iterator[str]:
    """An address of IPv4 as `inet_aton` reads it."""
    whole, parts = int(ipaddress.IPv4Address(address)), [int(part) for part in address.split(".")]
    yield address
    yield from (str(whole), hex(whole), f"0{whole:o}", f"0X{whole:08X}", f"{whole:#012x}")
    yield ".".join(map(hex, parts))
    yield ".".join(f"0{part:o}" for part in parts)
    if parts[:3] == [127, 0, 0]:  # others would be read as octal numbers, and be public
        yield ".".join(f"{part:03d}" for part in parts)
    yield f"{parts[0]}.{whole & 0xFFFFFF}"
    yield f"{parts[0]:#x}.{parts[1]}.{whole & 0xFFFF}"
    yield f"{parts[0]}.{parts[1]}.{hex(whole & 0xFFFF)}"
    yield f"{address}."
    yield str(whole + 2**32)
    yield ".".join(f"{part + 256}" for part in parts)


def wrapped(address: str) -> Iterator[str]:
    """An address of IPv4 inside of one of IPv6."""
    whole = int(ipaddress.IPv4Address(address))
    high, low = whole >> 16, whole & 0xFFFF
    for prefix in ("::ffff:", "::", "64:ff9b::", "64:ff9b:1::", "::ffff:0:", "0:0:0:0:0:ffff:", "fe80::200:5efe:"):
        yield f"[{prefix}{address}]"
        yield f"[{prefix}{high:x}:{low:x}]"
    yield f"[2002:{high:x}:{low:x}::]"
    yield f"[2002:{high:04X}:{low:04X}:0:0:0:0:1]"
    yield f"[2001:0:{high:x}:{low:x}::]"
    yield f"[2001:0:4136:e378:8000:63bf:{high ^ 0xFFFF:x}:{low ^ 0xFFFF:x}]"
    yield f"[::ffff:{address}%25lo]"


OWN_6 = ("[::1]", "[::]", "[0:0:0:0:0:0:0:1]", "[0000:0000:0000:0000:0000:0000:0000:0001]", "[::1%25lo]", "[fe80::1]",
         "[fc00::1]", "[fd00:ec2::254]", "[fec0::1]", "[ff02::1]", "[3fff::1]", "[5f00::1]", "[::0:1]")  # fmt: skip
LOOKALIKE = ("１２７.０.０.１", "①②⑦.⓪.⓪.①", "127。0。0。1", "127｡0｡0｡1", "127．0．0．1", "ⓛⓞⓒⓐⓛⓗⓞⓢⓣ",
             "localhost", "LOCALHOST", "localhost.", "ｌocalhost", "127.0.0.1%00.example", "127.0.0.1%2eexample",
             "%31%32%37.0.0.1", "127.0.0.1%0d%0aX:y", "0", "127.1", "127.0.1", "00000177.1")  # fmt: skip
SHAPES = (
    "http://a@{host}:{port}/", "http://a:b@{host}:{port}/", "http://8.8.8.8@{host}:{port}/",
    "http://8.8.8.8:80@{host}:{port}/", "http://{host}:{port}\\@8.8.8.8/", "http://8.8.8.8\\@{host}:{port}/",
    "http://{host}:{port}#@8.8.8.8/", "http://8.8.8.8#@{host}:{port}/", "http://{host}:{port}?@8.8.8.8/",
    "http://8.8.8.8?@{host}:{port}/", "http:{host}:{port}/", "http:/{host}:{port}/", "http:///{host}:{port}/",
    "http:\\\\{host}:{port}\\", "//{host}:{port}/", "hTTp://{host}:{port}/", " http://{host}:{port}/",
    "http://{host}:{port}/ HTTP/1.1", "http://{host}:{port}/\r\nX: y", "http://{host}:{port}/\t",
    "http://\t{host}:{port}/", "http://{host}:{port}/%0d%0aX:%20y", "gopher://{host}:{port}/_GET%20/",
    "ftp://{host}:{port}/", "file://{host}/etc/passwd", "dict://{host}:{port}/", "jar:http://{host}:{port}!/",
    "http+unix://{host}/", "http://{host}:0{port}/", "http://{host}:{port}@/", "http://[{host}]:{port}/",
    "http://{host},8.8.8.8:{port}/", "http://{host}:{port}:80/", "http://8.8.8.8 {host}:{port}/", "data:,{host}",
)  # fmt: skip


def forged(port: int) -> list[str]:
    """All of them, with the port of a server that must not be asked."""
    hosts = [host for address in INSIDE for host in (*numbers(address), *wrapped(address))]
    hosts += [*OWN_6, *LOOKALIKE, *NAMES]
    urls = [f"http://{host}:{port}/" for host in hosts]
    urls += [
        shape.format(host=host, port=port) for shape in SHAPES for host in ("127.0.0.1", "[::1]", "internal.example")
    ]
    return list(dict.fromkeys(urls))
