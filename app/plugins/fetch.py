"""Fetches a document from an address that an operator named, and from nowhere else inside.

An address is data: it may lead to a metadata service, a database, a router. So the name is resolved
here, every address it has must be public, the connection goes to the very address that was checked
(a name may mean something else a second later), and each redirect is looked at in the same way.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urljoin, urlsplit

import httpx

from app.errors import MergewardError

TIMEOUT_S = 2.0
"""Seconds for everything together: names, connections, redirects and the body."""

MOST_BYTES = 256 * 1024
MOST_REDIRECTS = 3

Resolve = Callable[[str, int], Awaitable[tuple[str, ...]]]
"""Host and port to addresses."""

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class FetchError(MergewardError):
    """A document was not fetched. The message names the host and the reason, never a credential."""


async def resolve(host: str, port: int) -> tuple[str, ...]:
    """What the machine's resolver says."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))


@dataclass(frozen=True, slots=True)
class Fetcher:
    """Fetches by GET. `internal_hosts` are names that may be inside, and may do without TLS: the
    operator says so. `transport` replaces the network (tests)."""

    internal_hosts: frozenset[str] = frozenset()
    timeout_s: float = TIMEOUT_S
    most_bytes: int = MOST_BYTES
    resolve: Resolve = resolve
    transport: httpx.AsyncBaseTransport | None = field(default=None, repr=False)

    async def fetch(self, url: str, headers: Mapping[str, str] | None = None) -> bytes:
        """The document at `url`. `headers` are sent to the first origin only. Raises FetchError."""
        try:
            async with asyncio.timeout(self.timeout_s):
                return await self._follow(url, dict(headers or {}))
        except TimeoutError:
            raise FetchError(f"{_host(url)} took longer than {self.timeout_s:g} s") from None
        except (httpx.HTTPError, OSError) as error:
            raise FetchError(f"{_host(url)} did not answer: {type(error).__name__}") from error
        except (httpx.InvalidURL, ValueError):
            # Their texts quote the address, which may be a stranger's.
            raise FetchError(f"{_host(url)} leads to an address that can't be read") from None

    async def _follow(self, url: str, headers: dict[str, str]) -> bytes:
        first = _origin(url)
        async with httpx.AsyncClient(
            transport=self.transport, trust_env=False, follow_redirects=False
        ) as client:
            for _ in range(MOST_REDIRECTS + 1):
                sent = headers if _origin(url) == first else {}
                answer = await self._get(client, url, sent)
                if isinstance(answer, bytes):
                    return answer
                url = answer
        raise FetchError(f"{_host(url)} redirects too often")

    async def _get(
        self, client: httpx.AsyncClient, url: str, headers: dict[str, str]
    ) -> bytes | str:
        """The body, or the address that the answer sends us to."""
        request = await self._request(client, url, headers)
        response = await client.send(request, stream=True)
        try:
            if response.status_code in _REDIRECTS and "location" in response.headers:
                return urljoin(url, response.headers["location"])
            if response.status_code != httpx.codes.OK:
                raise FetchError(f"{_host(url)} answered {response.status_code}")
            if response.headers.get("content-encoding", "identity") != "identity":
                raise FetchError(f"{_host(url)} sent a compressed body, which was not asked for")
            return await self._body(response, url)
        finally:
            await response.aclose()

    async def _body(self, response: httpx.Response, url: str) -> bytes:
        body = bytearray()
        async for piece in response.aiter_bytes():
            body += piece
            if len(body) > self.most_bytes:
                raise FetchError(f"{_host(url)} sent more than {self.most_bytes:,} bytes")
        return bytes(body)

    async def _request(
        self, client: httpx.AsyncClient, url: str, headers: dict[str, str]
    ) -> httpx.Request:
        """A request to the checked address, with the name in `Host` and in TLS."""
        parts = urlsplit(url)
        host, port = _checked(url)
        inside = host in self.internal_hosts
        if parts.scheme != "https" and not inside:
            raise FetchError(f"{host} is asked for without TLS: use https://")
        addresses = await self.resolve(host, port)
        if not addresses:
            raise FetchError(f"{host} has no address")
        if not inside:
            for address in addresses:
                _refuse_internal(host, address)
        authority = parts.netloc.rpartition("@")[2]
        return client.build_request(
            "GET",
            httpx.URL(url, host=addresses[0]),
            headers={"accept-encoding": "identity", **headers, "host": authority},
            extensions={"sni_hostname": host},
            timeout=self.timeout_s,
        )


def _checked(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    if parts.scheme not in ("https", "http") or not parts.hostname:
        raise FetchError("only https:// addresses are fetched")
    if parts.username is not None or parts.password is not None:
        raise FetchError(f"the address of {parts.hostname} carries credentials: use a token")
    try:
        port = parts.port
    except ValueError:
        raise FetchError(f"the address of {parts.hostname} has no valid port") from None
    return parts.hostname, port or (443 if parts.scheme == "https" else 80)


def _refuse_internal(host: str, address: str) -> None:
    if not is_public(address):
        raise FetchError(
            f"{host} leads to an internal address. If that is meant, name the host in "
            "MERGEWARD_INTERNAL_HOSTS"
        )


def is_public(address: str) -> bool:
    """Whether an IP address belongs to the open internet, also where it wraps an IPv4 address."""
    try:
        ip: _Address = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    return all(one.is_global and not one.is_multicast for one in (ip, *_wrapped(ip)))


def _wrapped(ip: _Address) -> tuple[ipaddress.IPv4Address, ...]:
    """The IPv4 addresses that an IPv6 address reaches (mapped, 6to4, Teredo, NAT64)."""
    if isinstance(ip, ipaddress.IPv4Address):
        return ()
    found = [ip.ipv4_mapped, ip.sixtofour, *(ip.teredo or ())]
    if ip in _NAT64:
        found.append(ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF))
    return tuple(one for one in found if one is not None)


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or "the address"
    except ValueError:
        return "the address"


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    try:
        return parts.scheme, parts.hostname, parts.port
    except ValueError:
        return parts.scheme, parts.hostname, None
