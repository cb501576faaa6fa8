"""An operator on kopf: it prints events of Foos and ConfigMaps, and writes the status of each Foo.

It knows nothing of a mesh. ../README.md describes its output. Run: kopf run --standalone --all-namespaces THIS
"""

import json
import os
import sys

import kopf

POD_NAME = os.environ["POD_NAME"]


def say(**line):
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


@kopf.on.login()
def login(**kwargs):
    # This is kopf's default if no client library is installed.
    return kopf.login_with_kubeconfig(**kwargs)


@kopf.on.startup()
def configure(settings, **_):
    settings.posting.enabled = False  # Events would only add requests
    settings.watching.reconnect_backoff = 1.0


def saw(resource):
    def handler(event, namespace, name, **_):
        # At the start kopf passes listed objects without a type.
        say(resource=resource, type=event["type"] or "ADDED", key=f"{namespace}/{name}")

    return handler


kopf.on.event("demo.ctrlmesh.io", "v1", "foos", id="foos")(saw("foos"))
kopf.on.event("", "v1", "configmaps", id="configmaps")(saw("configmaps"))


@kopf.on.create("demo.ctrlmesh.io", "v1", "foos")
@kopf.on.resume("demo.ctrlmesh.io", "v1", "foos")
@kopf.on.update("demo.ctrlmesh.io", "v1", "foos")
def reconcile(patch, body, **_):
    if body.get("status", {}).get("reconciledBy") != POD_NAME:
        patch.status["reconciledBy"] = POD_NAME
