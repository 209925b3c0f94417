// SPDX-License-Identifier: Apache-2.0
// Commits to an object store that answers as few real ones do; a real one: tests/store.
#include "checkpoint/save/commit.hpp"

#include "trireme/base/error.hpp"
#include "trireme/checkpoint/manifest.hpp"
#include "trireme/store/object_store.hpp"

#include "unit/web/scripted_server.hpp"

#include <catch2/catch.hpp>

using namespace trireme;
using tests::ScriptedServer;

namespace {

std::string manifest_of_step_5() {
  checkpoint::Manifest manifest;
  manifest.step = 5;
  manifest.tool_version = "trireme";
  manifest.files = {{"shard-00000.h5", 8192, std::string(64, 'a')}};
  manifest.contents.buckets = {{device::DType::f32, {0, 1}, 16, 1024}};
  manifest.contents.tensors = {{"a", device::DType::f32, {16}, {{{{0}, {16}}, 0, 0}}}};
  return checkpoint::manifest_text(manifest);
}

/// Store that has an object already, and refuses to write it.
ScriptedServer::Answer has(const std::string& text) {
  return [text](std::size_t, const ScriptedServer::Request& request) {
    if (request.head.starts_with("PUT")) return ScriptedServer::answer(412, "");
    auto answer = ScriptedServer::answer(200, text);
    if (request.head.starts_with("HEAD")) answer.resize(answer.size() - text.size());
    return answer;
  };
}

std::string commit_to(const ScriptedServer& server, checkpoint::Place& place) {
  store::use_environment(base::Environment({{"AWS_ENDPOINT_URL_S3", server.url()},
                                            {"AWS_ACCESS_KEY_ID", "id"},
                                            {"AWS_SECRET_ACCESS_KEY", "hidden"}}));
  auto& files = checkpoint::FileSystem::system();
  try {
    checkpoint::commit(files, place, 5, manifest_of_step_5(), nullptr);
  } catch (const base::Error& refused) {
    checkpoint::remove_place(files, place);
    return refused.what();
  }
  return {};
}

}  // namespace

TEST_CASE("a commit to an object store whose answer was lost is known as one's own") {
  const auto own = has(manifest_of_step_5());
  const ScriptedServer server([&](std::size_t index, const auto& request) {
    return index == 0 ? ScriptedServer::answer(500, "") : own(index, request);
  });
  checkpoint::Place place{"s3://lost-answer/steps/step-000000005"};
  CHECK(commit_to(server, place) == "");
  CHECK(server.requests().size() == 4);
}

TEST_CASE("a step that another save has committed to an object store stays") {
  const ScriptedServer server(has("{}"));
  checkpoint::Place place{"s3://of-another/steps/step-000000005"};
  CHECK_THAT(commit_to(server, place), Catch::Contains("was committed by another save meanwhile"));
  for (const auto& request : server.requests()) {
    CHECK_FALSE(request.head.starts_with("DELETE"));
    CHECK_FALSE(request.head.starts_with("POST"));
  }
}
