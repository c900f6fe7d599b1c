# SPDX-License-Identifier: Apache-2.0
"""Mutating webhooks that break on reinvocation in the ways seen in public projects, and correct look-alikes.

    webhook.py CERT KEY STATE

serves each at a path of its own with TLS on a free port of 127.0.0.1, which it prints. GET / lists them as JSON:
path, laws that are broken (none for a look-alike), and what a user would say of them. STATE is the folder in
which those write a file each that have side effects. It ends when its standard input does.
"""

import base64
import copy
import http.server
import json
import ssl
import sys
import threading

import calls  # declares webhooks
import parts  # so does this
from pieces import CASES, Denial, difference


def patch_of(chosen, request):
    """Calls a webhook, and returns the operations of its patch."""
    obj = request.get("object")
    if obj is None:
        return []
    if chosen["form"] == "operations":
        return chosen["function"](request, obj)
    after = copy.deepcopy(obj)
    chosen["function"](request, after["spec"]["template"] if chosen["resource"] == "deployments" else after)
    return difference(obj, after)


def answer(chosen, review):
    request = review["request"]
    response = {"uid": request["uid"], "allowed": True}
    try:
        patch = patch_of(chosen, request)
        if patch:
            response.update(patchType="JSONPatch", patch=base64.b64encode(json.dumps(patch).encode()).decode())
    except Denial as denial:
        response.update(allowed=False, status={"code": 403, "reason": "Forbidden", "message": str(denial)})
    out = {"apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": response}
    if "spoil" in chosen:
        chosen["spoil"](out)
    return out


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # and headers and body in two segments, with Nagle's algorithm, as most leave it

    def send(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.send(200, [{k: v for k, v in c.items() if k not in ("function", "spoil", "form")} for c in CASES.values()])

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        chosen = CASES.get(self.path.partition("?")[0])
        if chosen is None:
            return self.send(404, "no such webhook")
        try:
            self.send(200, answer(chosen, json.loads(body)))
        except Exception as error:  # as frameworks do
            self.send(500, repr(error))

    def log_message(self, *_):
        pass


def serve(cert, key):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2])
