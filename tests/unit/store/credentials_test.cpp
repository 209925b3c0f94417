// SPDX-License-Identifier: Apache-2.0
#include "store/credentials.hpp"

#include "support/temporary_folder.hpp"

#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>

using namespace trireme;
namespace fs = std::filesystem;

namespace {

void write(const fs::path& path, const std::string& text, fs::perms mode) {
  std::ofstream(path) << text;
  fs::permissions(path, mode);
}
constexpr auto own = fs::perms::owner_read | fs::perms::owner_write;

}  // namespace

TEST_CASE("credentials come from the environment, or from a file of a profile") {
  const tests::TemporaryFolder folder;
  fs::create_directory(folder.path() / ".aws");
  const auto file = folder.path() / ".aws" / "credentials";
  write(file,
        "# keys\n[default]\naws_access_key_id = first\naws_secret_access_key=one\n\n"
        "[ other ]\naws_access_key_id=second\naws_secret_access_key = two = 2\n"
        "aws_session_token = token\n[half]\naws_access_key_id = third\n",
        own);
  const auto home = folder.path().string();
  auto found = store::find_credentials(base::Environment({{"HOME", home}}));
  REQUIRE(found.ok());
  CHECK(found->key_id == "first");
  CHECK(found->secret == "one");
  CHECK(found->session_token.empty());
  found = store::find_credentials(base::Environment({{"HOME", home}, {"AWS_PROFILE", "other"}}));
  REQUIRE(found.ok());
  CHECK(found->secret == "two = 2");
  CHECK(found->session_token == "token");
  found = store::find_credentials(base::Environment(
      {{"HOME", home}, {"AWS_ACCESS_KEY_ID", "id"}, {"AWS_SECRET_ACCESS_KEY", "secret"}}));
  REQUIRE(found.ok());
  CHECK(found->key_id == "id");
  found =
      store::find_credentials(base::Environment({{"AWS_SHARED_CREDENTIALS_FILE", file.string()}}));
  REQUIRE(found.ok());
  CHECK(found->key_id == "first");
}

TEST_CASE("credentials that are missing, or no secret, are refused without being shown") {
  const tests::TemporaryFolder folder;
  const auto file = folder.path() / "keys";
  const auto refused = [&](std::map<std::string, std::string, std::less<>> more) {
    more.emplace("AWS_SHARED_CREDENTIALS_FILE", file.string());
    const auto found = store::find_credentials(base::Environment(std::move(more)));
    REQUIRE_FALSE(found.ok());
    CHECK(found.failure().code == base::ExitCode::usage);
    CHECK(found.failure().text.find("hidden") == std::string::npos);
    return found.failure().text;
  };
  CHECK(refused({}).find("set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY") != std::string::npos);
  CHECK(refused({{"AWS_SECRET_ACCESS_KEY", "hidden"}}).find("AWS_ACCESS_KEY_ID is not set") == 0);
  const std::string text =
      "[default]\naws_access_key_id = hidden\naws_secret_access_key = hidden\n";
  write(file, text, own | fs::perms::group_read);
  CHECK(refused({}).find("chmod 600") != std::string::npos);
  write(file, text, own);
  CHECK(refused({{"AWS_PROFILE", "none"}}).find("section [none]") != std::string::npos);
  fs::remove(file);
  fs::create_directory(file);
  CHECK(refused({}).find("regular file") != std::string::npos);
}
