// SPDX-License-Identifier: Apache-2.0
#include "trireme/track/live.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/tcp.hpp"

#include "support/temporary_folder.hpp"
#include "unit/store/scripted_server.hpp"

#include <catch2/catch.hpp>

#include <chrono>
#include <future>
#include <mutex>
#include <string>
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

}  // namespace

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
