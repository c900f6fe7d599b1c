# SPDX-License-Identifier: Apache-2.0
"""Mutating webhooks that break on reinvocation in the ways seen in public projects, and correct look-alikes.

    webhook.py CERT KEY STATE

serves each at a path of its own with TLS on a free port of 127.0.0.1, which it prints. GET / lists them as JSON:
path, laws that are broken (none for a look-alike), and what a user would say of them. STATE is the file to which
those write that have side effects. It ends when its standard input does.
"""

import base64
import copy
import difflib
import hashlib
import http.server
import json
import os
import random
import ssl
import sys
import threading
import time
from decimal import Decimal, InvalidOperation

CASES = {}


class Denial(Exception):
    """Refuses the object."""


def case(pattern, title, laws="", operations="CREATE", resource="pods", form="edit", **more):
    """Declares a webhook. form is what the function does: it edits the object, or returns operations."""

    def declare(function):
        path = "/" + (pattern + " " + title).lower().replace(" ", "-").replace(",", "")
        CASES[path] = dict(more, path=path, pattern=pattern, title=title, laws=laws.split(), operations=operations.split(),
                           resource=resource, form=form, function=function)
        return function

    return declare


# The pieces that most of them use.

def side():
    return {"name": "agent", "image": "registry.example.com/agent:v1"}


def spec_list(pod, name):
    return pod["spec"].get(name) or []


def containers(pod):
    return spec_list(pod, "initContainers") + spec_list(pod, "containers")


def taken(pod, name):
    return any(c["name"] == name for c in containers(pod) + spec_list(pod, "ephemeralContainers"))


def more(owner, name, element):
    owner[name] = (owner.get(name) or []) + [element]


def annotations(pod):
    meta = pod.setdefault("metadata", {})
    if not meta.get("annotations"):
        meta["annotations"] = {}
    return meta["annotations"]


def annotation(pod, key):
    return ((pod.get("metadata") or {}).get("annotations") or {}).get(key)


def annotate(pod, key, value):
    if annotation(pod, key) != value:
        annotations(pod)[key] = value


def env(c, name):
    return next((e for e in c.get("env") or [] if e["name"] == name), None)


def ensure_env(c, name, value):
    if not env(c, name):
        more(c, "env", {"name": name, "value": value})


def set_env(c, name, value):
    e = env(c, name)
    if e is None:
        more(c, "env", {"name": name, "value": value})
    elif "valueFrom" not in e:
        e["value"] = value


def without_defaults(volume):
    volume = copy.deepcopy(volume)
    for source in volume.values():
        if isinstance(source, dict) and source.get("defaultMode") == 420:
            del source["defaultMode"]
    return volume


def ensure_volume(pod, volume):
    for v in spec_list(pod, "volumes"):
        if v["name"] == volume["name"]:
            if without_defaults(v) != volume:
                raise Denial("the volume %s is reserved" % v["name"])
            return
    more(pod["spec"], "volumes", volume)


def ensure_mount(c, name, path):
    for d in c.get("volumeDevices") or []:
        if os.path.normpath(d["devicePath"]) == path:
            raise Denial("the path %s is reserved" % path)
    for m in c.get("volumeMounts") or []:
        if os.path.normpath(m["mountPath"]) == path:
            if m["name"] != name:
                raise Denial("the path %s is reserved" % path)
            return
    more(c, "volumeMounts", {"name": name, "mountPath": path})


def ensure_mounted(pod, volume, path):
    ensure_volume(pod, volume)
    for c in containers(pod):
        ensure_mount(c, volume["name"], path)


def secret(name, of):
    return {"name": name, "secret": {"secretName": of}}


TOKEN = secret("tok", "agent-token")
SETTINGS = {"A": "1", "B": "2", "C": "3", "D": "4"}


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


@case("P06", "hash of the object that holds the hash", "L1")
def hashes_itself(_, pod):
    annotate(pod, "agent/hash", hashed(pod))


@case("P06", "counts everything but its own")
def counts_others(_, pod):
    annotate(pod, "agent/containers", str(len(others(pod))))
    sidecar_if_absent(_, pod)


@case("P06", "hash of everything but its own")
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


