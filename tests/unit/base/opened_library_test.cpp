// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/cuda_libraries.hpp"

#include "support/temporary_folder.hpp"

#include <catch2/catch.hpp>

#include <filesystem>

using namespace trireme;
using base::OpenedLibrary;
using Names = std::vector<std::string>;
using Catch::Matchers::Contains;
using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;

namespace {

constexpr const char* what = "cuDNN (its attention is faster)";
constexpr const char* remedy = "install it";

/// Two functions, `opened_library_version` and `opened_library_twice`.
const std::string built_library = TRIREME_OPENED_LIBRARY;

}  // namespace

TEST_CASE("a library that nothing has is refused with the loader's reason for each place") {
  tests::TemporaryFolder folder;
  const auto text = folder.write("libtext.so.1", "no library, but words").string();
  const auto opened =
      OpenedLibrary::open({"libof-nobody.so.7", "/nowhere/libother.so.7", text}, what, remedy);
  REQUIRE_FALSE(opened.ok());
  CHECK(opened.failure().code == base::ExitCode::topology);
  const auto& said = opened.failure().text;
  CHECK_THAT(said, StartsWith("cannot load cuDNN (its attention is faster): libof-nobody.so.7: "));
  CHECK_THAT(said, Contains("; /nowhere/libother.so.7: "));
  CHECK_THAT(said, Contains("; " + text + ": "));
  CHECK_THAT(said, EndsWith("; install it"));
}

TEST_CASE("a library is the first of its places that the loader takes") {
  tests::TemporaryFolder folder;
  const auto text = folder.write("libtext.so.1", "no library, but words").string();
  const auto later = (folder.path() / "liblater.so.1").string();
  std::filesystem::copy_file(built_library, later);
  auto opened = OpenedLibrary::open({text, built_library, later}, what, remedy);
  REQUIRE(opened.ok());
  CHECK(std::filesystem::equivalent(opened->path(), built_library));

  int (*version)() = nullptr;
  opened->find("opened_library_version", version);
  REQUIRE(version != nullptr);
  CHECK(version() == 90'201);
}

TEST_CASE("symbols that a library lacks are listed, those that may lack are not") {
  auto opened = OpenedLibrary::open({built_library}, what, remedy);
  REQUIRE(opened.ok());
  CHECK(opened->check_symbols("cuDNN", 9).ok());
  int (*twice)(int) = nullptr;
  // The place that a function pointed to before is forgotten, too.
  int (*absent)(int) = [](int number) { return number; };
  int (*may_lack)(int) = absent;
  opened->find("opened_library_thrice", absent);
  opened->find("opened_library_twice", twice);
  opened->find_optional("opened_library_later", may_lack);
  opened->find("opened_library_never", absent);
  REQUIRE(twice != nullptr);
  CHECK(twice(21) == 42);
  CHECK(absent == nullptr);
  CHECK(may_lack == nullptr);
  CHECK(opened->missing() == Names{"opened_library_thrice", "opened_library_never"});
  const auto status = opened->check_symbols("cuDNN", 9);
  REQUIRE_FALSE(status.ok());
  CHECK(status.failure().code == base::ExitCode::topology);
  CHECK(
      status.failure().text ==
      "cuDNN lacks opened_library_thrice, opened_library_never (another version than 9?); install "
      "the one that this program was built with");
}
