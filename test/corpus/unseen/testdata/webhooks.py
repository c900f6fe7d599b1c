#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The mutating webhooks of package unseen that are written in Python. The package describes them.

Usage: webhooks.py PORT

Serves all webhooks on 127.0.0.1. The URL path is the name of the case. With port 0 the system chooses one.
The first line of the output says which port it is.
"""

import base64
import copy
import functools
import hashlib
import json
import logging
import re
import sys
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HANDLERS = {}


class Denied(Exception):
    """The reason to deny an object."""


def case(name):
    """Registers a handler, which gets the request and changes the object in place."""

    def register(handler):
        HANDLERS["/" + name] = handler
        return handler

    return register


# What the handlers share.


def annotations(obj):
    return (obj.get("metadata") or {}).get("annotations") or {}


def labels(obj):
    return (obj.get("metadata") or {}).get("labels") or {}


def containers(spec):
    return (spec.get("initContainers") or []) + (spec.get("containers") or [])


def child(parent, key, empty):
    """Returns the map or list under key, and creates it where it is absent or null."""
    if parent.get(key) is None:
        parent[key] = empty
    return parent[key]


def named(items, name):
    return next((item for item in items or [] if item.get("name") == name), None)


def default_env(container, name, value):
    """Adds a variable, unless there is one with this name."""
    if not named(container.get("env"), name):
        child(container, "env", []).append({"name": name, "value": value})


def set_env(container, name, value):
    """Replaces the variable with this name, or adds it if there is none."""
    have = named(container.get("env"), name)
    if have is None:
        child(container, "env", []).append({"name": name, "value": value})
    elif have.get("value") != value:
        have.pop("valueFrom", None)
        have["value"] = value


# U01: what switches the webhook on is hard to guess.

WINDOW = re.compile(r"(\w{3})-(\w{3}) (\d\d:\d\d)-(\d\d:\d\d)")


def window(obj):
    return WINDOW.fullmatch(annotations(obj).get("batch.example.com/window", ""))


def job_pod(cron_job):
    return cron_job["spec"]["jobTemplate"]["spec"]["template"]["spec"]


@case("U01b4-batch-window-env")
def window_noted(_, obj):
    found = window(obj)
    if not found or annotations(obj).get("batch.example.com/configured") == "true":
        return
    for container in containers(job_pod(obj)):
        set_env(container, "BATCH_WINDOW", "/".join(found.groups()))
    child(obj["metadata"], "annotations", {})["batch.example.com/configured"] = "true"


@case("U01c4-batch-window-env-everywhere")
def window_everywhere(_, obj):
    found = window(obj)
    if found:
        for container in containers(job_pod(obj)):
            set_env(container, "BATCH_WINDOW", "/".join(found.groups()))


# U02: values with structure inside.

HEALTH = "management.endpoint.health.enabled"
PROPERTIES = "application.properties"


def properties(obj):
    return (obj.get("data") or {}).get(PROPERTIES) if labels(obj).get("framework") == "spring" else None


def append_health(obj):
    text = obj["data"][PROPERTIES]
    if text and not text.endswith("\n"):
        text += "\n"
    obj["data"][PROPERTIES] = text + HEALTH + "=true\n"


@case("U02b4-spring-properties")
def spring_by_prefix(_, obj):
    text = properties(obj)
    if text is not None and not any(line.startswith(HEALTH + "=") for line in text.splitlines()):
        append_health(obj)


@case("U02c4-spring-properties-parsed")
def spring_parsed(_, obj):
    text = properties(obj) if not obj.get("immutable") else None
    if text is not None and not any(re.match(re.escape(HEALTH) + r"\s*([=:\s]|$)", line.strip()) for line in text.splitlines()):
        append_health(obj)


@case("U02c7-no-proxy-hosts")
def no_proxy(_, obj):
    for container in containers(obj["spec"]):
        env = container.get("env") or []
        if not named(env, "HTTPS_PROXY"):
            continue
        last = named(reversed(env), "NO_PROXY")
        if last is None:
            env.append({"name": "NO_PROXY", "value": ".svc,.cluster.local"})
        elif "valueFrom" not in last:
            have = last.get("value", "")
            known = {host.strip().lower() for host in have.split(",")}
            missing = [host for host in (".svc", ".cluster.local") if host not in known]
            last["value"] = ",".join(([have] if have else []) + missing)


# U03: names that collide.


def tls_hosts(obj):
    if annotations(obj).get("tls.example.com/auto") != "true":
        return []
    return [rule["host"] for rule in obj["spec"].get("rules") or [] if rule.get("host")]


@case("U03b3-tls-secret-of-host")
def tls_dashes(_, obj):
    for host in tls_hosts(obj):
        secret = host.replace(".", "-") + "-tls"
        entries = child(obj["spec"], "tls", [])
        if not any(entry.get("secretName") == secret for entry in entries):
            entries.append({"hosts": [host], "secretName": secret})


@case("U03c3-tls-secret-keeps-dots")
def tls_dots(_, obj):
    for host in tls_hosts(obj):
        secret = host + ".tls"
        entries = obj["spec"].get("tls") or []
        if host.startswith("*") or len(secret) > 253 or any(host in (entry.get("hosts") or []) for entry in entries):
            continue
        own = next((entry for entry in entries if entry.get("secretName") == secret), None)
        if own is not None:
            child(own, "hosts", []).append(host)
        else:
            child(obj["spec"], "tls", []).append({"hosts": [host], "secretName": secret})


@case("U03c6-service-port-names")
def port_names(_, obj):
    if annotations(obj).get("ports.example.com/named") != "true" or obj["metadata"].get("deletionTimestamp"):
        return
    ports = obj["spec"].get("ports") or []
    for port in ports:
        if not port.get("name"):
            name = "port-%d-%s" % (port["port"], port.get("protocol", "TCP").lower())
            if named(ports, name):
                raise Denied("another port has the name " + name)
            port["name"] = name


# U04: identity and memory.

LOCK = threading.Lock()
SEEN = set()
LAST_CLASS = {}


def low_ndots(obj):
    if labels(obj).get("dns.example.com/profile") != "low-ndots":
        return
    options = child(child(obj["spec"], "dnsConfig", {}), "options", [])
    if not named(options, "ndots"):
        options.append({"name": "ndots", "value": "2"})


def seen(uid):
    """Reports whether a request was seen before, and remembers it."""
    with LOCK:
        if uid in SEEN:
            return True
        SEEN.add(uid)
        return False


@case("U04b4-seen-request-uids")
def dns_once(request, obj):
    if not seen(request["uid"]):
        low_ndots(obj)


@case("U04c4-repeated-uids-logged")
def dns_logged(request, obj):
    if seen(request["uid"]):
        logging.info("request %s came again", request["uid"])
    low_ndots(obj)


@case("U04b6-last-storage-class")
def last_class(request, obj):
    with LOCK:
        if obj["spec"].get("storageClassName"):
            LAST_CLASS[request["namespace"]] = obj["spec"]["storageClassName"]
        elif "storageClassName" not in obj["spec"]:
            obj["spec"]["storageClassName"] = LAST_CLASS.get(request["namespace"], "standard")


@functools.lru_cache(maxsize=1000)
def class_of(namespace):
    return "premium" if namespace.endswith("-prod") else "standard"


@case("U04c7-storage-class-of-namespace")
def class_of_namespace(request, obj):
    if "storageClassName" not in obj["spec"]:
        obj["spec"]["storageClassName"] = class_of(request["namespace"])


# U05: other webhooks.


def zone_constraint(obj):
    return {
        "maxSkew": 1,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": copy.deepcopy(obj["spec"]["selector"]),
    }


@case("U05b5-spread-over-zones")
def spread_equal(_, obj):
    if labels(obj).get("availability") == "high":
        constraints = child(obj["spec"]["template"]["spec"], "topologySpreadConstraints", [])
        if zone_constraint(obj) not in constraints:
            constraints.append(zone_constraint(obj))


@case("U05c5-spread-over-zones-by-key")
def spread_by_key(_, obj):
    spec = obj["spec"]["template"]["spec"]
    want = zone_constraint(obj)
    have = {constraint.get("topologyKey") for constraint in spec.get("topologySpreadConstraints") or []}
    if labels(obj).get("availability") == "high" and want["topologyKey"] not in have:
        child(spec, "topologySpreadConstraints", []).append(want)


@case("U05c8-pull-secret")
def pull_secret(_, obj):
    if labels(obj).get("images.example.com/private") == "true" and not named(obj["spec"].get("imagePullSecrets"), "corp-registry"):
        child(obj["spec"], "imagePullSecrets", []).append({"name": "corp-registry"})


# U06: late containers and copies.

PROFILER = "registry.example.com/profiling/agent:3.0"


@case("U06b4-agents-refreshed-by-image")
def profiler_replaced(_, obj):
    if "profiler.example.com/agent" in annotations(obj):
        others = [c for c in obj["spec"]["containers"] if not c.get("image", "").startswith("registry.example.com/profiling/agent:")]
        obj["spec"]["containers"] = others + [{"name": "profiler", "image": PROFILER}]


@case("U06c4-agent-configured-in-place")
def profiler_in_place(_, obj):
    version = annotations(obj).get("profiler.example.com/agent")
    if version is None:
        return
    if not named(containers(obj["spec"]), "profiler"):
        obj["spec"]["containers"].append({"name": "profiler", "image": PROFILER})
    set_env(named(containers(obj["spec"]), "profiler"), "PROFILE_TARGET", "https://profiles.example.com/" + version)


@case("U06c8-log-format-variable")
def log_format(_, obj):
    if labels(obj).get("logs.example.com/ship") == "yes":
        for container in containers(obj["spec"]):
            default_env(container, "LOG_FORMAT", "json")


# U07: sparse objects.

SAVEPOINT = "streams.example.com/savepoint"
CA = "-----BEGIN CERTIFICATE-----\n%s\n-----END CERTIFICATE-----\n" % base64.b64encode(b"corporate root").decode()


@case("U07b3-stream-template-metadata")
def savepoint_assumed(_, obj):
    if "savepoint" in obj["spec"]:
        obj["spec"]["template"]["metadata"].setdefault("annotations", {})[SAVEPOINT] = obj["spec"]["savepoint"]


@case("U07c3-stream-template-annotated")
def savepoint_created(_, obj):
    if obj["spec"].get("savepoint"):
        metadata = child(obj["spec"]["template"], "metadata", {})
        child(metadata, "annotations", {})[SAVEPOINT] = obj["spec"]["savepoint"]


@case("U07b6-binary-config-map")
def ca_assumed(_, obj):
    if labels(obj).get("trust.example.com/bundle") == "true":
        obj["data"]["corp-ca.pem"] = CA


@case("U07c6-trust-config-map")
def ca_created(_, obj):
    taken = obj.get("immutable") or "corp-ca.pem" in (obj.get("binaryData") or {})
    if labels(obj).get("trust.example.com/bundle") == "true" and not taken:
        child(obj, "data", {})["corp-ca.pem"] = CA


# U08: zero values.

TIERS = {"gold": "ssd-replicated", "silver": "ssd"}


@case("U08b3-storage-class-of-unknown-tier")
def tier_or_empty(_, obj):
    tier = labels(obj).get("storage.example.com/tier")
    if tier and "storageClassName" not in obj["spec"]:
        obj["spec"]["storageClassName"] = TIERS.get(tier, "")


@case("U08c3-storage-class-of-known-tier")
def tier_if_known(_, obj):
    tier = labels(obj).get("storage.example.com/tier")
    if tier in TIERS and "storageClassName" not in obj["spec"]:
        obj["spec"]["storageClassName"] = TIERS[tier]


@case("U08c7-no-history-on-purpose")
def no_history(_, obj):
    if labels(obj).get("batch.example.com/history") == "none":
        obj["spec"]["failedJobsHistoryLimit"] = 0


# U09: an UPDATE that replaces the object.


def track(obj):
    return labels(obj).get("release.example.com/track")


def label_template(obj):
    child(child(obj["spec"]["template"], "metadata", {}), "labels", {})["release.example.com/track"] = track(obj)


@case("U09b4-version-in-selector")
def track_selected(_, obj):
    if track(obj):
        label_template(obj)
        child(obj["spec"]["selector"], "matchLabels", {})["release.example.com/track"] = track(obj)


@case("U09c4-version-in-template")
def track_labelled(_, obj):
    if track(obj):
        label_template(obj)


@case("U09c7-topic-cleanup-on-each-write")
def compacted(_, obj):
    if annotations(obj).get("data.example.com/shape") == "table":
        obj["spec"]["cleanupPolicy"] = "compact"


# U10: generated values.


def trace_root(obj, root, write):
    if labels(obj).get("tracing.example.com/root") == "true":
        for container in containers(obj["spec"]):
            write(container, "TRACE_ROOT", root)


@case("U10b3-one-trace-id-per-pod")
def trace_root_drawn(_, obj):
    trace_root(obj, str(uuid.uuid4()), default_env)


@case("U10c3-trace-root-of-app")
def trace_root_derived(request, obj):
    app = request["namespace"] + "/" + labels(obj).get("app", "")
    trace_root(obj, str(uuid.uuid5(uuid.NAMESPACE_DNS, app)), set_env)


@case("U10c7-run-group")
def run_group(request, obj):
    group = annotations(obj).get("batch.example.com/group")
    if group is not None:
        digest = hashlib.sha256((request["namespace"] + "\0" + group).encode()).hexdigest()
        child(obj["metadata"], "labels", {})["batch.example.com/run-group"] = digest[:16]


# The protocol.


def difference(before, after, path=""):
    """Returns the operations of a JSON Patch that turns before into after."""
    if isinstance(before, dict) and isinstance(after, dict):
        ops = []
        for key in sorted(before.keys() | after.keys()):
            at = path + "/" + key.replace("~", "~0").replace("/", "~1")
            if key not in after:
                ops.append({"op": "remove", "path": at})
            elif key not in before:
                ops.append({"op": "add", "path": at, "value": after[key]})
            else:
                ops += difference(before[key], after[key], at)
        return ops
    if isinstance(before, list) and isinstance(after, list):
        ops = []
        for i in range(min(len(before), len(after))):
            ops += difference(before[i], after[i], "%s/%d" % (path, i))
        ops += [{"op": "add", "path": path + "/-", "value": value} for value in after[len(before):]]
        ops += [{"op": "remove", "path": "%s/%d" % (path, i)} for i in reversed(range(len(after), len(before)))]
        return ops
    if before == after and isinstance(before, bool) == isinstance(after, bool):
        return []
    return [{"op": "replace", "path": path, "value": after}]


def answer(handler, request):
    """Returns the AdmissionResponse for a request."""
    response = {"uid": request["uid"], "allowed": True}
    before = request.get("object")
    if before is None:
        return response
    after = copy.deepcopy(before)
    try:
        handler(request, after)
    except Denied as reason:
        return {"uid": request["uid"], "allowed": False, "status": {"message": str(reason), "code": 403}}
    ops = difference(before, after)
    if ops:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(json.dumps(ops).encode()).decode()
    return response


class Server(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        handler = HANDLERS.get(self.path.split("?")[0])
        if handler is None:
            return self.reply(404, {"message": "there is no webhook " + self.path})
        try:
            response = answer(handler, json.loads(body)["request"])
        except Exception as error:  # A webhook that fails must still answer.
            return self.reply(500, {"message": repr(error)})
        self.reply(200, {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})

    def reply(self, status, document):
        data = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        """Logs nothing for each request."""


class Listener(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: webhooks.py PORT")
    server = Listener(("127.0.0.1", int(sys.argv[1])), Server)
    print("listening on 127.0.0.1:%d" % server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