@case("P12", "fills only what is nil", samples=[own_agent(1000)])
def fills_nil(_, pod):
    sidecar_if_absent(_, pod)
    c = agent_of(pod)
    if c and (pod["spec"].get("os") or {}).get("name") != "windows":
        if not c.get("securityContext"):
            c["securityContext"] = {}
        c["securityContext"].setdefault("runAsUser", 1337)
    annotate(pod, "agent/status", "injected")


# P13, P14, P15 and P25: operations written by hand.

def add(path, value):
    return {"op": "add", "path": path, "value": value}


@case("P13", "replaces the whole map", "L10", form="operations")
def replaces_map(_, pod):
    return [] if annotation(pod, "agent/ok") == "yes" else [add("/metadata/annotations", {"agent/ok": "yes"})]


@case("P13", "adds the key, or the map", form="operations")
def adds_key(_, pod):
    if annotation(pod, "agent/ok") == "yes":
        return []
    if pod["metadata"].get("annotations") is None:
        return [add("/metadata/annotations", {"agent/ok": "yes"})]
    return [add("/metadata/annotations/agent~1ok", "yes")]


SETUP = {"name": "setup", "image": "registry.example.com/setup:v1"}


@case("P14", "replaces the whole list", "L10 L5", form="operations")
def replaces_list(_, pod):
    return [] if taken(pod, "setup") else [add("/spec/initContainers", [SETUP])]


@case("P14", "appends to the list, or adds it", form="operations")
def appends_to_list(_, pod):
    if taken(pod, "setup"):
        return []
    return [add("/spec/initContainers/-", SETUP) if pod["spec"].get("initContainers") is not None else add("/spec/initContainers", [SETUP])]


@case("P15", "slash not escaped", "L10", form="operations")
def slash_not_escaped(_, pod):
    parents = [] if pod["metadata"].get("annotations") else [add("/metadata/annotations", {})]
    return parents + [add("/metadata/annotations/agent.io/status", "ok")]


@case("P15", "missing parent", "L10", form="operations")
def missing_parent(_, pod):
    return [] if annotation(pod, "agent.io/status") == "ok" else [add("/metadata/annotations/agent.io~1status", "ok")]


@case("P15", "escaped, with its parent", form="operations")
def escaped(_, pod):
    if annotation(pod, "agent.io/status") == "ok":
        return []
    parents = [] if pod["metadata"].get("annotations") is not None else [add("/metadata/annotations", {})]
    return parents + [add("/metadata/annotations/agent.io~1status", "ok")]


LEGACY = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "sample", "namespace": "default"}, "spec": {
    "volumes": [empty_dir("legacy-a"), empty_dir("keep")], "containers": [{"name": "app", "image": "app:v1"}]}}


def legacy(elements, path):
    return [{"op": "remove", "path": "%s/%d" % (path, i)} for i, e in enumerate(elements or []) if e["name"].startswith("legacy-")]


@case("P25", "removes in ascending order", "L10", form="operations", samples=[LEGACY])
def removes_ascending(_, pod):
    return legacy(pod["spec"].get("volumes"), "/spec/volumes")


@case("P25", "removes in descending order", form="operations", samples=[LEGACY])
def removes_descending(_, pod):
    operations = []
    for name in "initContainers", "containers":
        for i, c in enumerate(spec_list(pod, name)):
            operations += legacy(c.get("volumeMounts"), "/spec/%s/%d/volumeMounts" % (name, i))[::-1]
    return operations + legacy(pod["spec"].get("volumes"), "/spec/volumes")[::-1]


# P16: a model of its own, which lacks what is new.

KNOWN = {
    "spec": """volumes initContainers containers ephemeralContainers restartPolicy terminationGracePeriodSeconds activeDeadlineSeconds
        dnsPolicy nodeSelector serviceAccountName serviceAccount automountServiceAccountToken nodeName hostNetwork hostPID hostIPC
        shareProcessNamespace securityContext imagePullSecrets hostname subdomain affinity schedulerName tolerations hostAliases
        priorityClassName priority dnsConfig readinessGates runtimeClassName enableServiceLinks preemptionPolicy overhead
        topologySpreadConstraints setHostnameAsFQDN os hostUsers schedulingGates resourceClaims resources""".split(),
    "container": """name image command args workingDir ports envFrom env resources resizePolicy restartPolicy volumeMounts volumeDevices
        livenessProbe readinessProbe startupProbe lifecycle terminationMessagePath terminationMessagePolicy imagePullPolicy
        securityContext stdin stdinOnce tty""".split(),
}


