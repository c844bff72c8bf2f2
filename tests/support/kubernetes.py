"""A Kubernetes for one job: a server with what Spark asks of one, whose pods are processes.

It keeps what is sent to it and gives it back, and starts the containers of a pod by their own command. So
Spark's real client and scheduler are seen at work; what a cluster would refuse, this one takes.
"""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

Manifest = dict[str, Any]
ADDRESS = "127.0.0.1"


class ApiServer:
    """Keeps objects, at a port of this machine.

    Attributes:
        objects: all that are there, by kind as in addresses, such as ``pods``, and name.
        on_pod: called with each pod that is made.
    """

    def __init__(self, on_pod: Callable[[Manifest], None] = lambda pod: None) -> None:
        """Begin to listen."""
        self.objects: dict[tuple[str, str], Manifest] = {}
        self.on_pod = on_pod
        self._lock = threading.Lock()
        self._http = ThreadingHTTPServer((ADDRESS, 0), type("Handler", (_Handler,), {"api": self}))
        self._http.daemon_threads = True
        self.address = f"http://{ADDRESS}:{self._http.server_port}"
        threading.Thread(target=self._http.serve_forever, daemon=True).start()

    def close(self) -> None:
        """Listen no more."""
        self._http.shutdown()
        self._http.server_close()

    def write(self, path: str, sent: Manifest) -> Manifest:
        """Keep an object that is sent to an address of its own, or to that of its kind."""
        kind, namespace = f"{sent['kind'].lower()}s", path.split("/namespaces/")[1].split("/")[0]
        sent["metadata"] |= {"uid": f"{kind}-{sent['metadata']['name']}", "namespace": namespace}
        with self._lock:
            is_new = (kind, sent["metadata"]["name"]) not in self.objects
            self.objects[kind, sent["metadata"]["name"]] = sent
        if kind == "pods" and is_new:
            sent["status"] = {"phase": "Running", "podIP": ADDRESS}
            self.on_pod(sent)
        return sent

    def read(self, path: str, selector: str) -> tuple[int, Manifest]:
        """Answer with an object, or with all of a kind that have some labels."""
        *_, kind, name = ["", *path.strip("/").split("/")]
        with self._lock:
            if (kind, name) in self.objects:
                return 200, self.objects[kind, name]
            equal = [part for part in selector.split(",") if "=" in part and "!" not in part]
            wanted = dict(part.split("=", 1) for part in equal)
            items = [
                one
                for (of, _), one in self.objects.items()
                if of == name and wanted.items() <= one["metadata"].get("labels", {}).items()
            ]
        if kind in ("pods", "services", "configmaps", "secrets", "persistentvolumeclaims"):
            return 404, _status(404)
        of_kind = {"kind": f"{name[:-1].title()}List", "apiVersion": "v1"}
        return 200, {**of_kind, "metadata": {"resourceVersion": "1"}, "items": items}


class _Handler(BaseHTTPRequestHandler):
    api: ApiServer
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        asked = {name: values[0] for name, values in parse_qs(address.query).items()}
        if "Upgrade" in self.headers or "watch" in asked:
            self.close_connection = True
            self._answer(503, _status(503))  # no news: Spark asks for the list now and then
        else:
            self._answer(*self.api.read(address.path, asked.get("labelSelector", "")))

    def do_POST(self) -> None:
        self._answer(201, self.api.write(self.path, self._sent()))

    def do_PATCH(self) -> None:
        self._answer(200, self.api.write(self.path, self._sent()))

    def do_DELETE(self) -> None:
        self._sent()
        self._answer(200, _status(200))

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing."""

    def _sent(self) -> Manifest:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        return json.loads(body) if body else {}

    def _answer(self, code: int, content: Manifest) -> None:
        body = json.dumps(content).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _status(code: int) -> Manifest:
    said = "Success" if code < 400 else "Failure"
    return {"kind": "Status", "apiVersion": "v1", "status": said, "code": code, "metadata": {}}


class Kubelet:
    """Starts the containers of pods as processes.

    Attributes:
        processes: those that were started, by the names of their pods; the output is in a file of that name.
    """

    def __init__(self, folder: Path, server: ApiServer, image: Mapping[str, str]) -> None:
        """Make one.

        Args:
            folder: where pods have their folders, and the output of each.
            server: has the ConfigMaps that pods mount, and the names of services.
            image: the variables that the image sets.
        """
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self._folder, self._server, self._image = folder, server, image

    def start(self, pod: Manifest, entrypoint: list[str], places: Mapping[str, str]) -> None:
        """Start the first container of a pod by what its image has as the entry point.

        Args:
            pod: the pod.
            entrypoint: the command, which is given the arguments of the container.
            places: paths in the container and where they are here; others are in the pod's folder.
        """
        container, name = pod["spec"]["containers"][0], pod["metadata"]["name"]
        folder = self._folder / name
        folder.mkdir()
        volumes = {one["name"]: one for one in pod["spec"]["volumes"]}
        known = {**places, **self._hosts()}
        for mount in container["volumeMounts"]:
            known.setdefault(mount["mountPath"], str(folder / mount["name"]))

        def mapped(text: str) -> str:
            for theirs in sorted(known, key=len, reverse=True):
                text = text.replace(theirs, known[theirs])
            return text

        for mount in container["volumeMounts"]:
            place = Path(known[mount["mountPath"]])
            place.mkdir(exist_ok=True)
            of = volumes[mount["name"]].get("configMap", {})
            content = self._server.objects.get(("configmaps", of.get("name", "")), {}).get("data", {})
            for item in of.get("items", []):
                key, path = item["key"], item["path"]
                (place / path).write_text(mapped(content[key]))
        given = {one["name"]: mapped(_value(one, pod)) for one in container.get("env", [])}
        with open(self._folder / f"{name}.log", "wb") as log:
            self.processes[name] = subprocess.Popen(
                [*entrypoint, *map(mapped, container.get("args", []))],
                cwd=folder,
                env={**self._image, "HOME": str(folder), **given},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def log(self, name: str) -> str:
        """What a pod has said."""
        return (self._folder / f"{name}.log").read_text()

    def close(self) -> None:
        """End what still runs."""
        for process in self.processes.values():
            process.kill()
            process.wait()

    def _hosts(self) -> dict[str, str]:
        services = [one["metadata"] for (kind, _), one in self._server.objects.items() if kind == "services"]
        return {f"{one['name']}.{one['namespace']}.svc": ADDRESS for one in services}


def _value(variable: Manifest, pod: Manifest) -> str:
    source = variable.get("valueFrom", {})
    if "fieldRef" in source:
        known = {"status.podIP": ADDRESS, "metadata.name": pod["metadata"]["name"]}
        return known[source["fieldRef"]["fieldPath"]]
    if "secretKeyRef" in source:
        return f"the value of {source['secretKeyRef']['name']}/{source['secretKeyRef']['key']}"
    return str(variable["value"])
