"""A stand-in for AWX's REST API, as far as playbooks/awx_configure.yml uses it. It keeps objects and runs nothing.

What an object may and must have stands in api-24.6.1.json, read from a running AWX 24.6.1 (OPTIONS of each list). What is
left of AWX's rules is written after its source (awx/api/serializers.py, awx/api/views): names are unique, a playbook must be
in its project, a credential type in use stays, a survey has a form, secrets are never shown, and what is deleted takes along
what depends on it. Objects that a module asks for by name are found by exactly these filters.
"""

from __future__ import annotations

import json
import re
import threading
import typing as t
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

Values = t.Dict[str, t.Any]

KINDS: dict[str, Values] = json.loads(Path(__file__).with_name("api-24.6.1.json").read_text())
KINDS["organizations"] = {"type": "organization", "fields": {}}
KINDS["workflow_approval_templates"] = {
    "type": "workflow_approval_template",
    "fields": {
        "name": {"type": "string", "required": True, "max_length": 512, "default": None},
        "description": {"type": "string", "default": ""},
        "timeout": {"type": "integer", "default": 0},
    },
}
# What runs in a job or a node of a workflow, under the one name that AWX has for all of it.
TEMPLATES = ("job_templates", "workflow_job_templates", "projects", "inventory_sources", "workflow_approval_templates")
# Within what a name is unique.
SCOPES = {
    "execution_environments": (),
    "credential_types": ("kind",),
    "credentials": ("organization", "credential_type"),
    "inventory_sources": ("inventory",),
    "schedules": ("unified_job_template",),
    "workflow_job_template_nodes": ("workflow_job_template",),
}
# Only what a schedule of the check may be: a fixed start, and a distance.
_RULE = re.compile(r"DTSTART;TZID=\S+:\d{8}T\d{6} RRULE:FREQ=(MINUTELY|HOURLY|DAILY);INTERVAL=\d+")
ENCRYPTED = "$encrypted$"
REVISION = "0" * 40
TYPES = {"string": str, "boolean": bool, "integer": int, "id": int, "json": dict, "field": int}
QUESTIONS = {
    "text": str, "textarea": str, "password": str, "integer": int, "float": float, "multiplechoice": str, "multiselect": str,
}


class Refused(Exception):
    """An answer that is no success: its status and body."""

    def __init__(self, status: int, body: Values) -> None:
        super().__init__(body)
        self.status, self.body = status, body


