"""Reads results in all three formats and checks that they say the same. Run by results.rs."""

import csv
import json
import sys

import pyarrow.parquet as parquet

home = sys.argv[1]


def table(name):
    return parquet.read_table(f"{home}/p/{name}.parquet")


runs, flows = table("runs"), table("flows")
assert runs.schema.metadata[b"comity.scenario_text"].decode().startswith("# Table 1\n")
assert str(runs.schema.field("seed").type) == "uint64", runs.schema
assert str(runs.schema.field("scenario").type) in ("string", "large_string"), runs.schema
assert runs["seed"].to_pylist() == [2**64 - 1, 2]
assert runs["axis.flow.window"].to_pylist() == [-10, 20]
assert runs["jain"].to_pylist() == [0.8, None]
assert flows["flow"].to_pylist() == ['a, "quoted"\nand \u00df', "b", "a"]
assert flows["finished_ns"].to_pylist() == [12345678901, None, None]

with open(f"{home}/out.json", encoding="utf-8") as file:
    document = json.load(file)
assert document["tables"]["flows"] == flows.to_pylist()
assert document["tables"]["runs"] == runs.to_pylist()

with open(f"{home}/c/flows.csv", newline="", encoding="utf-8") as file:
    rows = list(csv.DictReader(file))
assert [row["flow"] for row in rows] == flows["flow"].to_pylist()
print(len(rows), "flows agree")
