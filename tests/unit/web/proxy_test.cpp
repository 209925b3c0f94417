// SPDX-License-Identifier: Apache-2.0
// Proxies that the environment names: curl's rules, and what is said of them.
#include "trireme/web/http.hpp"

#include "scripted_server.hpp"

#include <catch2/catch.hpp>

#include <cstdlib>
#include <optional>

using namespace trireme;
using tests::ScriptedServer;

namespace {

/// Sets an environment variable for a scope: libcurl reads them itself.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* const before = std::getenv(name)) before_ = before;
    ::setenv(name, value.c_str(), 1);
  }
  ~Variable() {
    if (before_) {
      ::setenv(name_, before_->c_str(), 1);
    } else {
      ::unsetenv(name_);
    }
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

constexpr const char* store_url = "http://store.example:9000/name";

}  // namespace

TEST_CASE("requests go through the proxy that the environment names, but for servers of no_proxy") {
  const ScriptedServer proxy(
      [](std::size_t, const auto&) { return ScriptedServer::answer(200, "from afar"); });
  const Variable none("no_proxy", "");
  const Variable set("http_proxy", proxy.url());
  web::HttpClient client;
  const auto answer = client.perform({.method = "GET", .url = store_url, .headers = {}});
  CHECK(answer.text == "from afar");
  REQUIRE(proxy.requests().size() == 1);
  CHECK(proxy.requests().front().head.starts_with("GET http://store.example:9000/name HTTP/1.1"));

  const ScriptedServer near(
      [](std::size_t, const auto&) { return ScriptedServer::answer(200, "from here"); });
  const Variable without("no_proxy", "other.example,127.0.0.0/8");
  CHECK(client.perform({.method = "GET", .url = near.url() + "/name", .headers = {}}).text ==
        "from here");
  CHECK(proxy.requests().size() == 1);
}

TEST_CASE("failures behind a proxy name its variable, and never its password") {
  std::string nowhere;
  {
    const ScriptedServer gone([](std::size_t, const auto&) { return std::string(); });
    nowhere = gone.url().substr(std::string_view("http://").size());
  }
  const Variable none("no_proxy", "");
  web::HttpClient client;
  {
    const Variable set("http_proxy", "http://me:secret@" + nowhere);
    const auto refused = client.perform({.method = "GET", .url = store_url, .headers = {}});
    CHECK(refused.status == 0);
    CHECK_THAT(refused.text, Catch::Contains("through the proxy that http_proxy names") &&
                                 Catch::Contains("no_proxy") && !Catch::Contains("secret"));
    // The same handle, for a server that is reached without it.
    const Variable without("no_proxy", "*");
    const auto direct =
        client.perform({.method = "GET", .url = "http://" + nowhere, .headers = {}});
    CHECK(direct.status == 0);
    CHECK_THAT(direct.text, !Catch::Contains("proxy"));
  }
  const ScriptedServer strict([](std::size_t, const auto&) {
    return ScriptedServer::answer(407, "<html>Who are you?", "Proxy-Authenticate: Basic\r\n");
  });
  const Variable set("http_proxy", strict.url());
  const auto asked = client.perform({.method = "GET", .url = store_url, .headers = {}});
  CHECK(asked.is_final);
  CHECK_FALSE(asked.ok());
  CHECK_THAT(asked.text,
             Catch::Contains("the proxy that http_proxy names wants a name and a password"));
}
