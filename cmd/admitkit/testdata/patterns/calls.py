# SPDX-License-Identifier: Apache-2.0
"""P13 to P25: patches, envelopes, and what differs from call to call."""

import copy
import os
import random
import sys
import threading
import time

from parts import empty_dir, sidecar_if_absent, token_mounted
from pieces import *


# P13, P14, P15 and P25: operations written by hand.

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

def write(file, request):
    with open(os.path.join(sys.argv[3], file), "a", encoding="utf-8") as f:
        f.write(request["namespace"] + "/agent-token\n")


@case("P19", "side effect in a dry run", "L7", effects="NoneOnDryRun", observed="always")
def writes(request, pod):
    write("always", request)
    token_mounted(request, pod)


@case("P19", "no patch in a dry run", "L7", effects="NoneOnDryRun")
def not_in_dry_run(request, pod):
    if not request.get("dryRun"):
        token_mounted(request, pod)


@case("P19", "guarded write", effects="NoneOnDryRun", observed="guarded")
def guarded(request, pod):
    if not request.get("dryRun"):
        write("guarded", request)
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


@case("P24", "keeps one toleration per key", "L10 L5")
def tolerations_by_key(_, pod):
    pod["spec"]["tolerations"] = by_key(spec_list(pod, "tolerations") + [TOLERATION], lambda t: t.get("key"))


@case("P24", "adds a toleration when no equal one exists")
def toleration_once(_, pod):
    if TOLERATION not in spec_list(pod, "tolerations"):
        more(pod["spec"], "tolerations", TOLERATION)


@case("P24", "keeps one variable per name", "L10 L5")
def env_by_name(_, pod):
    for c in pod["spec"]["containers"]:
        c["env"] = by_key((c.get("env") or []) + [{"name": "AGENT", "value": "on"}], lambda e: e["name"])


@case("P24", "adds a variable when no equal one exists")
def env_once(_, pod):
    for c in containers(pod):
        if {"name": "AGENT", "value": "on"} not in (c.get("env") or []):
            more(c, "env", {"name": "AGENT", "value": "on"})
