"""The thirty steps of integration-tests/bench/workflow/steps.yaml in Bytewax: python steps.py INPUT OUTPUT"""

import json
import re
import sys

import bytewax.operators as op
from bytewax.connectors.files import FileSink, FileSource
from bytewax.dataflow import Dataflow
from bytewax.testing import run_main

ADA = re.compile("^Ada")


def get(record, path):
    """What is at a path, or None."""
    for name in path.split("."):
        if isinstance(record, list):
            place = int(name)
            record = record[place] if place < len(record) else None
        elif isinstance(record, dict):
            record = record.get(name)
        else:
            return None
    return record


def set_at(path, value):
    *outer, last = path.split(".")

    def step(record):
        place = record
        for name in outer:
            place = place.setdefault(name, {})
        place[last] = value(record) if callable(value) else value
        return record

    return step


def remove(path):
    *outer, last = path.split(".")

    def step(record):
        place = record
        for name in outer:
            place = place.get(name, {})
        place.pop(last, None)
        return record

    return step


def rename(old, new):
    def step(record):
        value = get(record, old)
        return set_at(new, value)(remove(old)(record))

    return step


KEPT = ["id", "who", "total", "currency", "name", "region", "first", "comment"]

STEPS = [
    ("filter", lambda r: r.get("status") == "completed"),
    ("filter", lambda r: r["amount"] > 1),
    ("map", set_at("seen", True)),
    ("map", rename("customer.id", "who")),
    ("filter", lambda r: r["who"].startswith("customer-")),
    ("map", set_at("channel", "web")),
    ("map", set_at("comment", lambda r: r.get("note"))),
    ("map", remove("note")),
    ("filter", lambda r: "ring" in r["comment"]),
    ("map", set_at("priority", 1)),
    ("filter", lambda r: r["amount"] < 100000),
    ("map", rename("amount", "total")),
    ("map", set_at("currency", "EUR")),
    ("filter", lambda r: r["id"] >= 0),
    ("map", set_at("first", lambda r: get(r, "items.0.sku"))),
    ("filter", lambda r: r["first"] in ("a", "b")),
    ("map", set_at("flags.a", True)),
    ("map", set_at("flags.b", False)),
    ("filter", lambda r: get(r, "flags.a") is True),
    ("map", rename("flags.b", "flags.c")),
    ("map", remove("flags.a")),
    ("map", set_at("region", "eu")),
    ("filter", lambda r: r["region"] != "us"),
    ("map", set_at("name", lambda r: get(r, "customer.name"))),
    ("map", remove("customer")),
    ("filter", lambda r: "name" in r),
    ("filter", lambda r: ADA.search(r["name"]) is not None),
    ("map", set_at("version", 3)),
    ("map", remove("items")),
    ("map", lambda r: {name: r[name] for name in KEPT if name in r}),
]


def main():
    flow = Dataflow("thirty_steps")
    stream = op.input("in", flow, FileSource(sys.argv[1], batch_size=1000))
    stream = op.map("read", stream, json.loads)
    for place, (kind, step) in enumerate(STEPS):
        stream = getattr(op, kind)(f"step_{place}", stream, step)
    stream = op.map("write", stream, lambda record: ("", json.dumps(record, separators=(",", ":"))))
    op.output("out", stream, FileSink(sys.argv[2]))
    run_main(flow)


main()
