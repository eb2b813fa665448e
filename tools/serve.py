"""Show the built site at http://localhost:8000, or at the next port that is free."""

import errno
import functools
import http.server
import sys

import build_book

FIRST_PORT = 8000


def server(first=FIRST_PORT, count=100):
    """A server of the site on the first free one of `count` ports."""
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(build_book.SITE))
    for port in range(first, first + count):
        try:
            return http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)
        except OSError as problem:
            if problem.errno != errno.EADDRINUSE:
                raise
            print(f"Port {port} is taken.")
    sys.exit(f"The ports {first} to {first + count - 1} are all taken; end a program that uses one, or "
             "open _build/html/index.html in a browser.")


def main():
    with server() as site:
        print(f"The book is at http://localhost:{site.server_address[1]} until you press Ctrl-C.", flush=True)
        try:
            site.serve_forever()
        except KeyboardInterrupt:
            print()


if __name__ == "__main__":
    main()