def modelled(pod):
    def only(fields, names):
        return {k: v for k, v in fields.items() if k in names}

    pod = dict(pod, spec=only(pod["spec"], KNOWN["spec"]))
    for name in "initContainers", "containers":
        if name in pod["spec"]:
            pod["spec"][name] = [only(c, KNOWN["container"]) for c in pod["spec"][name] or []]
    return pod


@case("P16", "typed round trip drops unknown fields", "L9", form="operations")
def round_trip(_, pod):
    model = copy.deepcopy(modelled(pod))
    annotate(model, "agent/ok", "yes")
    return difference(pod, model)


@case("P16", "diff before and after", form="operations")
def before_after(_, pod):
    model = copy.deepcopy(modelled(pod))
    before = copy.deepcopy(model)
    annotate(model, "agent/ok", "yes")
    return difference(before, model)


# P17, P22 and P23: what is not in the request.

@case("P17", "the order of a set decides the order of a list", "L3")
def set_order(_, pod):
    for name in set(SETTINGS):  # another order in each process
        ensure_env(pod["spec"]["containers"][0], name, SETTINGS[name])


@case("P17", "random order of a list", "L3")
def random_order(_, pod):
    for name in random.sample(sorted(SETTINGS), len(SETTINGS)):
        ensure_env(pod["spec"]["containers"][0], name, SETTINGS[name])


@case("P17", "sorted")
def sorted_order(_, pod):
    for c in containers(pod):
        for name in sorted(set(SETTINGS)):
            ensure_env(c, name, SETTINGS[name])


@case("P17", "iterates into a map")
def into_map(_, pod):
    for name in set(SETTINGS):
        annotate(pod, "agent/" + name, SETTINGS[name])


class Counter:
    def __init__(self):
        self.lock, self.value = threading.Lock(), 0

    def next(self):
        with self.lock:
            self.value += 1
            return self.value


CALLS = Counter()


@case("P22", "process counter", "L1 L3")
def counted(_, pod):
    set_env(pod["spec"]["containers"][0], "PORT", str(15000 + CALLS.next()))


@case("P22", "counter that feeds metrics only")
def constant_port(_, pod):
    CALLS.next()
    for c in containers(pod):
        set_env(c, "PORT", "15000")


@case("P22", "derived from the object")
def derived_port(request, pod):
    for c in containers(pod):
        set_env(c, "PORT", str(15000 + len(request["namespace"])))


@case("P23", "wall clock in the object", "L1 L3")
def last_seen(_, pod):
    annotate(pod, "agent/last-seen", str(time.time_ns()))


@case("P23", "no clock")
def seen(_, pod):
    annotate(pod, "agent/seen", "yes")


@case("P23", "time set once, declared", exceptions=[{"path": "metadata.annotations[agent/first-seen]", "reason": "the time of the first call"}])
def first_seen(_, pod):
    if annotation(pod, "agent/first-seen") is None:
        annotate(pod, "agent/first-seen", str(time.time_ns()))


# P18: an update is not a create.

@case("P18", "acts on CREATE only", operations="CREATE UPDATE")
def on_create(request, pod):
    if request["operation"] == "CREATE":
        sidecar_if_absent(request, pod)


@case("P18", "patches metadata on UPDATE", operations="CREATE UPDATE")
def status(_, pod):
    annotate(pod, "agent/status", "injected")


# P19: side effects in a dry run.

def write(what):
    with open(STATE, "a", encoding="utf-8") as f:
        f.write(what + "\n")


@case("P19", "side effect in a dry run", "L7", effects="NoneOnDryRun", observed=True)
def writes(request, pod):
    write(request["namespace"] + "/agent-token")
    token_mounted(request, pod)


@case("P19", "no patch in a dry run", "L7", effects="NoneOnDryRun")
def not_in_dry_run(request, pod):
    if not request.get("dryRun"):
        token_mounted(request, pod)


