// SPDX-License-Identifier: Apache-2.0
// `trireme preflight` writes machine files that `trireme plan` takes.
#include "trireme/base/file.hpp"

#include "mpi/commands/ranks.hpp"
#include "support/temporary_folder.hpp"

#include <catch2/catch.hpp>

#include <filesystem>

using namespace trireme;
using namespace trireme::tests;

namespace {

const std::filesystem::path configs = std::filesystem::path(TRIREME_SOURCE_DIR) / "configs";

/// A machine file that so many ranks have measured.
std::filesystem::path measured_on(int ranks, const TemporaryFolder& folder) {
  const auto file = folder.path() / "here.conf";
  done_on_ranks(ranks,
                {"preflight", "--machine-out", file.string(), "--path", folder.path().string()});
  return file;
}

void check_planned(const std::filesystem::path& machine) {
  const auto plan = done_on_ranks(1, {"plan", (configs / "debug-tiny.conf").string(), "--ranks",
                                      "2", "--machine", machine.string(), "--json"});
  const auto prediction = base::Json::parse(plan)["prediction"];
  CHECK(prediction["machine"] == "here");
  CHECK(prediction["seconds"] > 0);
}

ProgramEnd refused(const std::filesystem::path& file, std::vector<std::string> more = {}) {
  more.insert(more.begin(), {"preflight", "--machine-out", file.string()});
  return on_ranks(2, more);
}

}  // namespace

TEST_CASE("preflight of one rank writes a machine file that plan takes") {
  const TemporaryFolder folder;
  const auto file = measured_on(1, folder);
  check_planned(file);
  const auto text = *base::read_text_file(file);
  CHECK(says(text, "node.disk_write = measured by trireme preflight"));
  CHECK(says(text, "product.rates_fp32 = measured by trireme preflight on 1 rank"));
  // One rank sends no messages.
  CHECK_FALSE(says(text, "messages ="));
}

TEST_CASE("preflight of two ranks measures messages between them") {
  const TemporaryFolder folder;
  const auto file = measured_on(2, folder);
  check_planned(file);
  const auto text = *base::read_text_file(file);
  CHECK(says(text, "messages = 1024,"));
  CHECK(says(text, "link.node.messages = measured by trireme preflight: messages of 2 ranks"));
  // Nothing but the machine file is left in the folder.
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("preflight writes over no file, and refuses one that it could not write, at once") {
  const TemporaryFolder folder;
  const auto there = folder.write("there.conf", "# mine\n");
  const auto end = refused(there);
  CHECK(end.exit_code == 2);
  CHECK(says(end.err, "there.conf is there"));
  CHECK(*base::read_text_file(there) == "# mine\n");
  const auto nowhere = refused(folder.path() / "no/where.conf");
  CHECK(nowhere.exit_code == 2);
  CHECK(says(nowhere.err, "cannot be written"));
  const auto path = refused(folder.path() / "m.conf", {"--path", "/no/folder"});
  CHECK(path.exit_code == 2);
  CHECK(says(path.err, "--path '/no/folder' is not a folder"));
  CHECK_FALSE(std::filesystem::exists(folder.path() / "m.conf"));
}

TEST_CASE("preflight begins with a file of the processors that it measures") {
  const TemporaryFolder folder;
  const auto end = refused(folder.path() / "m.conf", {"--backend", "cuda"});
  CHECK(end.exit_code == 2);
  CHECK(says(end.err, "--backend cuda needs --from"));
  const auto file_of = [](const std::string& name) {
    return (configs / "machines" / (name + ".conf")).string();
  };
  const auto of_cores =
      refused(folder.path() / "m.conf", {"--backend", "cuda", "--from", file_of("laptop-2-core")});
  CHECK(of_cores.exit_code == 2);
  CHECK(says(of_cores.err, "--backend cuda does not go with --from"));
  const auto of_gpus = refused(folder.path() / "m.conf", {"--from", file_of("dgx-h100")});
  CHECK(of_gpus.exit_code == 2);
  CHECK(says(of_gpus.err, "--backend cpu does not go with --from"));
}