class Awx:
    """The objects, and what may be done with them."""

    def __init__(self, playbooks: t.Sequence[str]) -> None:
        self.playbooks = list(playbooks)
        self.objects: dict[str, dict[int, Values]] = {kind: {} for kind in KINDS}
        self.links: dict[tuple[str, int, str], list[int]] = {}
        self.surveys: dict[tuple[str, int], Values] = {}
        self.fetched: list[str] = []
        self._next = 1
        self.objects["organizations"][self._number()] = {"name": "Default"}

    # -- reading

    def named(self, kind: str) -> dict[str, Values]:
        """The objects of a kind by name, or by identifier for nodes."""
        objects = self.objects[kind].items()
        return {values.get("name") or values["identifier"]: {**values, "id": number} for number, values in objects}

    def linked(self, kind: str, number: int, association: str) -> list[int]:
        """The ids that an object is associated with."""
        return list(self.links.get((kind, number, association), []))

    def shown(self, kind: str, number: int) -> Values:
        """An object as the API shows it."""
        values = self._get(kind, number)
        url = f"/api/v2/{kind}/{number}/"
        related = {name: f"{url}{name}/" for name in ("survey_spec", "update")}
        template = values.get("unified_job_template")
        if template:
            related["unified_job_template"] = f"/api/v2/{self._template(template)}/{template}/"
        summary = {"current_update": {"id": number}} if values.get("updating") else {}
        if kind == "credentials":
            values = {**values, "inputs": self._masked(values)}
        elif kind == "credential_types":
            values = {**values, "managed": False}
        return {"id": number, "type": KINDS[kind]["type"], "url": url, "related": related, "summary_fields": summary, **values}

    def find(self, kind: str, filters: Values) -> list[Values]:
        """The objects that have all these values; `or__` before a name means one of these."""
        kinds = TEMPLATES if kind == "unified_job_templates" else (kind,)
        shown = [self.shown(one, number) for one in kinds for number in self.objects[one]]
        any_of = {name[4:]: value for name, value in filters.items() if name.startswith("or__")}
        all_of = {name: value for name, value in filters.items() if not name.startswith(("or__", "page"))}
        return [
            item for item in shown
            if all(_same(item.get(name), value) for name, value in all_of.items())
            and (not any_of or any(_same(item.get(name), value) for name, value in any_of.items()))
        ]

    # -- changing

    def create(self, kind: str, said: Values) -> int:
        """A new object. Raises Refused for what AWX refuses."""
        fields = KINDS[kind]["fields"]
        missing = [name for name, field in fields.items() if field.get("required") and said.get(name) in (None, "")]
        if missing:
            raise Refused(400, {name: ["This field is required."] for name in missing})
        values = {**{name: field["default"] for name, field in fields.items()}, **self._checked(kind, said)}
        self._check_unique(kind, values, None)
        number = self._number()
        self.objects[kind][number] = values
        if kind == "projects":
            values.update(updating=True, scm_revision="", status="pending")
            self.fetched.append(values["name"])
        return number

    def change(self, kind: str, number: int, said: Values) -> None:
        """Other values for an object. Raises Refused for what AWX refuses."""
        before = self._get(kind, number)
        said = self._checked(kind, said)
        if kind == "credential_types" and self._in_use(number) and said.get("inputs", before["inputs"]) != before["inputs"]:
            raise Refused(403, {"detail": "Modifications to inputs are not allowed for credential types that are in use"})
        if "inputs" in said and kind == "credentials":
            kept = {key: before["inputs"].get(key) for key, value in said["inputs"].items() if value == ENCRYPTED}
            said["inputs"] = {**said["inputs"], **kept}
        self._check_unique(kind, {**before, **said}, number)
        before.update(said)

    def delete(self, kind: str, number: int) -> None:
        """An object and what depends on it. Raises Refused where something else needs it."""
        self._get(kind, number)
        if kind == "credential_types" and self._in_use(number):
            raise Refused(403, {"detail": "Credential types that are in use cannot be deleted"})
        for other, name in (("schedules", "unified_job_template"), ("inventory_sources", "inventory"),
                            ("workflow_job_template_nodes", "workflow_job_template")):
            if (kind == "inventories") == (name == "inventory"):
                for dependent in [n for n, values in self.objects[other].items() if values.get(name) == number]:
                    self.delete(other, dependent)
        if kind == "workflow_job_template_nodes":
            approval = self.objects[kind][number].get("unified_job_template")
            self.objects["workflow_approval_templates"].pop(approval, None)
        del self.objects[kind][number]
        self.links = {key: [one for one in linked if one != number] for key, linked in self.links.items() if key[1] != number}
        for values in (values for objects in self.objects.values() for values in objects.values()):
            values.update({name: None for name, value in values.items() if value == number and name in _REFERENCES})

    def associate(self, kind: str, number: int, association: str, said: Values) -> None:
        """Join an object to another one, or take it away."""
        linked = self.links.setdefault((kind, number, association), [])
        self._get(_kind_of(association), said["id"])
        if said.get("disassociate"):
            linked.remove(said["id"])
        elif said["id"] not in linked:
            linked.append(said["id"])

    def ask(self, kind: str, number: int, spec: Values) -> None:
        """A survey for a template. Raises Refused for a question without form."""
        for name, kind_of_value in (("name", str), ("description", str), ("spec", list)):
            if not isinstance(spec.get(name), kind_of_value):
                raise Refused(400, {"error": f"Field '{name}' is missing from survey spec."})
        for question in spec["spec"]:
            _check_question(question)
        self.surveys[kind, number] = spec

    def approve(self, node: int, said: Values) -> int:
        """Make a node of a workflow one that waits for a person."""
        number = self.create("workflow_approval_templates", said)
        self._get("workflow_job_template_nodes", node)["unified_job_template"] = number
        return number

    def fetch(self, kind: str, number: int) -> None:
        """Begin to fetch a project, or to import an inventory."""
        self.fetched.append(self._get(kind, number)["name"])

    def arrive(self, project: int) -> None:
        """A project has been fetched: from now on its playbooks are known."""
        self._get("projects", project).update(updating=False, status="successful", scm_revision=REVISION)

    # -- rules

    def _number(self) -> int:
        self._next += 1
        return self._next - 1

    def _get(self, kind: str, number: int) -> Values:
        if number not in self.objects.get(kind, {}):
            raise Refused(404, {"detail": "Not found."})
        return self.objects[kind][number]

    def _template(self, number: int) -> str:
        return next(kind for kind in TEMPLATES if number in self.objects[kind])

    def _in_use(self, credential_type: int) -> bool:
        return any(values["credential_type"] == credential_type for values in self.objects["credentials"].values())

    def _masked(self, credential: Values) -> Values:
        fields = self.objects["credential_types"][credential["credential_type"]]["inputs"]["fields"]
        secret = {field["id"] for field in fields if field.get("secret")}
        return {key: ENCRYPTED if key in secret and value else value for key, value in credential["inputs"].items()}

    def _checked(self, kind: str, said: Values) -> Values:
        """What was said, without what AWX ignores. Raises Refused for values of the wrong kind."""
        fields = KINDS[kind]["fields"]
        known = {name: value for name, value in said.items() if name in fields}
        invalid = [name for name, value in known.items() if not self._valid(name, fields[name], value)]
        wrong = {name: [f"{known[name]!r} is not valid."] for name in invalid}
        if kind == "job_templates":
            # It belongs where its project belongs.
            project = self.objects["projects"].get(known.get("project", 0), {})
            known["organization"] = project.get("organization", said.get("organization"))
            there = self.playbooks if project.get("status") == "successful" else []
            if "playbook" in known and known["playbook"] not in there:
                wrong["playbook"] = ["Playbook not found for project."]
        if wrong:
            raise Refused(400, wrong)
        return known

    def _valid(self, name: str, field: Values, value: t.Any) -> bool:
        if value is None:
            return not field.get("required")
        if field["type"] == "choice":
            return value in field["choices"]
        if not isinstance(value, TYPES[field["type"]]) or len(str(value)) > field.get("max_length", len(str(value))):
            return False
        if name == "rrule":
            return _RULE.fullmatch(value) is not None
        if field["type"] == "id":
            kinds = TEMPLATES if name == "unified_job_template" else (_kind_of(name),)
            return any(value in self.objects[kind] for kind in kinds)
        return True

    def _check_unique(self, kind: str, values: Values, number: int | None) -> None:
        if kind == "workflow_approval_templates":
            return
        name = "identifier" if kind == "workflow_job_template_nodes" else "name"
        scope = (name, *SCOPES.get(kind, ("organization",)))
        others = [taken for other, taken in self.objects[kind].items() if other != number]
        if any(all(taken.get(key) == values.get(key) for key in scope) for taken in others):
            raise Refused(400, {"__all__": [f"{KINDS[kind]['type']} with this ({', '.join(scope)}) already exists."]})


