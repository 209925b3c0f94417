#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every picture that commands draw, of the smallest and of large inputs, as a browser shows it: no
text ends outside of its picture or of the box that it stands in, and none lies over another.

usage: pictures_test.py TRIREME [FOLDER for what is made]
"""
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "track"))
sys.dont_write_bytecode = True
from browser import Browser, found_or_skip  # noqa: E402
from made_run import MadeRun  # noqa: E402

MODEL = """[model]
architecture = {architecture}
vocab_size = {vocabulary}
hidden_size = {hidden}
intermediate_size = {hidden}
num_hidden_layers = {layers}
num_attention_heads = 8
num_key_value_heads = 8
max_position_embeddings = 128
[train]
sequence_length = 32
micro_batch = 2
global_batch = 64
"""

MEASURE = """(() => {
  const picture = document.documentElement, found = [], texts = [];
  const frame = picture.viewBox.baseVal;
  const rects = [...document.querySelectorAll("rect")].filter((each) => !each.closest("defs"))
    .map((each) => each.getBBox());
  for (const each of document.querySelectorAll("text")) {
    const box = each.getBBox(), words = each.textContent;
    if (!box.width) continue;
    if (box.x < frame.x || box.x + box.width > frame.x + frame.width || box.y < 0
        || box.y + box.height > frame.height)
      found.push(`"${words}" ends at ${box.x + box.width} of ${frame.x + frame.width}`);
    const x = box.x + box.width / 2, y = box.y + box.height / 2;
    for (const rect of rects) {
      const holds = rect.x <= x && x <= rect.x + rect.width && rect.y <= y && y <= rect.y + rect.height;
      if (holds && (box.x < rect.x || box.x + box.width > rect.x + rect.width))
        found.push(`"${words}" is ${box.width} wide in a box of ${rect.width}`);
    }
    for (const other of texts) {
      const wide = Math.min(box.x + box.width, other.box.x + other.box.width) - Math.max(box.x, other.box.x);
      const high = Math.min(box.y + box.height, other.box.y + other.box.height) - Math.max(box.y, other.box.y);
      if (wide > 1 && high > 4) found.push(`"${words}" lies over "${other.words}"`);
    }
    texts.push({ box, words });
  }
  return { found, texts: texts.length };
})()"""


class Pictures:
    def __init__(self, trireme, folder):
        self.trireme, self.folder, self.paths = trireme, folder, []

    def draw(self, name, *words):
        path = self.folder / f"{name}.svg"
        words = [path if word == "PICTURE" else word for word in words]
        with open(path if path not in words else "/dev/null", "wb") as out:
            subprocess.run([str(word) for word in (self.trireme, "-q", *words)], check=True, stdout=out)
        self.paths.append(path)

    def models(self):
        small, large = self.folder / "small.conf", self.folder / "large.conf"
        small.write_text(MODEL.format(architecture="llama", vocabulary=300, hidden=64, layers=4))
        large.write_text(MODEL.format(architecture="gpt2", vocabulary=151936, hidden=16384, layers=128))
        for stages in (1, 2, 4):
            self.draw(f"graph-{stages}", "graph", small, "--world", 8, "--out", "PICTURE",
                      "--set", f"parallel.pipeline={stages}")
        self.draw("graph-large", "graph", large, "--out", "PICTURE", "--set", "parallel.pipeline=8",
                  "--set", "parallel.tensor=8", "--set", "parallel.schedule=interleaved",
                  "--set", "parallel.virtual_stages=4")
        for ranks in (1, 2, 600):
            self.draw(f"ownership-{ranks}", "ownership", small, "--data-parallel", ranks, "--set",
                      "optimizer.name=muon", "--svg", "PICTURE")

    def schedules(self):
        self.draw("layout-1", "layout", "--world", 1, "--micro-batches", 1, "--svg", "PICTURE")
        self.draw("layout-2", "layout", "--world", 2, "--pp", 2, "--micro-batches", 1, "--svg", "PICTURE")
        self.draw("layout-interleaved", "layout", "--world", 128, "--pp", 128, "--schedule",
                  "interleaved", "--virtual-stages", 8, "--micro-batches", 128, "--svg", "PICTURE")

    def traces(self):
        for name, ranks in ((f"{'a-long-name-' * 15}", 2), ("r", 1), ("many", 70)):
            run = MadeRun(self.folder / name, 10)
            run.steps(1, 10)
            run.record(5, ranks, 1_000_000_000)
            self.draw(f"trace-{ranks}", "trace", run.folder, "--svg", "PICTURE")

    def nodes(self):
        for ranks in (1, 4):
            self.draw(f"topology-{ranks}", "topology", "--plan", "--svg", "--devices", "cpu", "--ranks", ranks)


def main():
    browser_path = found_or_skip()
    with tempfile.TemporaryDirectory(prefix="trireme-pictures-") as name:
        pictures = Pictures(sys.argv[1], pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else name))
        pictures.models()
        pictures.schedules()
        pictures.traces()
        pictures.nodes()
        wrong = []
        with Browser(browser_path) as browser:
            for path in pictures.paths:
                browser.open(path, 1280)
                measured = browser.value(MEASURE)
                assert measured["texts"] > 3, f"{path.name}: {measured}"
                wrong += [f"{path.stem}: {each}" for each in measured["found"]]
        assert not wrong, "\n".join([f"{len(wrong)} places:"] + wrong[:60])
    print(f"{len(pictures.paths)} pictures hold their texts")
    return 0


if __name__ == "__main__":
    sys.exit(main())
