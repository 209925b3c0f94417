// SPDX-License-Identifier: Apache-2.0
// Options that several commands have: one name, one form, and earlier words that still work.
#include "trireme/base/file.hpp"

#include "support/temporary_folder.hpp"
#include "unit/apps/trireme_program.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <utility>
#include <vector>

using namespace trireme::tests;

TEST_CASE("an option has one name in all commands, and its earlier word does the same unseen") {
  using Words = std::vector<std::string>;
  const auto model = std::string(TRIREME_SOURCE_DIR) + "/configs/debug-tiny.conf";
  const std::pair<Words, Words> alike[] = {
      {{"layout", "--ranks", "8", "--tensor-parallel", "2", "--pipeline-parallel", "2"},
       {"layout", "--world", "8", "--tp", "2", "--pp", "2"}},
      {{"layout", "--data-parallel", "3"}, {"layout", "--dp", "3"}},
      {{"layout", "--context-parallel", "2"}, {"layout", "--cp", "2"}},
      {{"plan", model, "--ranks", "2"}, {"plan", model, "--world", "2"}},
      {{"graph", model, "--ranks", "2"}, {"graph", model, "--world", "2"}},
      {{"graph", model, "--svg", "-"}, {"graph", model, "--out", "-"}},
      {{"layout", "--tensor-parallel", "2"}, {"layout", "--set", "parallel.tensor=2"}},
  };
  for (const auto& [now, before] : alike) {
    INFO(now[0] << " " << now[1]);
    const auto end = run_trireme(now);
    CHECK(end.exit_code == 0);
    CHECK_FALSE(end.out.empty());
    CHECK(run_trireme(before).out == end.out);
    const auto help = run_trireme({now[0], "--help"}).out;
    for (const char* word : {"--world", "--tp", "--cp", "--pp", "--dp", "--out"}) {
      INFO(word);
      CHECK_FALSE(contains(help, word));
    }
  }
  for (const char* command : {"train", "eval", "generate", "probe", "plan", "graph", "layout",
                              "ownership", "config show", "config check"}) {
    const std::string words(command);
    const auto space = words.find(' ');
    Words arguments{words.substr(0, space)};
    if (space != std::string::npos) arguments.push_back(words.substr(space + 1));
    arguments.emplace_back("--help");
    const auto help = run_trireme(arguments).out;
    INFO(help);
    for (const char* option : {"--tensor-parallel N", "--context-parallel N",
                               "--pipeline-parallel N", "--data-parallel N"}) {
      CHECK(contains(help, option));
    }
  }
  const auto both = run_trireme({"layout", "--tp", "2", "--tensor-parallel", "2"});
  CHECK(both.exit_code == 2);
  CHECK(contains(both.err, "--tensor-parallel excludes --tp"));
  CHECK(contains(run_trireme({"layout", "--world", "0"}).err, "--world: '0' is no whole number"));
}

TEST_CASE("layout takes degrees and schedule of a configuration, and options over them") {
  const TemporaryFolder folder;
  const auto file =
      folder.write("a.conf", "[parallel]\ntensor = 2\npipeline = 2\nschedule = gpipe\n").string();
  const auto out = [](const std::vector<std::string>& arguments) {
    const auto end = run_trireme(arguments);
    INFO(end.err);
    CHECK(end.exit_code == 0);
    return end.out;
  };
  CHECK(out({"layout", file, "--ranks", "8", "--micro-batches", "4"}) ==
        out({"layout", "--ranks", "8", "--tensor-parallel", "2", "--pipeline-parallel", "2",
             "--micro-batches", "4", "--schedule", "gpipe"}));
  CHECK(contains(out({"layout", file, "--tensor-parallel", "4"}), "pp2 x dp1 x tp4: 8 ranks"));
  CHECK(run_trireme({"layout", file, "--ranks", "6"}).exit_code == 3);
  const auto many =
      run_trireme({"layout", file, "--tensor-parallel", "65536", "--data-parallel", "65536"});
  CHECK(many.exit_code == 2);
  CHECK(contains(many.err, "are 8589934592 ranks, more than 1048576"));
}

TEST_CASE("standard output has the picture of --svg - alone, and it is not beside --json") {
  const std::vector<std::string> layout{"layout", "--pipeline-parallel", "2", "--micro-batches",
                                        "2"};
  const TemporaryFolder folder;
  const auto file = (folder.path() / "a.svg").string();
  auto arguments = layout;
  arguments.insert(arguments.end(), {"--svg", file});
  CHECK(run_trireme(arguments).out == run_trireme(layout).out);
  arguments.back() = "-";
  const auto picture = run_trireme(arguments).out;
  CHECK(picture.starts_with("<svg"));
  CHECK(picture == *trireme::base::read_text_file(file));
  arguments.emplace_back("--json");
  const auto end = run_trireme(arguments);
  CHECK(end.exit_code == 2);
  CHECK(end.out.empty());
  CHECK(contains(end.err, "--svg - does not go with --json"));
}
