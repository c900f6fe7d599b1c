# SPDX-License-Identifier: Apache-2.0
"""P01 to P12 and P26: what webhooks do to their own parts of an object, and to those of others."""

import hashlib
import json
import random
from decimal import Decimal, InvalidOperation

from pieces import *


# P01 and P02: appended without looking.

@case("P01", "blind append of a sidecar", "L1")
@case("P01", "blind append of a sidecar to Deployments", "L1", operations="CREATE UPDATE", resource="deployments")
def blind_sidecar(_, pod):
    more(pod["spec"], "containers", side())


@case("P01", "append if absent")
@case("P01", "append to Deployments if absent", operations="CREATE UPDATE", resource="deployments")
@case("P18", "patches an immutable field on UPDATE", "L6", operations="CREATE UPDATE")
def sidecar_if_absent(_, pod):
    if not taken(pod, "agent"):
        more(pod["spec"], "containers", side())


@case("P02", "blind append of volume and mount", "L1")
def blind_volume(_, pod):
    more(pod["spec"], "volumes", secret("certs", "agent-certs"))
    for c in pod["spec"]["containers"]:
        more(c, "volumeMounts", {"name": "certs", "mountPath": "/certs"})


@case("P02", "blind append of envFrom", "L1")
def blind_env_from(_, pod):
    for c in pod["spec"]["containers"]:
        more(c, "envFrom", {"configMapRef": {"name": "agent-env"}})


@case("P02", "ensure volume, ensure mount")
def certs_mounted(_, pod):
    ensure_mounted(pod, secret("certs", "agent-certs"), "/certs")


@case("P02", "ensure envFrom")
def ensured_env_from(_, pod):
    for c in containers(pod):
        if not any(not s.get("prefix") and s.get("configMapRef", {}).get("name") == "agent-env" for s in c.get("envFrom") or []):
            more(c, "envFrom", {"configMapRef": {"name": "agent-env"}})


# P03: a value that grows.

@case("P03", "value concatenation", "L1 L12")
def concatenated(_, pod):
    c = pod["spec"]["containers"][0]
    e = env(c, "OPTS")
    if e:
        e["value"] = e.get("value", "") + " -agent"
    else:
        ensure_env(c, "OPTS", "-agent")


@case("P03", "token once")
def token_once(_, pod):
    for c in containers(pod):
        e = env(c, "OPTS")
        if e is None:
            ensure_env(c, "OPTS", "-agent")
        elif "valueFrom" in e:
            raise Denial("OPTS must be a plain value")
        elif "-agent" not in e.get("value", "").split():
            e["value"] = " ".join(filter(None, [e.get("value"), "-agent"]))


# P04: refuses its own output.

@case("P04", "refuses its own output", "L2")
def refuses_own(_, pod):
    for c in pod["spec"]["containers"]:
        if env(c, "AGENT_ID"):
            raise Denial("AGENT_ID is reserved")
        ensure_env(c, "AGENT_ID", "7")


@case("P04", "refuses another value only")
def refuses_other(_, pod):
    for c in containers(pod):
        for e in c.get("env") or []:
            if e["name"] == "AGENT_ID" and (e.get("value") != "7" or "valueFrom" in e):
                raise Denial("AGENT_ID is reserved")
        ensure_env(c, "AGENT_ID", "7")


# P05, P10, P11 and P26: volumes and mounts.

def empty_dir(name):
    return {"name": name, "emptyDir": {}}


@case("P05", "random generated name", "L1 L3")
def random_name(_, pod):
    name = "tok-%08x" % random.getrandbits(32)
    ensure_mounted(pod, empty_dir(name), "/" + name)


@case("P05", "name hashed from the namespace")
def hashed_name(request, pod):
    name = "tok-" + hashlib.sha256(("agent " + request["namespace"]).encode()).hexdigest()[:8]
    ensure_mounted(pod, empty_dir(name), "/" + name)


@case("P10", "early return when its volume exists", "L4b")
def early_return(_, pod):
    if any(v["name"] == "tok" for v in spec_list(pod, "volumes")):
        return
    more(pod["spec"], "volumes", TOKEN)
    for c in pod["spec"]["containers"]:
        more(c, "volumeMounts", {"name": "tok", "mountPath": "/tok"})


@case("P05", "fixed name")
@case("P10", "volume once, mount per container")
@case("P20", "envelope by hand")
@case("P20", "asks for v1 only", versions=["v1"])
def token_mounted(_, pod):
    ensure_mounted(pod, TOKEN, "/tok")


@case("P11", "the user mounts that path from another volume", "L5")
def path_unchecked(_, pod):
    ensure_volume(pod, TOKEN)
    for c in pod["spec"]["containers"]:
        if not any(m["name"] == "tok" for m in c.get("volumeMounts") or []):
            more(c, "volumeMounts", {"name": "tok", "mountPath": "/data"})


@case("P11", "checks the path")
def path_checked(_, pod):
    ensure_volume(pod, TOKEN)
    for c in containers(pod):
        try:
            ensure_mount(c, "tok", "/data")
        except Denial:
            pass  # that container has something else there


@case("P11", "denies the Pod")
def data_mounted(_, pod):
    ensure_mounted(pod, TOKEN, "/data")


def config(name):
    return {"name": name, "configMap": {"name": "agent-config"}}


@case("P26", "name derived from metadata.name", "L1 L5")
def name_from_metadata(_, pod):
    ensure_mounted(pod, config(pod.get("metadata", {}).get("name", "") + "-cfg"), "/cfg")


