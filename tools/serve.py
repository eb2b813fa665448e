"""Show the built site at http://localhost:8000, or at the next port that is free."""

import errno
import functools
import http.server
import sys

import build_book

FIRST_PORT = 8000


def server(port=FIRST_PORT, last=FIRST_PORT + 100):
    """A server of the site on the first free port from `port` on."""
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(build_book.SITE))
    for number in range(port, last):
        try:
            return http.server.ThreadingHTTPServer(("127.0.0.1", number), handler)
        except OSError as problem:
            if problem.errno != errno.EADDRINUSE:
                raise
            print(f"Port {number} is taken.")
    sys.exit(f"The ports {port} to {last - 1} are all taken.")


def main():
    with server() as site:
        print(f"The book is at http://localhost:{site.server_address[1]} until you press Ctrl-C.", flush=True)
        try:
            site.serve_forever()
        except KeyboardInterrupt:
            print()


if __name__ == "__main__":
    main()
