// SPDX-License-Identifier: Apache-2.0
// Answers that an HDFS may give and a good one rarely does; the calls themselves: tests/store.
#include "store/webhdfs.hpp"

#include "unit/web/scripted_server.hpp"

#include <catch2/catch.hpp>

#include <map>
#include <optional>

using namespace trireme;
using tests::ScriptedServer;

namespace {

/// Fault of a call: its answer is lost after so much of its effect.
enum class Fault { none, before, half, after };

/// Files that are written by parts, on a server whose answers get lost.
class Files {
 public:
  /// Faults of the calls of one operation, in their order.
  std::map<std::string, std::vector<Fault>> faults;
  std::map<std::string, std::string> content;
  std::map<std::string, int> calls;
  std::string url;

  std::string answer(const ScriptedServer::Request& request) {
    const auto line = request.head.substr(0, request.head.find("\r\n"));
    const auto name = between(line, "/webhdfs/v1/", "?");
    const auto operation = between(line, "op=", "&");
    const bool moves_data = operation == "CREATE" || operation == "APPEND";
    if (moves_data && line.find("&node=1") == std::string::npos) {
      const auto path = between(line, " ", " HTTP");
      return ScriptedServer::answer(307, "", base::format("Location: {}{}&node=1\r\n", url, path));
    }
    const auto number = static_cast<std::size_t>(calls[operation]++);
    const auto& planned = faults[operation];
    const auto fault = number < planned.size() ? planned[number] : Fault::none;
    if (fault == Fault::before) return lost();
    const auto body =
        fault == Fault::half ? request.body.substr(0, request.body.size() / 2) : request.body;
    const auto done = perform(operation, name, line, body);
    return fault == Fault::none ? done : lost();
  }

 private:
  static std::string between(const std::string& text, std::string_view begin,
                             std::string_view end) {
    const auto at = text.find(begin) + begin.size();
    return text.substr(at, std::min(text.find(end, at), text.find(' ', at)) - at);
  }
  static std::string lost() {
    return ScriptedServer::answer(
        403, R"({"RemoteException":{"exception":"RetriableException","message":"busy"}})");
  }
  static std::string missing() {
    return ScriptedServer::answer(
        404, R"({"RemoteException":{"exception":"FileNotFoundException","message":"none"}})");
  }

  std::string perform(const std::string& operation, const std::string& name,
                      const std::string& line, const std::string& body) {
    if (operation == "CREATE") {
      content[name] = body;
      return ScriptedServer::answer(201, "");
    }
    const auto file = content.find(name);
    if (operation == "DELETE") {
      content.erase(name);
      return ScriptedServer::answer(200, R"({"boolean":true})");
    }
    if (file == content.end()) return missing();
    if (operation == "APPEND") file->second += body;
    if (operation == "TRUNCATE") file->second.resize(std::stoul(between(line, "newlength=", "&")));
    if (operation == "GETFILESTATUS") {
      return ScriptedServer::answer(
          200,
          base::format(R"({{"FileStatus":{{"type":"FILE","length":{}}}}})", file->second.size()));
    }
    if (operation == "RENAME") {
      content[between(line, "destination=%2F", "&")] = file->second;
      content.erase(name);
    }
    return ScriptedServer::answer(200, "");
  }
};

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

/// The file "name" after an upload of three parts, or what the upload failed with.
std::string uploaded(std::map<std::string, std::vector<Fault>> faults) {
  Files files;
  files.faults = std::move(faults);
  const ScriptedServer server(
      [&](std::size_t, const ScriptedServer::Request& request) { return files.answer(request); });
  files.url = server.url();
  store::WebHdfsStore store("http://", server.url().substr(7), base::Environment(),
                            std::chrono::milliseconds(500));
  try {
    const auto upload = store.upload("name");
    upload->write(0, bytes_of("first "));
    upload->write(1, bytes_of("second "));
    upload->write(2, bytes_of("third"));
    upload->finish();
  } catch (const store::StoreError& failed) {
    CHECK(files.content.empty());
    return failed.what();
  }
  CHECK(files.content.size() == 1);
  return files.content["name"];
}

}  // namespace

