"""Documents from addresses that an operator named (app/plugins/fetch.py)."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from app.plugins.fetch import Fetcher, FetchError, Resolve, is_public

PUBLIC = "93.184.216.34"


def names(table: Mapping[str, tuple[str, ...]]) -> Resolve:
    async def resolve(host: str, port: int) -> tuple[str, ...]:
        return table.get(host, (PUBLIC,))

    return resolve


Answer = Callable[[httpx.Request], httpx.Response]


def fetcher(
    answer: Answer, table: Mapping[str, tuple[str, ...]] | None = None, **options: object
) -> Fetcher:
    return Fetcher(
        resolve=names(table or {}),
        transport=httpx.MockTransport(answer),
        **options,  # type: ignore[arg-type]  # a test's options
    )


def never(request: httpx.Request) -> httpx.Response:
    raise AssertionError(f"a request left for {request.url}")


INTERNAL = (
    "127.0.0.1", "10.0.0.8", "172.16.1.1", "192.168.1.1", "169.254.169.254", "100.64.0.1",
    "0.0.0.0",  # noqa: S104 - an address to refuse
    "192.0.2.1", "224.0.0.1", "255.255.255.255", "::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1",
    "fd12:3456::1", "ff02::1", "::ffff:10.0.0.8", "::ffff:169.254.169.254", "64:ff9b::a00:8",
    "2002:a00:8::1", "2002:7f00:1::", "not-an-address", "",
)  # fmt: skip


@pytest.mark.parametrize("address", INTERNAL)
async def test_an_internal_address_is_never_asked(address: str) -> None:
    """In whatever form it is written or wrapped; the message names the host and the way out."""
    assert not is_public(address)
    with pytest.raises(FetchError, match=r"config.acme.test leads to an internal") as said:
        await fetcher(never, {"config.acme.test": (PUBLIC, address)}).fetch(
            "https://config.acme.test/x"
        )
    assert "MERGEWARD_INTERNAL_HOSTS" in str(said.value)


@pytest.mark.parametrize("address", [PUBLIC, "8.8.8.8", "2606:4700::6810:84e5", "64:ff9b::808:808"])
def test_public_addresses(address: str) -> None:
    """The open internet, also through NAT64."""
    assert is_public(address)


@given(st.ip_addresses(v=4))
def test_wrapping_an_address_changes_nothing(address: object) -> None:
    """What is internal stays so behind every IPv6 form that reaches it."""
    plain = is_public(str(address))
    number = int(address)  # type: ignore[call-overload]  # an IPv4Address
    assert is_public(f"::ffff:{address}") <= plain
    assert is_public(f"64:ff9b::{number >> 16:x}:{number & 0xFFFF:x}") == plain


async def test_the_connection_goes_to_the_address_that_was_checked() -> None:
    """A name that means something else a moment later leads nowhere else; name and certificate
    stay those of the host."""
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200, content=b"{}")

    body = await fetcher(answer).fetch("https://config.acme.test:8443/a?b=c", {"x-token": "t"})
    [request] = seen
    assert body == b"{}"
    assert str(request.url) == f"https://{PUBLIC}:8443/a?b=c"
    assert request.headers["host"] == "config.acme.test:8443"
    assert request.extensions["sni_hostname"] == "config.acme.test"
    assert request.headers["x-token"] == "t"


@pytest.mark.parametrize(
    ("location", "words"),
    [
        pytest.param("https://inside.test/", "inside.test leads to an internal", id="inside"),
        pytest.param("//inside.test/", "inside.test leads to an internal", id="no-scheme"),
        pytest.param("http://config.acme.test/", "without TLS", id="downgrade"),
        pytest.param("file:///etc/passwd", "only https", id="file"),
        pytest.param("gopher://inside.test/", "only https", id="gopher"),
        pytest.param("https://u:p@config.acme.test/", "carries credentials", id="credentials"),
        pytest.param("https://config.acme.test:99999/", "no valid port", id="port"),
        pytest.param("/again", "redirects too often", id="loop"),
        pytest.param("https://[::1", "config.acme.test did not answer", id="brackets"),
    ],
)
async def test_a_redirect_is_checked_like_the_first_address(location: str, words: str) -> None:
    """What a public host may not be asked for, it may not send us to."""

    def answer(_: httpx.Request) -> httpx.Response:
        return httpx.Response(302, headers={"location": location})

    with pytest.raises(FetchError, match=words):
        await fetcher(answer, {"inside.test": ("10.0.0.8",)}).fetch("https://config.acme.test/")


@pytest.mark.parametrize("url", ["https://[::1/x", "https://a.test/\x00", "https://\udc80.test/"])
async def test_an_address_that_is_none(url: str) -> None:
    """What an operator mistyped is said like every other failure."""
    with pytest.raises(FetchError, match="can't be read"):
        await fetcher(never, {}).fetch(url)


async def test_a_token_stays_with_its_origin() -> None:
    """A redirect to another host, or another port, gets no credential."""
    seen: list[tuple[str, str | None]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append((request.headers["host"], request.headers.get("authorization")))
        where = {"a.test": "https://a.test:444/", "a.test:444": "https://b.test/"}
        target = where.get(request.headers["host"])
        if target is None:
            return httpx.Response(200, content=b"ok")
        return httpx.Response(307, headers={"location": target})

    await fetcher(answer).fetch("https://a.test/", {"authorization": "Bearer t"})
    assert seen == [("a.test", "Bearer t"), ("a.test:444", None), ("b.test", None)]


@pytest.mark.parametrize(
    ("response", "words"),
    [
        pytest.param(httpx.Response(404), "answered 404", id="status"),
        pytest.param(httpx.Response(302), "answered 302", id="redirect-to-nowhere"),
        pytest.param(httpx.Response(200, content=b"x" * 11), "more than 10 bytes", id="large"),
        pytest.param(
            httpx.Response(200, headers={"content-encoding": "gzip"}, content=b"x"),
            "compressed body",
            id="bomb",
        ),
    ],
)
async def test_what_is_no_document(response: httpx.Response, words: str) -> None:
    """Bounded before it is in memory, and never unpacked."""
    with pytest.raises(FetchError, match=words):
        await fetcher(lambda _: response, most_bytes=10).fetch("https://config.acme.test/")


async def test_time_is_bounded_as_a_whole() -> None:
    """A server that answers byte by byte, or a resolver that hangs, holds nobody up."""

    async def hangs(host: str, port: int) -> tuple[str, ...]:
        await asyncio.Event().wait()
        return ()

    with pytest.raises(FetchError, match=r"longer than 0.05 s"):
        await Fetcher(timeout_s=0.05, resolve=hangs).fetch("https://config.acme.test/")


async def test_an_operator_can_name_an_internal_host() -> None:
    """That one, by its exact name; it may do without TLS, and a redirect out of it is checked."""

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, content=request.headers["host"].encode())

    table = {"config.lan": ("10.0.0.8",), "other.lan": ("10.0.0.9",)}
    one = fetcher(answer, table, internal_hosts=frozenset({"config.lan"}))
    assert await one.fetch("http://config.lan:8080/x") == b"config.lan:8080"
    with pytest.raises(FetchError, match=r"other.lan leads to an internal"):
        await one.fetch("https://other.lan/")


def certificate(name: str, folder: Path) -> Path:
    """A self-signed certificate for one name, with its key, as one PEM file."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = folder / f"{name}.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    file.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    return file


@pytest.mark.parametrize(
    ("asked", "good"),
    [pytest.param("config.test", True, id="its-name"), pytest.param("other.test", False, id="not")],
)
async def test_the_certificate_is_held_against_the_name(
    asked: str, good: bool, tmp_path: Path
) -> None:
    """Although the connection goes to a bare address; over a real TLS socket."""
    file = certificate("config.test", tmp_path)
    server_side = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_side.load_cert_chain(file)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=server_side)
    port = server.sockets[0].getsockname()[1]
    client_side = ssl.create_default_context(cafile=str(file))
    one = Fetcher(
        internal_hosts=frozenset({"config.test", "other.test"}),
        resolve=names({"config.test": ("127.0.0.1",), "other.test": ("127.0.0.1",)}),
        transport=httpx.AsyncHTTPTransport(verify=client_side),
    )
    async with server:
        if good:
            assert await one.fetch(f"https://{asked}:{port}/") == b"ok"
        else:
            with pytest.raises(FetchError, match=r"other.test did not answer: ConnectError"):
                await one.fetch(f"https://{asked}:{port}/")
