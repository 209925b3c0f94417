// SPDX-License-Identifier: Apache-2.0
#include "trireme/track/live.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/tcp.hpp"
#include "trireme/record/run_lock.hpp"

#include "support/temporary_folder.hpp"
#include "track/sinks/server.hpp"
#include "unit/web/scripted_server.hpp"

#include <catch2/catch.hpp>

#include <chrono>
#include <fstream>
#include <functional>
#include <future>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace trireme::track {
namespace {

using tests::ScriptedServer;

/// The system takes its connections; nobody answers.
class SilentServer {
 public:
  SilentServer() {
    base::tcp::SocketAddress address{};
    address.v4.sin_family = AF_INET;
    address.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    listener_ = base::value_or_throw(base::tcp::listen_at(address));
    url_ = base::format("http://{}", base::tcp::text_of(address));
  }
  const std::string& url() const { return url_; }

 private:
  base::File listener_;
  std::string url_;
};

std::string line_of(int step) {
  return base::format(
      R"({{"kind":"train","time":"2026-01-01T00:00:0{0}.000Z","run":"a","step":{0},"loss":2.5}})"
      "\n",
      step);
}

/// A run of three steps that has ended.
void make_run(const std::filesystem::path& run) {
  std::string text = R"({"kind":"event","time":"2026-01-01T00:00:00.000Z","run":"a",)"
                     R"("event":"start","step":1})"
                     "\n";
  for (int step = 1; step <= 3; ++step) text += line_of(step);
  base::write_file_durably(run / "metrics.jsonl", text);
}

std::string failure_of(const std::filesystem::path& run, const Target& target,
                       Sync::Options options) {
  auto sync = base::value_or_throw(Sync::open(run, target, std::move(options)));
  try {
    sync.send(Send::all);
  } catch (const base::Error& error) {
    return error.what();
  }
  return {};
}

/// Answers as an MLflow server that knows no run.
std::string mlflow_answer(const ScriptedServer::Request& request) {
  const bool asks_place = request.head.find("artifact_uri") != std::string::npos ||
                          request.head.find("runs/get?") != std::string::npos;
  return ScriptedServer::answer(200, asks_place
                                         ? R"({"run":{"info":{"artifact_uri":"file:/x"}}})"
                                         : R"({"experiment":{"experiment_id":"1"},"runs":[],)"
                                           R"("run":{"info":{"run_id":"r1"}}})");
}

std::size_t count_of(const ScriptedServer& server, std::string_view in_head,
                     std::string_view in_body = {}) {
  std::size_t count = 0;
  for (const auto& request : server.requests()) {
    if (request.head.find(in_head) != std::string::npos &&
        request.body.find(in_body) != std::string::npos) {
      ++count;
    }
  }
  return count;
}

void wait_until(const std::function<bool()>& holds) {
  for (int tries = 0; tries < 12'000 && !holds(); ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  REQUIRE(holds());
}

}  // namespace

TEST_CASE("all requests end with one deadline, however many a tracker needs") {
  const tests::TemporaryFolder folder;
  make_run(folder.path());
  // Each answer comes in time for the patience of its request.
  const ScriptedServer slow([](std::size_t, const auto& request) {
    std::this_thread::sleep_for(std::chrono::milliseconds(400));
    return mlflow_answer(request);
  });
  {
    Live live(
        folder.path(), {{Kind::mlflow, slow.url()}},
        {.interval = std::chrono::hours(1), .last_patience = std::chrono::milliseconds(1000)});
    live.finish();
  }
  CHECK(slow.requests().size() <= 3);
  CHECK(count_of(slow, "runs/update") == 0);
}

TEST_CASE("behind the deadline nothing is asked") {
  const tests::TemporaryFolder folder;
  make_run(folder.path());
  const ScriptedServer server(
      [](std::size_t, const auto& request) { return mlflow_answer(request); });
  const Deadline passed(Deadline::Clock::now());
  const auto text = failure_of(folder.path(), {Kind::mlflow, server.url()}, {.deadline = &passed});
  CHECK(text.find("no time left") != std::string::npos);
  CHECK(server.requests().empty());
}

TEST_CASE("files that a silent tracker does not take end with patience and deadline") {
  const tests::TemporaryFolder folder;
  base::write_file_durably(folder.path() / "file", std::string(1000, 'x'));
  const SilentServer silent;
  Server short_patience(silent.url(), {}, {.patience = std::chrono::milliseconds(200)});
  CHECK_THROWS_WITH(short_patience.put("/x", "bytes"), Catch::Contains("timed out"));
  const Deadline deadline(Deadline::Clock::now() + std::chrono::milliseconds(200));
  Server limited(silent.url(), {}, {.deadline = &deadline});
  CHECK_THROWS_WITH(limited.put_file("/x", folder.path() / "file"), Catch::Contains("timed out"));
}

TEST_CASE("a tracker that asks to be left alone for long is not asked again before") {
  const tests::TemporaryFolder folder;
  make_run(folder.path());
  const ScriptedServer busy([](std::size_t, const auto&) {
    return ScriptedServer::answer(429, "slow down", "Retry-After: 3600\r\n");
  });
  const ScriptedServer willing(
      [](std::size_t, const auto&) { return ScriptedServer::answer(200, "{}"); });
  {
    Live live(folder.path(), {{Kind::otlp, busy.url()}, {Kind::otlp, willing.url()}},
              {.interval = std::chrono::milliseconds(5),
               .last_patience = std::chrono::milliseconds(100)});
    for (int step = 4; step <= 7; ++step) {
      const auto before = willing.requests().size();
      std::ofstream(folder.path() / "metrics.jsonl", std::ios::app) << line_of(step);
      wait_until([&] { return willing.requests().size() > before; });
    }
    live.finish();
  }
  CHECK(busy.requests().size() == 1);
}

TEST_CASE("a tracker that asks for a moment gets it within the patience") {
  const tests::TemporaryFolder folder;
  make_run(folder.path());
  const ScriptedServer server([](std::size_t index, const auto&) {
    return index == 0 ? ScriptedServer::answer(503, "", "Retry-After: 0\r\n")
                      : ScriptedServer::answer(200, "{}");
  });
  CHECK(failure_of(folder.path(), {Kind::otlp, server.url()}, {}).empty());
  CHECK(server.requests().size() >= 2);
}

TEST_CASE("a run that goes on after its end is RUNNING in MLflow again") {
  const tests::TemporaryFolder folder;
  make_run(folder.path());
  const ScriptedServer server(
      [](std::size_t, const auto& request) { return mlflow_answer(request); });
  const Target target{Kind::mlflow, server.url()};
  const auto send = [&](Send what) {
    base::value_or_throw(Sync::open(folder.path(), target, {})).send(what);
  };
  send(Send::all);
  CHECK(count_of(server, "runs/update", "RUNNING") == 0);
  REQUIRE(count_of(server, "runs/update", "KILLED") == 1);
  const auto lock = base::value_or_throw(record::RunLock::take(folder.path(), ""));
  // Nothing is to be sent yet.
  send(Send::settled);
  CHECK(count_of(server, "runs/update", "RUNNING") == 1);
  send(Send::settled);
  CHECK(count_of(server, "runs/update", "RUNNING") == 1);
}

TEST_CASE("a copied run is one of its own to trackers, a moved one goes on") {
  const tests::TemporaryFolder folder;
  const auto original = folder.path() / "a";
  std::filesystem::create_directories(original);
  make_run(original);
  const Target target{Kind::tensorboard, (folder.path() / "board").string()};
  const auto rows = [&](const std::filesystem::path& run) {
    return base::value_or_throw(Sync::open(run, target, {})).send(Send::all).rows;
  };
  const auto files = [&] {
    std::size_t count = 0;
    for (const auto& each : std::filesystem::recursive_directory_iterator(target.place)) {
      count += each.is_regular_file() ? 1 : 0;
    }
    return count;
  };
  CHECK(rows(original) == 3);
  const auto moved = folder.path() / "b";
  std::filesystem::rename(original, moved);
  std::ofstream(moved / "metrics.jsonl", std::ios::app) << line_of(4);
  CHECK(rows(moved) == 1);
  CHECK(files() == 1);
  const auto copy = folder.path() / "c";
  std::filesystem::copy(moved, copy, std::filesystem::copy_options::recursive);
  CHECK(rows(copy) == 4);
  CHECK(files() == 2);
  CHECK(rows(moved) == 0);
  CHECK(rows(copy) == 0);
  // Begun anew in the same folder.
  std::filesystem::remove(copy / "metrics.jsonl");
  base::write_file_durably(
      copy / "metrics.jsonl",
      R"({"kind":"train","time":"2026-02-01T00:00:00.000Z","run":"a","step":1,"loss":2})"
      "\n");
  CHECK(rows(copy) == 1);
}

TEST_CASE("a place and a run whose names are not UTF-8 are known again") {
  const tests::TemporaryFolder folder;
  const auto original = folder.path() / "r\xe9";
  std::filesystem::create_directories(original);
  make_run(original);
  const auto rows = [&](const std::filesystem::path& run, Kind kind, const char* place) {
    const Target target{kind, (folder.path() / place).string()};
    return base::value_or_throw(Sync::open(run, target, {})).send(Send::all).rows;
  };
  for (const auto kind : {Kind::tensorboard, Kind::wandb, Kind::prometheus}) {
    CAPTURE(name(kind));
    const auto* const place = kind == Kind::prometheus ? "w\xe9.prom" : "w\xe9";
    CHECK(rows(original, kind, place) == 3);
    CHECK(rows(original, kind, place) == 0);
  }
  const auto copy = folder.path() / "c";
  std::filesystem::copy(original, copy, std::filesystem::copy_options::recursive);
  CHECK(rows(copy, Kind::tensorboard, "w\xe9") == 3);
}

TEST_CASE("a tracker that accepts and is silent is given up when the patience ends") {
  const tests::TemporaryFolder folder;
  make_run(folder.path());
  const SilentServer silent;
  for (const auto kind : {Kind::otlp, Kind::mlflow}) {
    const auto text = failure_of(folder.path(), {kind, silent.url()},
                                 {.patience = std::chrono::milliseconds(200)});
    CHECK(text.find("does not take the run") != std::string::npos);
    // Not the half minute after which any connection without a byte is given up.
    CHECK(text.find("timed out") != std::string::npos);
  }
}

TEST_CASE("trackers that are silent take no other's time when a run ends") {
  const tests::TemporaryFolder folder;
  make_run(folder.path());
  std::promise<void> asked;
  std::once_flag once;
  const auto last_was_asked = asked.get_future().share();
  // They answer when the last one was asked, which in turn would be too late.
  const auto late = [&](std::size_t, const auto&) {
    last_was_asked.wait_for(std::chrono::seconds(120));
    return ScriptedServer::answer(200, "{}");
  };
  const ScriptedServer first(late);
  const ScriptedServer second(late);
  const ScriptedServer last([&](std::size_t, const auto&) {
    std::call_once(once, [&] { asked.set_value(); });
    return ScriptedServer::answer(200, "{}");
  });
  std::vector<Target> targets;
  for (const auto* each : {&first, &second, &last}) targets.push_back({Kind::otlp, each->url()});
  {
    Live live(folder.path(), targets,
              {.interval = std::chrono::hours(1), .last_patience = std::chrono::seconds(60)});
    live.finish();
  }
  for (const auto& target : targets) {
    auto sync = base::value_or_throw(Sync::open(folder.path(), target, {}));
    CHECK(sync.send(Send::all).rows == 0);
  }
}

}  // namespace trireme::track
