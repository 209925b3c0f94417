#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reports of runs made by hand as a browser lays them out, on a telephone, a screen and paper: nothing
is cut at an edge, and no column of text is squeezed.

usage: report_test.py TRIREME [FOLDER for what is made]
"""
import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "track"))
sys.dont_write_bytecode = True
from browser import Browser, found_or_skip  # noqa: E402
from made_run import MadeRun  # noqa: E402

STEPS = 60
LONG_PATH = "/scratch/project-0427/" + "a-folder-of-corpora/" * 6 + "tokens.bin"
CONFIG = f"""[run]
directory = {LONG_PATH} # --set
[model]
architecture = llama # configs/llama-34m.conf:2
[data]
train = {LONG_PATH}, {LONG_PATH}, {LONG_PATH} # /home/someone/{"experiments/" * 8}base.conf:117
[parallel]
tensor = 2 # --set
pipeline = 2 # --set
data = 2 # auto
schedule = 1f1b # default
virtual_stages = 1 # default
[optimizer]
learning_rate = {{rate}} # --set
curve = cosine # default
[train]
steps = {STEPS} # --set
"""
RANKS = 8
# Layouts, and the width of paper (A4 less its margins).
MEDIA = [(400, "screen"), (1280, "screen"), (718, "print")]

# Names what is wider than its place or ends right of it, and blocks of text too narrow to read; what
# folds in is unfolded first. Pictures have coordinates of their own: labels of an axis stand over its
# end, and timelines are as long as they must.
MEASURE = """(() => {
  document.querySelectorAll("details").forEach((each) => { each.open = true; });
  const found = [], name = (each) => `${each.closest("section")?.id}: ${each.tagName}.${each.className} `
    + each.textContent.trim().slice(0, 40);
  const page = document.documentElement.clientWidth;
  for (const each of document.querySelectorAll("body, body *")) {
    if (each.closest("svg, script, style") || !each.checkVisibility()) continue;
    const box = each.getBoundingClientRect();
    if (!box.width) continue;
    const picture = each.closest(".plot, .picture");
    if (!picture && each.scrollWidth > each.clientWidth + 1 && getComputedStyle(each).display !== "inline")
      found.push(`${name(each)}: ${each.scrollWidth} in ${each.clientWidth}`);
    const card = each.closest("section"), edge = card ? card.getBoundingClientRect().right : page;
    if ((box.right > edge + 1 || box.left < -1) && !each.closest(".picture"))
      found.push(`${name(each)}: ends at ${Math.round(box.right)} of ${Math.round(edge)}`);
    const words = each.matches("td, th, p, li, dt, dd") ? each.textContent.trim().length : 0;
    if (words > 24 && box.width < 96)
      found.push(`${name(each)}: ${words} letters in ${Math.round(box.width)} pixels`);
  }
  return found;
})()"""


def fill(run, rate):
    run.steps(1, STEPS)
    (run.folder / "config.resolved.conf").write_text(CONFIG.format(rate=rate))
    bytes_of = {name: 1 << 28 >> place for place, name in enumerate(
        ("parameters", "gradients", "optimizer", "activations", "workspace", "communication", "batch"))}
    run.event("arenas", 1, planned_bytes=bytes_of, used_bytes=bytes_of)
    run.event("memory", 1, arena_bytes=1 << 30, graph_bytes=1 << 20, taken_bytes=1 << 34,
              library_bytes={"cuBLASLt": 1 << 25})
    run.write({"kind": "sample", "step": 10, "temperature": 0, "samples": [
        {"prompt": "It was", "text": " " + "so-long-a-word-" * 20 + " that day", "cut": True}]})
    run.event("not saved", 20, why=f"{LONG_PATH}: no space is left on the device, 17 bytes short")
    ranks = [{"numa_nodes": [0], "cpus": "0-15,64-79", "threads": 16, "gpu": "0000:17:00.0"}] * 4
    (run.folder / "placement.json").write_text(json.dumps(
        {"ranks": RANKS, "axes": [{"axis": axis, "degree": 2} for axis in ("pp", "dp", "tp")],
         "shapes": [ranks], "nodes": [
             {"name": f"compute-node-{node}.partition-gpu.cluster.university.example", "shape": 0,
              "ranks": [[4 * node, 4 * node + 3]]} for node in range(2)]}))
    (run.folder / "versions.json").write_text(json.dumps(
        {"version": "0.1.0", "built_with": {"CUDA": f"13.0.88 ({LONG_PATH}), for sm 80, 90a-real"}}))


def fail(run):
    (run.folder / "failure.json").write_text(json.dumps(
        {"cause": f"'{LONG_PATH}' cannot be read: " + "the storage does not answer; " * 8,
         "first_failing_rank": 3, "host": "compute-node-0", "exit_code": 6,
         "time": "2026-11-21T00:01:00.000Z"}))
    (run.folder / "log").mkdir()
    for rank in range(RANKS):
        (run.folder / f"log/r{rank:04}.txt").write_text(
            f"2026-11-21T00:01:0{rank}.123Z error   r{rank:04}/{RANKS:04} compute-node-{rank // 4} comm: "
            f"{LONG_PATH}: {'a peer has left the group of data parallelism, ' * 4}\n")


def make_runs(folder):
    runs = [MadeRun(folder / name, STEPS) for name in
            ("a", "b", "llama-34m-with-a-name-that-goes-on", "lr-3e-3_warmup-2000_batch-4M", "e")]
    for place, run in enumerate(runs):
        fill(run, 1e-4 * 3 ** place)
    for run in runs[:-1]:
        run.finish(STEPS)
    fail(runs[-1])
    return [run.folder for run in runs]


def main():
    path = found_or_skip()
    with tempfile.TemporaryDirectory(prefix="trireme-report-") as name:
        folder = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else name)
        runs = make_runs(folder)
        wrong = []
        with Browser(path) as browser:
            for title, shown in {"all": runs, "failed": runs[-1:], "one": runs[:1]}.items():
                page = folder / f"{title}.html"
                subprocess.run([sys.argv[1], "-q", "report", *shown, "--out", page], check=True,
                               stdout=subprocess.DEVNULL)
                for width, media in MEDIA:
                    browser.open(page, width, media)
                    assert browser.value("document.querySelectorAll('section').length") > 8
                    wrong += [f"{title} at {width}, {media}: {each}" for each in browser.value(MEASURE)]
        assert not wrong, "\n".join([f"{len(wrong)} places:"] + wrong[:60])
    print("nothing is cut on a telephone, a screen and paper")
    return 0


if __name__ == "__main__":
    sys.exit(main())
