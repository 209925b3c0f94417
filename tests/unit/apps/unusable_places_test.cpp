// SPDX-License-Identifier: Apache-2.0
// Names that the system does not take, and a working folder that is gone, through whole commands.
#include "support/temporary_folder.hpp"
#include "unit/apps/trireme_program.hpp"

#include <catch2/catch.hpp>

using namespace trireme::tests;

namespace {

constexpr const char* debug_configuration = TRIREME_SOURCE_DIR "/configs/debug-tiny.conf";

/// That the command ends as a mistake of its user, with a text.
void check_is_refused(const ProgramStart& start) {
  const auto end = run_program(start);
  CAPTURE(start.arguments, end.err);
  CHECK((end.exit_code == 2 || end.exit_code == 6));
  CHECK(contains(end.err, "trireme: "));
  CHECK_FALSE(contains(end.err, "defect"));
}

}  // namespace

TEST_CASE("a name that is too long for the system is a mistake of its user") {
  const std::string name(300, 'n');
  const std::string deep(5000, 'p');
  for (const auto& text : {name, deep}) {
    for (const auto& arguments : std::vector<std::vector<std::string>>{
             {"train", debug_configuration, "--set", "run.name=" + text},
             {"train", debug_configuration, "--ranks", "2", "--set", "run.name=" + text},
             {"train", debug_configuration, "--set", "model.from=" + text},
             {"train", "--resume", text},
             {"train", text + "=1"},
             {"config", "check", text},
             {"config", "diff", text, debug_configuration},
             {"generate", "--weights", text, "--prompt", "a"},
             {"eval", "--weights", text, debug_configuration},
             {"checkpoint", "list", text},
             {"checkpoint", "prune", text, "--keep-last", "1"},
             {"checkpoint", "import", text, "--to", "/tmp/none"},
             {"layout", text, "--ranks", "2"},
             {"plan", text, "--ranks", "2"},
             {"report", text},
             {"track", "sync", text, "--to", "tensorboard=" + text},
             {"data", "inspect", text},
             {"why", text}}) {
      check_is_refused(trireme_start(arguments));
    }
  }
  for (const auto* key : {"run.name", "model.from", "data.train", "data.tokenizer"}) {
    CAPTURE(key);
    const auto end = run_trireme(
        {"config", "check", debug_configuration, "--set", std::string(key) + "=" + name});
    CAPTURE(end.err);
    CHECK(end.exit_code != 70);
  }
}

TEST_CASE("in a working folder that is gone a command says what it cannot read") {
  const TemporaryFolder folder;
  const auto gone = (folder.path() / "gone").string();
  const std::string in_gone = R"(mkdir -p "$1" && cd "$1" && rmdir "$1" && exec "$0" )";
  for (const auto* command : {"train c.conf", "train --resume runs/a", "config check c.conf",
                              "generate --weights w --prompt a", "checkpoint list runs/a",
                              "checkpoint prune runs/a --keep-last 1", "why runs/a",
                              "track sync runs/a --to tensorboard=b", "report runs/a",
                              "checkpoint import w --to r", "data inspect d"}) {
    check_is_refused(
        {.program = "/bin/sh", .arguments = {"-c", in_gone + command, TRIREME_EXECUTABLE, gone}});
  }
  // A whole configuration whose paths are relative.
  check_is_refused({.program = "/bin/sh",
                    .arguments = {"-c", in_gone + "train \"$2\" --set track.to=tensorboard=b",
                                  TRIREME_EXECUTABLE, gone, debug_configuration}});
}
