// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/file.hpp"

#include "support/temporary_folder.hpp"

#include <catch2/catch.hpp>

#include <filesystem>
#include <system_error>
#include <vector>

namespace trireme::base {
namespace {

TEST_CASE("a durable write replaces a file whole") {
  const tests::TemporaryFolder temporary;
  const auto& folder = temporary.path();
  const auto path = folder / "text";
  write_file_durably(path, "one");
  write_file_durably(path, "two");
  CHECK(read_text_file(path).value() == "two");
  CHECK(std::distance(std::filesystem::directory_iterator(folder), {}) == 1);
  CHECK_FALSE(read_text_file(path, ExitCode::usage, 2).ok());
  CHECK_FALSE(read_text_file(folder / "absent").ok());
}

TEST_CASE("made folders come with those in which a name is new") {
  const tests::TemporaryFolder temporary;
  const auto folder = temporary.path() / "made";
  using Paths = std::vector<std::filesystem::path>;
  std::error_code error;
  CHECK(make_folders(folder, error) == Paths{folder.parent_path()});
  CHECK(make_folders(folder, error).empty());
  CHECK(make_folders(folder / "a" / "b" / "", error) == Paths{folder, folder / "a"});
  CHECK(std::filesystem::is_directory(folder / "a" / "b"));
  CHECK_FALSE(error);
  write_file_durably(folder / "file", "one");
  make_folders(folder / "file" / "c", error);
  CHECK(error == std::errc::not_a_directory);
  const auto made = make_folders_durably(folder / "file" / "c");
  REQUIRE_FALSE(made.ok());
  CHECK(made.failure().text.find("cannot make") == 0);
}

}  // namespace
}  // namespace trireme::base
