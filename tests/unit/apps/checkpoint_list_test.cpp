// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/json.hpp"
#include "trireme/base/utc.hpp"
#include "trireme/checkpoint/folders.hpp"
#include "trireme/checkpoint/retention.hpp"

#include "unit/apps/checkpoint_runs.hpp"
#include "unit/apps/trireme_program.hpp"

#include <catch2/catch.hpp>

#include <fstream>
#include <sstream>

using namespace trireme::tests;
namespace base = trireme::base;
namespace checkpoint = trireme::checkpoint;

TEST_CASE("checkpoint list tells size, tags and what is not committed") {
  const TemporaryFolder folder;
  const auto run = run_with_steps(folder, 2);
  const auto checkpoints = run / "checkpoints";
  std::filesystem::create_directory(checkpoints / "step-000000003.tmp-abc");
  const auto tagged =
      run_trireme({"checkpoint", "tag", (checkpoints / "step-000000001").string(), "good.one"});
  CHECK(tagged.exit_code == 0);
  CHECK(contains(tagged.out, (checkpoints / "tags" / "good.one").string()));
  const auto end = run_trireme({"checkpoint", "list", run.string(), "--json"});
  CHECK(end.exit_code == 0);
  std::vector<base::Json> lines;
  std::istringstream stream(end.out);
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(base::value_or_throw(base::parse_json(line, "list")));
  }
  REQUIRE(lines.size() == 3);
  CHECK(lines[0]["step"] == 3);
  CHECK(lines[0]["committed"] == false);
  CHECK(lines[1]["step"] == 2);
  CHECK(lines[1]["committed"] == true);
  CHECK(lines[1]["tags"].empty());
  CHECK(lines[1]["tier"] == "shared");
  CHECK(lines[1]["tokens"] == 1000);
  CHECK(lines[1]["validation_loss"].is_null());
  const auto written = lines[1]["written"].get<std::string>();
  CHECK(base::utc_milliseconds(written).has_value());
  CHECK(lines[1]["bytes"] > 4000);
  CHECK(lines[2]["tags"] == base::Json({"good.one"}));
  const auto text = run_trireme({"checkpoint", "list", run.string()});
  CHECK(contains(text.out, "not committed"));
  CHECK(text.out.starts_with("step "));
  CHECK(contains(text.out.substr(0, text.out.find('\n')), "validation loss"));
  CHECK(contains(text.out, written.substr(0, 10) + " " + written.substr(11, 5) + "  "));
  CHECK_FALSE(contains(text.out, " \n"));
  CHECK(contains(text.out, "good.one"));
  // A tag is a path of its step, and keeps it.
  const auto link = checkpoints / "tags" / "good.one";
  CHECK(contains(run_trireme({"checkpoint", "inspect", link.string()}).out, "step 1,"));
  const auto shown =
      run_trireme({"checkpoint", "prune", run.string(), "--keep-last", "1", "--dry-run"});
  CHECK(shown.exit_code == 0);
  CHECK(shown.out.empty());
  CHECK(run_trireme({"checkpoint", "tag", run.string(), "good.one"}).exit_code == 6);
  CHECK(run_trireme({"checkpoint", "tag", run.string(), "a/b"}).exit_code == 2);
  CHECK(run_trireme({"checkpoint", "tag", run.string(), "good.one", "--remove"}).exit_code == 0);
  const auto would =
      run_trireme({"checkpoint", "prune", run.string(), "--keep-last", "1", "--dry-run"});
  CHECK(contains(would.out, "would remove"));
  CHECK(std::filesystem::exists(checkpoints / "step-000000001"));
}

TEST_CASE("checkpoint list names what is wrong with each step of a run, and of its copy") {
  const TemporaryFolder folder;
  const auto run = run_with_steps(folder, 6) / "checkpoints";
  const auto path = [&run](int step) { return run / base::format("step-00000000{}", step); };
  std::filesystem::remove(path(6) / "manifest.json");
  std::ofstream(path(5) / "manifest.json") << "{";
  std::filesystem::resize_file(path(4) / "shard-00000.h5", 10);
  std::filesystem::remove(path(3) / "shard-00000.h5");
  // Set aside by a save of the same step that was killed before it had taken its place.
  std::filesystem::rename(path(2), run / "step-000000002.replaced-abc");
  // Neither is a step: a link, and a file.
  std::filesystem::create_directory_symlink("step-000000001", path(7));
  std::ofstream(path(8)) << "x";
  std::filesystem::create_directories(run / "tags");
  std::filesystem::create_directory_symlink("../step-000000099", run / "tags" / "gone");
  std::filesystem::create_directory(run / "step-000000009.tmp-abc");
  const TemporaryFolder other;
  const auto copy = other.path() / "copy";
  std::filesystem::copy(
      run, copy,
      std::filesystem::copy_options::recursive | std::filesystem::copy_options::copy_symlinks);
  for (const auto& listed : {folder.path(), run, copy}) {
    const auto text = run_trireme({"checkpoint", "list", listed.string()});
    INFO(text.out);
    CHECK(text.exit_code == 0);
    std::vector<std::string> begins;
    std::istringstream stream(text.out);
    for (std::string line; std::getline(stream, line);) {
      begins.push_back(line.substr(0, line.find("  ")) +
                       (contains(line, "not usable: ") ? " bad" : ""));
    }
    CHECK(begins == std::vector<std::string>{"step", "step-000000009.tmp-abc bad",
                                             "step-000000006 bad", "step-000000005 bad",
                                             "step-000000004 bad", "step-000000003 bad",
                                             "step-000000002.replaced-abc", "step-000000001"});
  }
}

TEST_CASE("checkpoint diff compares steps, and can insist on equality") {
  const TemporaryFolder folder;
  const auto run = run_with_steps(folder, 2);
  const auto step = [&](int number) {
    return (run / "checkpoints" / ("step-00000000" + std::to_string(number))).string();
  };
  const auto same = run_trireme({"checkpoint", "diff", step(1), step(2), "--must-be-equal"});
  CHECK(same.exit_code == 0);
  CHECK(contains(same.out, "step: 1 | 2"));
  CHECK(contains(same.out, "all 1 tensors are the same, bit by bit"));
  const TemporaryFolder other;
  const auto more = run_with_steps(other, 1, 3);
  const auto end = run_trireme({"checkpoint", "diff", run.string(), more.string(), "--json"});
  CHECK(end.exit_code == 0);
  const auto json = base::value_or_throw(base::parse_json(end.out, "diff"));
  CHECK(json["equal"] == false);
  CHECK(json["common_tensors"] == 1);
  REQUIRE(json["tensors"].size() == 2);
  CHECK(json["tensors"][0]["difference"] == "only in the second");
  CHECK(run_trireme({"checkpoint", "diff", run.string(), more.string(), "--must-be-equal"})
            .exit_code == 6);
}