TEST_CASE("a part whose answer was lost is in its file once") {
  const std::string whole = "first second third";
  CHECK(uploaded({}) == whole);
  CHECK(uploaded({{"APPEND", {Fault::before, Fault::none, Fault::before}}}) == whole);
  CHECK(uploaded({{"APPEND", {Fault::after, Fault::none, Fault::after}}}) == whole);
  CHECK(uploaded({{"APPEND", {Fault::none, Fault::half, Fault::half}}}) == whole);
  const std::vector<Fault> always(50, Fault::before);
  CHECK_THAT(uploaded({{"APPEND", always}}), Catch::Contains("cannot write 'webhdfs://") &&
                                                 Catch::Contains("RetriableException, busy; try "
                                                                 "again later"));
}

TEST_CASE("a part that came twice in spite of all fails the upload") {
  // The length is told before the part arrives.
  Files files;
  bool late = false;
  const ScriptedServer server([&](std::size_t, const ScriptedServer::Request& request) {
    auto answer = files.answer(request);
    if (late || request.head.find("op=APPEND") == std::string::npos || request.body.empty()) {
      return answer;
    }
    late = true;
    files.content.begin()->second.clear();
    return ScriptedServer::answer(503, "");
  });
  files.url = server.url();
  store::WebHdfsStore store("http://", server.url().substr(7), base::Environment(),
                            std::chrono::milliseconds(500));
  const auto upload = store.upload("name");
  upload->write(0, bytes_of("part"));
  files.content.begin()->second += "part";
  CHECK_THROWS_WITH(upload->finish(), Catch::Contains("has 8 bytes instead of 4"));
}

TEST_CASE("a file has its name though the answer to the rename was lost") {
  CHECK(uploaded({{"RENAME", {Fault::after}}}) == "first second third");
  CHECK(uploaded({{"RENAME", {Fault::before, Fault::after}}}) == "first second third");
  const std::vector<Fault> always(50, Fault::before);
  CHECK_THAT(uploaded({{"RENAME", always}}), Catch::Contains("cannot name 'webhdfs://"));
}

TEST_CASE("errors of a NameNode that pass are asked for again, and are no damage") {
  struct Case {
    std::string exception;
    bool passes;
  };
  for (const auto& [exception, passes] :
       {Case{"StandbyException", true}, Case{"RetriableException", true},
        Case{"SafeModeException", true}, Case{"AccessControlException", false}}) {
    const ScriptedServer server([name = exception](std::size_t, const auto&) {
      return ScriptedServer::answer(
          403, base::format(R"({{"RemoteException":{{"exception":"{}","message":"no"}}}})", name));
    });
    store::WebHdfsStore store("http://", server.url().substr(7), base::Environment(),
                              std::chrono::milliseconds(200));
    std::array<std::byte, 4> bytes{};
    INFO(exception);
    try {
      store.read("name", bytes, 0);
      FAIL("nothing was thrown");
    } catch (const store::StoreError& failed) {
      CHECK(failed.may_pass() == passes);
      CHECK((server.requests().size() > 1) == passes);
      const std::string text = failed.what();
      CHECK((text.find("check HADOOP_USER_NAME") == std::string::npos) == passes);
    }
  }
}

TEST_CASE("an upload that is abandoned wakes the writes that wait for a part") {
  Files files;
  const ScriptedServer server(
      [&](std::size_t, const ScriptedServer::Request& request) { return files.answer(request); });
  files.url = server.url();
  store::WebHdfsStore store("http://", server.url().substr(7), base::Environment(),
                            std::chrono::milliseconds(500));
  const auto upload = store.upload("name");
  std::vector<std::string> said(3);
  {
    std::vector<std::jthread> threads;
    for (std::size_t part = 1; part <= said.size(); ++part) {
      threads.emplace_back([&, part] {
        try {
          upload->write(part, bytes_of("part"));
        } catch (const store::StoreError& failed) {
          said[part - 1] = failed.what();
        }
      });
    }
    upload->abandon();
  }
  for (const auto& text : said) CHECK_THAT(text, Catch::Contains("is given up"));
  CHECK_THROWS_AS(upload->write(0, bytes_of("part")), store::StoreError);
}