@case("P26", "a constant")
def config_mounted(_, pod):
    ensure_mounted(pod, config("agent-cfg"), "/cfg")


# P06: counts and hashes of its own parts.

def hashed(value):
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def others(pod):
    return sorted(c["name"] for c in pod["spec"]["containers"] if c["name"] != "agent")


@case("P06", "counts itself", "L1")
def counts_itself(_, pod):
    annotate(pod, "agent/containers", str(len(pod["spec"]["containers"])))
    sidecar_if_absent(_, pod)


@case("P06", "hashes the object that holds the hash", "L1")
def hashes_itself(_, pod):
    annotate(pod, "agent/hash", hashed(pod))


@case("P06", "counts the other containers")
def counts_others(_, pod):
    annotate(pod, "agent/containers", str(len(others(pod))))
    sidecar_if_absent(_, pod)


@case("P06", "hashes the other containers")
def hashes_others(_, pod):
    annotate(pod, "agent/hash", hashed(others(pod)))
    sidecar_if_absent(_, pod)


# P07, P08 and P09: the new value is made of the old one.

def probes(pod):
    return [(c["name"], c["readinessProbe"]["httpGet"]) for c in containers(pod) if (c.get("readinessProbe") or {}).get("httpGet")]


def rewrite(pod, name, get):
    annotate(pod, "orig/" + name, str(get["port"]))
    get["port"] = 15020


@case("P07", "rewrites a probe twice", "L1")
def probe_rewritten(_, pod):
    for name, get in probes(pod):
        rewrite(pod, name, get)


@case("P07", "probe rewritten once")
def probe_rewritten_once(_, pod):
    for name, get in probes(pod):
        if get["port"] != 15020:
            rewrite(pod, name, get)


@case("P07", "wraps the command twice", "L1")
def command_wrapped(_, pod):
    for c in containers(pod):
        if c.get("command"):
            c["command"] = ["/agent/run"] + c["command"]


@case("P07", "command wrapped once")
def command_wrapped_once(_, pod):
    for c in containers(pod):
        if c.get("command") and c["command"][0] != "/agent/run":
            c["command"] = ["/agent/run"] + c["command"]


MIRROR = "mirror.example.com/"


@case("P08", "prefixes the image again", "L1 L12")
def image_prefixed(_, pod):
    for c in pod["spec"]["containers"]:
        c["image"] = MIRROR + c.get("image", "")


@case("P08", "skip when the prefix is there")
def image_prefixed_once(_, pod):
    for c in containers(pod):
        if c.get("image") and not c["image"].startswith(MIRROR):
            c["image"] = MIRROR + c["image"]


UNITS = {"n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3"), "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15,
         "E": 10**18, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
OVERHEAD = 64 * 2**20


def quantity(text):
    """The value of a quantity, or None."""
    text = str(text)
    for unit in sorted(UNITS, key=len, reverse=True):
        if text.endswith(unit):
            text, factor = text[:-len(unit)], UNITS[unit]
            break
    else:
        factor = 1
    try:
        return Decimal(text) * factor
    except InvalidOperation:
        return None


def written(value):
    return str(int(value)) if value == int(value) else "%dm" % (value * 1000)


@case("P09", "relative arithmetic", "L1 L12")
def limit_raised(_, pod):
    for c in pod["spec"]["containers"]:
        limits = (c.get("resources") or {}).get("limits") or {}
        if "memory" in limits:
            limits["memory"] = written(quantity(limits["memory"]) + OVERHEAD)


@case("P09", "computes from the stored original")
def limit_from_original(_, pod):
    for c in containers(pod):
        resources = c.get("resources") or {}
        limits = resources.get("limits") or {}
        if "memory" not in limits or pod["spec"].get("resources"):
            continue
        key = "original-memory.agent.io/" + c["name"]
        original = quantity(annotation(pod, key) or "")
        if original is None or original < 0:
            original = quantity(limits["memory"])
            annotate(pod, key, str(limits["memory"]))
        if original + OVERHEAD < quantity((resources.get("requests") or {}).get("memory", 0)):
            raise Denial("the memory that %s requests is above its limit" % c["name"])
        if quantity(limits["memory"]) != original + OVERHEAD:
            limits["memory"] = written(original + OVERHEAD)


# P12: what the user sets of the sidecar.

def own_agent(uid):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "sample", "namespace": "default"}, "spec": {"containers": [
        {"name": "app", "image": "app:v1"}, dict(side(), securityContext={"runAsUser": uid})]}}


def agent_of(pod):
    return next((c for c in containers(pod) if c["name"] == "agent"), None)


@case("P12", "override honoured once", "L1 L5", samples=[own_agent(1000)])
def override_once(_, pod):
    c, context = agent_of(pod), {"runAsUser": 1337}
    if c is None:
        more(pod["spec"], "containers", dict(side(), securityContext=context))
    else:
        if not annotation(pod, "agent/status") and c.get("securityContext") is not None:
            context = c["securityContext"]
        c["securityContext"] = context
    annotate(pod, "agent/status", "injected")


@case("P12", "sets only nil fields", samples=[own_agent(1000)])
def fills_nil(_, pod):
    sidecar_if_absent(_, pod)
    c = agent_of(pod)
    if c and (pod["spec"].get("os") or {}).get("name") != "windows":
        if not c.get("securityContext"):
            c["securityContext"] = {}
        c["securityContext"].setdefault("runAsUser", 1337)
    annotate(pod, "agent/status", "injected")