_REFERENCES = {
    "organization", "credential", "inventory", "project", "source_project", "execution_environment", "default_environment",
    "unified_job_template",
}


def _kind_of(name: str) -> str:
    """The kind of objects that a field or an association names."""
    if name.endswith("_nodes"):
        return "workflow_job_template_nodes"
    others = {"source_project": "projects", "inventory": "inventories", "default_environment": "execution_environments"}
    plural = name.removesuffix("s") + "s"
    return others.get(name) or (plural if plural in KINDS else "credentials" if name.endswith("credential") else "organizations")


def _same(value: t.Any, text: str) -> bool:
    return value is not None and str(value) == text


def _check_question(question: Values) -> None:
    for name, kind in (("type", str), ("question_name", str), ("variable", str), ("required", bool)):
        if not isinstance(question.get(name), kind):
            raise Refused(400, {"error": f"'{name}' missing from survey question"})
    if question["type"] not in QUESTIONS:
        raise Refused(400, {"error": f"'{question['type']}' is not one of the allowed question types."})
    if question.get("default", "") != "" and not isinstance(question["default"], QUESTIONS[question["type"]]):
        raise Refused(400, {"error": "Default value expected to be of the type of the question."})
    if any(not isinstance(question.get(name, 0), (int, type(None))) for name in ("min", "max")):
        raise Refused(400, {"error": "The limit in survey question expected to be integer."})
    if question["type"].startswith("multi") and "choices" not in question:
        raise Refused(400, {"error": "Survey question must specify choices."})