@case("P19", "guarded write", effects="NoneOnDryRun", observed=True)
def guarded(request, pod):
    if not request.get("dryRun"):
        write(request["namespace"] + "/agent-token")
    token_mounted(request, pod)


# P20: bad envelopes.

def spoilt(title, **how):
    case("P20", title, "L8", **how)(token_mounted)


spoilt("patchType missing", spoil=lambda answer: answer["response"].pop("patchType", None))
spoilt("uid not copied", spoil=lambda answer: answer["response"].update(uid=""))
spoilt("apiVersion empty", spoil=lambda answer: answer.pop("apiVersion"))
spoilt("kind empty", spoil=lambda answer: answer.pop("kind"))
spoilt("answers v1 to v1beta1", spoil=lambda answer: answer.update(apiVersion="admission.k8s.io/v1"))


# P21: keeps moving itself to the front.

@case("P21", "keeps moving itself to the front", "L11 L12")
def moves_first(_, pod):
    kept = [c for c in pod["spec"]["containers"] if c["name"] != "agent"]
    own = [c for c in pod["spec"]["containers"] if c["name"] == "agent"] or [side()]
    pod["spec"]["containers"] = own + kept


@case("P21", "inserts first when absent")
def inserts_first(_, pod):
    if not taken(pod, "agent"):
        pod["spec"]["containers"] = [side()] + pod["spec"]["containers"]


# P24: what has one name is not one thing.

def by_key(elements, key):
    kept = {}
    for e in elements:
        kept[key(e)] = e  # in the place of the first, with the value of the last
    return list(kept.values())


TOLERATION = {"key": "agent", "operator": "Exists", "effect": "NoSchedule"}


@case("P24", "one toleration for each key", "L10 L5")
def tolerations_by_key(_, pod):
    pod["spec"]["tolerations"] = by_key(spec_list(pod, "tolerations") + [TOLERATION], lambda t: t.get("key"))


@case("P24", "toleration when no equal one exists")
def toleration_once(_, pod):
    if TOLERATION not in spec_list(pod, "tolerations"):
        more(pod["spec"], "tolerations", TOLERATION)


@case("P24", "one variable for each name", "L10 L5")
def env_by_name(_, pod):
    for c in pod["spec"]["containers"]:
        c["env"] = by_key((c.get("env") or []) + [{"name": "AGENT", "value": "on"}], lambda e: e["name"])


@case("P24", "variable when no equal one exists")
def env_once(_, pod):
    for c in containers(pod):
        if {"name": "AGENT", "value": "on"} not in (c.get("env") or []):
            more(c, "env", {"name": "AGENT", "value": "on"})


# Patches and answers.

def pointer(path, name):
    return path + "/" + str(name).replace("~", "~0").replace("/", "~1")


def difference(a, b, path=""):
    """The JSON Patch from a to b, which touches what differs only."""
    if type(a) is type(b) and a == b:
        return []
    if isinstance(a, dict) and isinstance(b, dict):
        operations = [{"op": "remove", "path": pointer(path, k)} for k in a if k not in b]
        for k in b:
            operations += difference(a[k], b[k], pointer(path, k)) if k in a else [add(pointer(path, k), b[k])]
        return operations
    if isinstance(a, list) and isinstance(b, list):
        return list_difference(a, b, path)
    return [{"op": "replace", "path": path, "value": b}]


def identity(element):
    return element["name"] if isinstance(element, dict) and "name" in element else json.dumps(element, sort_keys=True)


def list_difference(a, b, path):
    operations, at = [], 0
    matcher = difflib.SequenceMatcher(None, [identity(e) for e in a], [identity(e) for e in b], autojunk=False)
    for tag, a1, a2, b1, b2 in matcher.get_opcodes():
        if tag == "equal":
            for old, new in zip(a[a1:a2], b[b1:b2]):
                operations += difference(old, new, pointer(path, at))
                at += 1
            continue
        operations += [{"op": "remove", "path": pointer(path, at)}] * (a2 - a1)
        for new in b[b1:b2]:
            operations.append(add(pointer(path, at), new))
            at += 1
    return operations


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
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True

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
    STATE = sys.argv[3]
    serve(sys.argv[1], sys.argv[2])
