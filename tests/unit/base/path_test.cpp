// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/path.hpp"

#include "support/temporary_folder.hpp"

#include <catch2/catch.hpp>
#include <unistd.h>

using namespace trireme;
namespace fs = std::filesystem;

namespace {

std::string text_of(const fs::filesystem_error& error) {
  const auto failure = base::failure_of(error);
  CHECK(failure.code == base::ExitCode::checkpoint);
  return failure.text;
}

/// A working folder that is removed while this lives.
class GoneFolder {
 public:
  GoneFolder() : before_(fs::current_path()) {
    const auto gone = fs::path(folder_.path()) / "gone";
    fs::create_directory(gone);
    fs::current_path(gone);
    fs::remove(gone);
  }
  GoneFolder(const GoneFolder&) = delete;
  GoneFolder& operator=(const GoneFolder&) = delete;
  ~GoneFolder() { fs::current_path(before_); }

 private:
  tests::TemporaryFolder folder_;
  fs::path before_;
};

}  // namespace

TEST_CASE("questions about names that the system does not take have an answer") {
  const std::string name(300, 'n');
  CHECK_FALSE(base::exists(name));
  CHECK_FALSE(base::is_directory(name));
  CHECK(base::exists("/"));
  CHECK(base::is_directory("/"));
  CHECK(base::absolute("a") == fs::current_path() / "a");
  CHECK(base::absolute("").empty());
  const GoneFolder gone;
  CHECK(base::absolute("a") == "a");
}

TEST_CASE("what the library throws of files is told by the names that it has") {
  const auto broken = std::make_error_code(std::errc::io_error);
  CHECK(text_of({"rename", "/a", broken}) == "cannot use '/a': Input/output error");
  CHECK(text_of({"rename", "/a", "/b", broken}) == "cannot use '/a' and '/b': Input/output error");
  // The next entry of a folder.
  CHECK(text_of({"directory iterator cannot advance", broken}) ==
        "cannot read a folder: Input/output error");
  const GoneFolder gone;
  CHECK(text_of({"cannot get current path",
                 std::make_error_code(std::errc::no_such_file_or_directory)}) ==
        "the working folder cannot be used (No such file or directory); change to one that exists");
}
