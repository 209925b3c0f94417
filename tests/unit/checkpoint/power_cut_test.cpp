// SPDX-License-Identifier: Apache-2.0
// Every state in which a power cut may leave a save, and what is loaded from it.
#include "trireme/checkpoint/retention.hpp"

#include "unit/checkpoint/one_value.hpp"
#include "unit/checkpoint/storage/recorded_storage.hpp"

#include <catch2/catch.hpp>

#include <set>

using namespace trireme;
using namespace trireme::tests;

namespace {

/// A deed to a folder that has steps 1 (of value 1) and 2 (of value 2).
struct Scenario {
  const char* name;
  void (*act)(const std::filesystem::path& steps, RecordedStorage& storage);
  /// Steps that may be loaded before the commit is durable, and after it.
  std::set<std::int64_t> before;
  std::set<std::int64_t> after;
  std::size_t states;
};

void save_third(const std::filesystem::path& steps, RecordedStorage& storage) {
  save_value(steps, 3, 3.0F, storage);
}
void save_second_again(const std::filesystem::path& steps, RecordedStorage& storage) {
  save_value(steps, 2, 2.0F, storage);
}
void save_without_exchange(const std::filesystem::path& steps, RecordedStorage& storage) {
  storage.forbid_exchange();
  save_value(steps, 2, 2.0F, storage);
}
void save_on_lying_disk(const std::filesystem::path& steps, RecordedStorage& storage) {
  storage.lose_file_syncs();
  save_value(steps, 3, 3.0F, storage);
}
void save_and_prune(const std::filesystem::path& steps, RecordedStorage& storage) {
  save_value(steps, 3, 3.0F, storage);
  checkpoint::prune(steps, {.keep_last = 1}, 3, storage);
}

const Scenario scenarios[] = {
    {"a new step", save_third, {2, 3}, {3}, 385},
    {"the same step again", save_second_again, {2}, {2}, 480},
    {"the same step again, without exchange of names", save_without_exchange, {2}, {2}, 475},
    {"a new step, older ones removed", save_and_prune, {2, 3}, {3}, 635},
    // The loss of what was reported as synced is found by the checksums.
    {"a new step on a disk that loses synced files", save_on_lying_disk, {2, 3}, {2, 3}, 1170},
};

}  // namespace

TEST_CASE("whatever a power cut keeps of a save, its step or the one before it is loaded") {
  const auto& scenario = GENERATE(from_range(std::begin(scenarios), std::end(scenarios)));
  const ScratchFolder scratch;
  const auto steps = scratch.path() / "steps";
  save_value(steps, 1, 1.0F, checkpoint::FileSystem::system());
  save_value(steps, 2, 2.0F, checkpoint::FileSystem::system());
  RecordedStorage storage(steps, scratch.path() / "memory");
  scenario.act(steps, storage);
  const auto states = storage.states(32, 20261123);
  INFO(scenario.name << ": " << storage.changes() << " changes, " << states.size() << " states");
  CHECK(states.size() >= scenario.states);
  const auto folder = scratch.path() / "state";
  for (const auto& state : states) {
    storage.build(state, folder);
    INFO(state.text);
    const auto& allowed = state.root_syncs > 0 ? scenario.after : scenario.before;
    const auto found = load_value(folder);
    CHECK(allowed.contains(found.step));
    CHECK(found.value == static_cast<float>(found.step));
    checkpoint::collect_garbage(folder, std::chrono::seconds{0});
    CHECK(temporary_folders(folder) == 0);
    CHECK(load_value(folder).step == found.step);
    std::filesystem::remove_all(folder);
  }
}