class Server:
    """The API on a free port of this machine, for as long as the context lasts."""

    def __init__(self, awx: Awx) -> None:
        lock = threading.Lock()

        class Handler(_Handler):
            pass

        Handler.awx, Handler.lock = awx, lock
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Server:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    awx: Awx
    lock: threading.Lock
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer()

    do_POST = do_PATCH = do_DELETE = do_GET

    def log_message(self, *_: object) -> None:
        """Nothing: the tests look at the objects."""

    def _answer(self) -> None:
        said = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or "{}")
        address = urlsplit(self.path)
        parts = address.path.strip("/").split("/")[2:]
        try:
            with self.lock:
                if parts[0] != "tokens" and self.headers.get("Authorization") != "Bearer a-token":
                    raise Refused(401, {"detail": "Authentication credentials were not provided."})
                status, body = self._do(parts, said, dict(parse_qsl(address.query)))
        except Refused as refused:
            status, body = refused.status, refused.body
        text = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("X-API-Product-Name", "AWX")
        self.send_header("X-API-Product-Version", "24.6.1")
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def _do(self, parts: list[str], said: Values, filters: Values) -> tuple[int, t.Any]:
        kind, number, rest = parts[0], int(parts[1]) if len(parts) > 1 else None, parts[2:]
        if kind == "tokens":
            return (204, None) if self.command == "DELETE" else (201, {"id": 1, "token": "a-token"})
        if kind in ("project_updates", "inventory_updates"):
            if kind == "project_updates":
                self.awx.arrive(t.cast(int, number))
            done = {"status": "successful", "finished": "2026-01-01T00:00:00Z", "failed": False, "scm_revision": REVISION}
            return 200, {"id": number, "event_processing_finished": True, **done}
        if number is None:
            return self._do_list(kind, said, filters)
        return self._do_sub(kind, number, rest[0], said, filters) if rest else self._do_one(kind, number, said)

    def _do_list(self, kind: str, said: Values, filters: Values) -> tuple[int, t.Any]:
        if self.command == "POST":
            return 201, self.awx.shown(kind, self.awx.create(kind, said))
        return 200, _page(self.awx.find(kind, filters))

    def _do_one(self, kind: str, number: int, said: Values) -> tuple[int, t.Any]:
        if self.command == "DELETE":
            self.awx.delete(kind, number)
            # An inventory goes in the background.
            return (202 if kind == "inventories" else 204), None
        if self.command == "PATCH":
            self.awx.change(kind, number, said)
        return 200, self.awx.shown(kind, number)

    def _do_sub(self, kind: str, number: int, sub: str, said: Values, filters: Values) -> tuple[int, t.Any]:
        if sub == "survey_spec":
            if self.command == "POST":
                self.awx.ask(kind, number, said)
            return 200, self.awx.surveys.get((kind, number), {})
        if sub == "create_approval_template":
            return 201, self.awx.shown("workflow_approval_templates", self.awx.approve(number, said))
        if sub == "update":
            self.awx.fetch(kind, number)
            updates = "project_updates" if kind == "projects" else "inventory_updates"
            return 202, {"id": number, "status": "pending", "url": f"/api/v2/{updates}/{number}/"}
        if kind == "workflow_approval_templates":
            raise Refused(404, {"detail": "Not found."})
        if self.command == "POST":
            self.awx.associate(kind, number, sub, said)
            return 204, None
        return 200, _page([self.awx.shown(_kind_of(sub), one) for one in self.awx.linked(kind, number, sub)])


def _page(results: list[Values]) -> Values:
    return {"count": len(results), "next": None, "previous": None, "results": results}
