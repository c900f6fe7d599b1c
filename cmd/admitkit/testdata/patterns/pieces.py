# SPDX-License-Identifier: Apache-2.0
"""What the webhooks are made of: their declarations, helpers for Pods, and JSON Patches."""

import copy
import difflib
import json
import os


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


# Patches.


def add(path, value):
    return {"op": "add", "path": path, "value": value}


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
