"""What all programs share: flags that say where the server is, and the way to fail."""

import argparse
import sys

from tensorrtserver.api import InferenceServerException, ProtocolType


# The server's URL, for messages.
asked = ""


class Refused(Exception):
    """A flag, a model or a picture that a program cannot use."""


def number(least):
    """The type of a flag that takes an integer, not below `least`."""
    def checked(text):
        value = int(text)
        if value < least:
            raise argparse.ArgumentTypeError(f"must be a number >= {least}, got '{text}'")
        return value
    checked.__name__ = "int"
    return checked


def parser(description, url="localhost:8000", protocol=True, headers=False):
    made = argparse.ArgumentParser(description=description)
    made.add_argument("-v", "--verbose", action="store_true", help="Enable verbose output")
    made.add_argument("-u", "--url", default=url, help="Inference server URL. Default is %(default)s.")
    if protocol:
        made.add_argument("-i", "--protocol", default="http", help='Protocol ("http"/"grpc"). Default is "http".')
    made.set_defaults(http_headers=[])
    if headers:
        made.add_argument("-H", dest="http_headers", metavar="HTTP_HEADER", action="append",
                          help='HTTP header to add to requests: -H"Header:Value". Repeatable; ignored with gRPC.')
    return made


def parse(made):
    """The flags, with the protocol as the library has it; HTTP headers are of no use with gRPC."""
    global asked
    flags = made.parse_args()
    asked = flags.url
    for header in flags.http_headers:
        if ":" not in header:
            made.error(f"-H must be 'Header:Value', got '{header}'")
    if "protocol" not in flags:
        return flags
    if flags.protocol.lower() not in ("http", "grpc"):
        made.error(f"unexpected protocol: {flags.protocol}, expecting HTTP or gRPC")
    flags.protocol = ProtocolType.from_str(flags.protocol)
    if flags.protocol != ProtocolType.GRPC and flags.__dict__.get("streaming"):
        made.error("Streaming is only allowed with gRPC protocol")
    if flags.http_headers and flags.protocol != ProtocolType.HTTP:
        print("WARNING: HTTP headers specified with -H are ignored when using non-HTTP protocol.", file=sys.stderr)
        flags.http_headers = []
    return flags


def run(main, *errors):
    """Runs a program: an error becomes a message and exit code 1."""
    try:
        main()
    except (Refused, OSError) as error:
        fail(str(error))
    except (InferenceServerException, *errors) as error:
        # An error of gRPC's own package has its text in a method.
        text = error.details() if hasattr(error, "details") else str(error)
        fail(text if asked in text else f"{text} (server {asked})")


def fail(text):
    sys.stdout.flush()
    print(f"error: {text}", file=sys.stderr)
    sys.exit(1)
