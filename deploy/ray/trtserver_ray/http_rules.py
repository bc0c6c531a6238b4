"""Which headers go through, and which target the server sees. Pure."""

from urllib.parse import quote

# Of one connection, not of the request (RFC 9110, section 7.6.1).
HOP_BY_HOP = {
    b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"proxy-connection", b"te",
    b"trailer", b"transfer-encoding", b"upgrade",
}  # fmt: skip
# The client was told to go on by the proxy that read its body.
NOT_FORWARDED = HOP_BY_HOP | {b"expect"}


def forwarded_headers(headers):
    """Pairs of bytes, as they came. Fields that `Connection` names are left out, too."""
    named = {
        token.strip().lower()
        for name, value in headers
        if name.lower() == b"connection"
        for token in value.split(b",")
    }
    return [(name, value) for name, value in headers if name.lower() not in NOT_FORWARDED | named]


def forwarded_target(scope):
    """Path and query as the client wrote them, without the route prefix of the application."""
    path = scope.get("raw_path") or quote(scope["path"], safe="/:@!$&'()*+,;=~").encode()
    path = path.split(b"?", 1)[0].decode("latin-1") if isinstance(path, bytes) else path
    prefix = scope.get("root_path", "").rstrip("/")
    if prefix and (path == prefix or path.startswith(prefix + "/")):
        path = path[len(prefix):] or "/"  # fmt: skip
    query = scope.get("query_string", b"").decode("latin-1")
    return f"{path}?{query}" if query else path
