"""An operator on the Python client: lists, watches, and leads by an annotation on a ConfigMap.

It knows nothing of a mesh. ../README.md describes its output. Each resource has a thread that lists, then watches from the list's
version, and lists again when that version has expired, as in the client's documentation.
"""

import json
import os
import queue
import sys
import threading
import time

from kubernetes import client, config, watch
from kubernetes.client.rest import ApiException
from kubernetes.leaderelection import electionconfig, leaderelection
from kubernetes.leaderelection.resourcelock.configmaplock import ConfigMapLock

RETRY_SECONDS = 1
POD_NAME = os.environ["POD_NAME"]
NAMESPACE = os.environ["POD_NAMESPACE"]
LOCK_NAME = os.environ["LOCK_NAME"]

config.load_kube_config(os.environ["KUBECONFIG"])
core = client.CoreV1Api()
custom = client.CustomObjectsApi()
changed = queue.Queue()
leading = threading.Event()
known_foos = set()


def say(**line):
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def key_of(meta):
    return f"{meta['namespace']}/{meta['name']}"


def follow(resource, listing, on_change):
    """Lists and watches forever. `listing` is the client's function with all arguments but those of list and watch."""
    while True:
        try:
            state = api_dict(listing())
            version = state["metadata"]["resourceVersion"]
            keys = [key_of(item["metadata"]) for item in state["items"]]
            say(resource=resource, listed=keys)
            for key in keys:
                on_change(key, False)
            for event in watch.Watch().stream(listing.function, *listing.args, resource_version=version):
                key = key_of(event["raw_object"]["metadata"])
                say(resource=resource, type=event["type"], key=key)
                on_change(key, event["type"] == "DELETED")
        except Exception as error:  # the next list recovers from any error
            print(f"{resource}: {error}", file=sys.stderr, flush=True)
            if not (isinstance(error, ApiException) and error.status == 410):
                time.sleep(RETRY_SECONDS)


class Listing:
    def __init__(self, function, *args):
        self.function = function
        self.args = args

    def __call__(self):
        return self.function(*self.args)


def api_dict(answer):
    return core.api_client.sanitize_for_serialization(answer)


def on_foo(key, deleted):
    if deleted:
        known_foos.discard(key)
    else:
        known_foos.add(key)
        changed.put(key)


def work():
    while True:
        key = changed.get()
        if not leading.is_set() or key not in known_foos:
            continue
        try:
            write(*key.split("/"))
        except Exception as error:
            print(f"writing {key}: {error}", file=sys.stderr, flush=True)
            threading.Timer(RETRY_SECONDS, changed.put, [key]).start()


def write(namespace, foo):
    name = f"{foo}-by-{LOCK_NAME}"
    try:
        current = core.read_namespaced_config_map(name, namespace)
    except ApiException as error:
        if error.status != 404:
            raise
        body = client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name), data={"by": POD_NAME})
        core.create_namespaced_config_map(namespace, body)
        return
    if (current.data or {}).get("by") != POD_NAME:
        current.data = {"by": POD_NAME}
        core.replace_namespaced_config_map(name, namespace, current)


def started_leading():
    leading.set()
    say(leading=True)
    for key in list(known_foos):
        changed.put(key)


def stopped_leading():
    leading.clear()
    say(leading=False)


def compete():
    # The library's election ends when the lead is lost. The program competes again, since the tests restart its lower layers.
    while True:
        try:
            lock = ConfigMapLock(LOCK_NAME, NAMESPACE, POD_NAME)
            leaderelection.LeaderElection(
                electionconfig.Config(
                    lock,
                    lease_duration=5,
                    renew_deadline=4,
                    retry_period=1,
                    onstarted_leading=started_leading,
                    onstopped_leading=stopped_leading,
                )
            ).run()
        except Exception as error:
            print(f"election: {error}", file=sys.stderr, flush=True)
            if leading.is_set():
                stopped_leading()
            time.sleep(RETRY_SECONDS)


foos = Listing(custom.list_cluster_custom_object, "demo.ctrlmesh.io", "v1", "foos")
config_maps = Listing(core.list_config_map_for_all_namespaces)
for target, args in [
    (follow, ("foos", foos, on_foo)),
    (follow, ("configmaps", config_maps, lambda key, deleted: None)),
    (work, ()),
]:
    threading.Thread(target=target, args=args, daemon=True).start()
compete()
