#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real runs as `trireme runs`, `compare` and `report` show them: one that is killed and goes on, one
of other settings, one that fails. The pages are read by a parser of HTML.

usage: reports_test.py --trireme FILE --mpirun FILE
"""
import argparse
import html.parser
import json
import os
import pathlib
import signal
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
sys.dont_write_bytecode = True
from place import Place  # noqa: E402

VOID = {"meta", "br", "img", "input", "link", "hr"}


class Page(html.parser.HTMLParser):
    """Complains of what a browser would have to guess."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.findings, self.open, self.ids, self.texts, self.rows = [], [], set(), [], []
        self.feed(text)
        self.close()
        if self.open:
            self.findings.append(f"never closed: {self.open}")

    def handle_startendtag(self, tag, attrs):
        self.look(tag, attrs)

    def handle_starttag(self, tag, attrs):
        self.look(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def look(self, tag, attrs):
        names = [name for name, _ in attrs]
        values = dict(attrs)
        if len(names) != len(set(names)):
            self.findings.append(f"{tag} has an attribute twice")
        if any(name.startswith("on") for name in names):
            self.findings.append(f"{tag} has a program in an attribute")
        if "id" in values and values["id"] in self.ids:
            self.findings.append(f"the id {values['id']} stands twice")
        self.ids.add(values.get("id"))
        if tag == "img" and not (values.get("alt") and values["src"].startswith("data:")):
            self.findings.append("an image without a text, or from elsewhere")
        if tag == "svg" and values.get("role") == "img" and not values.get("aria-label"):
            self.findings.append("a picture without a text")
        if tag == "tr":
            self.rows.append(0)
        if tag in ("td", "th"):
            self.rows[-1] += 1

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.findings.append(f"</{tag}> closes another element")
        if tag == "table":
            if len(set(self.rows)) > 1:
                self.findings.append(f"rows of {sorted(set(self.rows))} cells in one table")
            self.rows = []

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("script", "style"):
            self.texts.append(data)

    def text(self):
        return " ".join(" ".join(self.texts).split())


class Reports(Place):
    def __init__(self, options, folder):
        super().__init__(options.trireme, folder, options.mpirun, settings={
            "data.validation": "tokens.validation", "train.eval_every": 5, "train.eval_batches": 1,
            "checkpoint.every_steps": 5, "numerics.threads": 1})
        self.make_tokens("--validation-fraction", 0.1)

    def listed(self):
        lines = self.trireme("runs", "runs", "--json").splitlines()
        return {line["run"]: line for line in map(json.loads, lines)}

    def page(self, *words, path):
        said = self.trireme("report", *words)
        assert said == f"{path}\n", said
        return self.read_page(path)

    def read_page(self, path):
        text = (self.folder / path).read_text(encoding="utf-8")
        page = Page(text)
        assert not page.findings, page.findings
        data = json.loads(text.split('id="data">')[1].split("</script>")[0])
        return page.text(), data


def look_at_running(place, process):
    deadline = time.monotonic() + 150
    while not any(line["step"] == 5 for line in place.lines("a", "save")):
        assert time.monotonic() < deadline and process.poll() is None, "no step 5 was saved"
        time.sleep(0.05)
    running = place.listed()["a"]
    assert running["state"] == "running" and running["steps"] == 100000, running
    text, data = place.page("runs/a", "--out", "running.html", path="running.html")
    assert " running " in text and data["runs"][0]["x"]["step"][0] == 1, text[:200]


def kill_and_look(place):
    """A run while it goes on, after all of it was killed at once, and after it has gone on."""
    # A run that would not end by itself.
    process = place.start(2, "a", {"train.steps": 100000, "parallel.tensor": 2})
    try:
        look_at_running(place, process)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    for _ in range(100):
        # Ranks of an mpirun that was killed notice it themselves.
        dead = place.listed()["a"]
        if dead["state"] != "running":
            break
        time.sleep(0.1)
    assert dead["state"] in ("failed", "unknown") and dead["step"] >= 5, dead
    last = dead["step"]
    steps = 5 * (last // 5 + 2)
    place.train(2, "a", {"train.steps": steps, "parallel.tensor": 2})
    done = place.listed()["a"]
    assert done["state"] == "finished" and done["step"] == done["steps"] == steps, done
    text, data = place.read_page("runs/a/report.html")
    run = data["runs"][0]
    assert " finished " in text, text[:200]
    assert run["x"]["step"][-1] == steps and run["breaks"] == [], "each step is there once"
    assert len(run["curves"]["held_out"]["mean"]) == steps // 5, run["curves"]["held_out"]
    assert sum(run["parts"][1]) > 0, "tensor-parallel communication has its time"
    placement = json.loads((place.folder / "runs/a/placement.json").read_text())
    assert placement["ranks"] == 2 and len(placement["nodes"]) == 1, placement
    assert placement["axes"][-1] == {"axis": "tp", "degree": 2}, placement
    assert "0 tp 0 CPUs" in text and "1 tp 1 CPUs" in text, text
    assert "starts 2" in text and "arena of rank 0" in text, text


def compare(place):
    place.train(2, "b", {"train.steps": 15, "optimizer.learning_rate": "3e-3"})
    place.train(1, "c", {"train.steps": 40, "optimizer.learning_rate": "1e5",
                         "optimizer.clip_norm": 0}, code=6)
    states = {name: run["state"] for name, run in place.listed().items()}
    assert states == {"a": "finished", "b": "finished", "c": "failed"}, states
    assert not (place.folder / "runs/c/report.html").exists(), "a failed run writes no page"
    answer = json.loads(place.trireme("compare", "runs/a", "runs/b", "--json"))
    keys = {each["key"]: [value["text"] for value in each["values"]] for each in answer["differences"]}
    assert keys["optimizer.learning_rate"] == ["0.001", "0.003"], keys
    assert keys["parallel.tensor"] == ["2", "1"], keys
    assert "model.hidden_size" not in keys and "run.directory" not in keys, keys
    for run in answer["runs"]:
        assert 3 < run["loss"] < 7 and 3 < run["held_out_loss"] < 7, run
        assert run["tokens"] == run["step"] * 12 * 32 and 0 < run["mfu"] <= 1, run
    for words in (["runs"], ["compare", "a", "b"], ["compare", "a", "b", "c"]):
        places = [f"runs/{word}" if word in "abc" else word for word in words]
        for line in place.trireme(*places).splitlines():
            assert len(line) <= 100, line
    answer = json.loads(place.trireme("report", "runs/a", "runs/c", "--json"))
    a, c = answer["runs"]
    assert a["cause"] is None and c["cause"]["exit_code"] == 6, answer
    assert a["findings"] == [] or {"rule", "text"} == set(a["findings"][0]), a
    assert a["placement"]["ranks"] == 2 and a["mean_step"]["tensor_bytes"] > 0, a
    assert a["mean_step"]["gradient_bytes"] == 0 and a["mean_step"]["stage_layers"], a
    assert "--out excludes --json" in place.trireme("report", "runs/a", "--json", "--out", "x", code=2)
    text, data = place.page("runs/a", "runs/b", "runs/c", "--out", "all.html", path="all.html")
    assert [run["name"] for run in data["runs"]] == ["a", "b", "c"], data["runs"]
    assert "Keys that differ" in text and "are not both finite" not in text.split("Findings")[0]
    assert "Why it failed" in text.split("Overview")[0], text
    assert "failed, exit code 6" in text and "not both" in text or "not finite" in text, text
    assert (place.folder / "all.html").stat().st_size < 3 << 20


def page_that_cannot_be_written(place):
    """The run ends well all the same."""
    obstacle = place.folder / "runs/d/report.html/folder"
    place.train(1, "d", {"train.steps": 2})
    (place.folder / "runs/d/report.html").unlink()
    obstacle.mkdir(parents=True)
    said = place.train(1, "d", {"train.steps": 4})
    assert "trireme report runs/d" in said and "without a page" in said, said
    assert place.listed()["d"]["state"] == "finished" and obstacle.is_dir()
    assert not list((place.folder / "runs/d").glob("*.tmp-*")), "nothing half-written stays"


def mistakes(place):
    assert "--out FILE.html" in place.trireme("report", "runs/a", "runs/b", code=2)
    assert "is no run directory" in place.trireme("compare", "runs", code=2)
    assert "is no folder" in place.trireme("runs", "nowhere", code=2)
    assert "report.html" in place.trireme("report", "runs/a", "--out", "/nowhere/report.html", code=6)


def main():
    parser = argparse.ArgumentParser()
    for name in ("trireme", "mpirun"):
        parser.add_argument(f"--{name}", required=True, type=lambda text: pathlib.Path(text).resolve())
    with tempfile.TemporaryDirectory(prefix="trireme-reports-") as folder:
        place = Reports(parser.parse_args(), pathlib.Path(folder))
        kill_and_look(place)
        compare(place)
        page_that_cannot_be_written(place)
        mistakes(place)
    print("each run is listed, compared and reported as it was")
    return 0


if __name__ == "__main__":
    sys.exit(main())
