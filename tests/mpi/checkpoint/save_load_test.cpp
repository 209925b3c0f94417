// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/error.hpp"
#include "trireme/comm/agree.hpp"
#include "trireme/comm/peer_error.hpp"

#include "support/mpi/world.hpp"
#include "unit/checkpoint/storage/faulty_file_system.hpp"
#include "unit/checkpoint/toy_model.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

using namespace trireme;
using namespace trireme::tests;

namespace {

std::unique_ptr<comm::ProcessGroup> world() {
  return testing::mpi().make_world({comm::Backend::automatic, 30});
}

/// One folder for all ranks: rank 0's choice, removed by rank 0 at the end.
class SharedFolder {
 public:
  explicit SharedFolder(comm::ProcessGroup& group) : group_(group) {
    std::vector<std::int32_t> letters(256, 0);
    if (group.rank() == 0) {
      scratch_.emplace();
      const auto text = scratch_->path().string();
      std::copy(text.begin(), text.end(), letters.begin());
    }
    group.broadcast({letters.data(), device::DType::i32, {256}}, 0);
    for (const auto letter : letters) {
      if (letter != 0) path_ += static_cast<char>(letter);
    }
  }
  ~SharedFolder() { group_.barrier(); }
  SharedFolder(const SharedFolder&) = delete;
  SharedFolder& operator=(const SharedFolder&) = delete;
  std::filesystem::path path() const { return path_; }

 private:
  comm::ProcessGroup& group_;
  std::optional<ScratchFolder> scratch_;
  std::string path_;
};

/// Two arrangements that use all ranks, never the same one twice.
std::pair<Arrangement, Arrangement> arrangements_of(int ranks) {
  switch (ranks) {
    case 1:
      return {{1, 1, 1, 0}, {1, 1, 1, 1}};
    case 2:
      return {{1, 2, 1, 1}, {2, 1, 1, 0}};
    case 4:
      return {{2, 1, 2, 0}, {1, 4, 1, 1}};
    default:
      return {{1, 3, 2, 1}, {2, 3, 1, 0}};
  }
}

/// Storage that takes long to have bytes.
class SlowSync : public checkpoint::FileSystem {
 public:
  int sync(int descriptor) override {
    if (!was_slow_.exchange(true)) std::this_thread::sleep_for(std::chrono::seconds(5));
    return FileSystem::sync(descriptor);
  }

 private:
  std::atomic<bool> was_slow_{false};
};

}  // namespace

TEST_CASE("ranks whose peers are gone do not wait for them to agree") {
  const auto group = testing::mpi().make_world({comm::Backend::automatic, 1});
  const auto meeting = world();
  if (group->rank() == 0) {
    const auto lose = [] { throw comm::PeerError("rank 1 died", {}); };
    try {
      comm::agree_after(*group, lose);
      FAIL("the loss of a peer was swallowed");
    } catch (const comm::PeerError& error) {
      CHECK(error.what() == std::string("rank 1 died"));
    }
  }
  meeting->barrier();
}

TEST_CASE("a rank that writes for longer than comm.timeout does not cost the save") {
  const auto patient = world();
  const SharedFolder folder(*patient);
  const auto group = testing::mpi().make_world({comm::Backend::automatic, 2});
  SlowSync slow;
  const bool is_slow = group->rank() == group->size() - 1;
  ToyState saved(arrangements_of(group->size()).first, group->rank());
  saved.fill();
  const auto report =
      checkpoint::save(saved.request(folder.path(), 1, 9, {}), *group,
                       {.files = is_slow ? slow : checkpoint::FileSystem::system()});
  CHECK(std::filesystem::exists(report.folder));
  patient->barrier();
}

TEST_CASE("real ranks save one layout and load another bit for bit") {
  const auto group = world();
  const SharedFolder folder(*group);
  const auto [first, second] = arrangements_of(group->size());
  std::int64_t step = 0;
  for (const auto& [from, to] : {std::pair(first, second), std::pair(second, first)}) {
    ToyState saved(from, group->rank());
    saved.fill();
    ++step;
    const auto report =
        checkpoint::save(saved.request(folder.path(), step, 9, {{"step", step}}), *group);
    ToyState loaded(to, group->rank());
    loaded.spoil();
    const auto choose = [&](const checkpoint::Manifest&) { return loaded.load_items(); };
    const auto found = checkpoint::load_newest(folder.path(), choose, *group);
    REQUIRE(found.has_value());
    CHECK(found->folder == report.folder);
    CHECK(found->state == base::Json{{"step", step}});
    CHECK(loaded.wrong_elements() == 0);
  }
}

TEST_CASE("one rank's failure fails the save on all, by its name, and the older step stays") {
  const auto group = world();
  const SharedFolder folder(*group);
  ToyState state(arrangements_of(group->size()).first, group->rank());
  state.fill();
  checkpoint::save(state.request(folder.path(), 1), *group);
  const int last = group->size() - 1;
  auto faulty = FaultyFileSystem::first("sync", EIO);
  auto& files = group->rank() == last ? faulty : checkpoint::FileSystem::system();
  std::string text;
  try {
    checkpoint::save(state.request(folder.path(), 2), *group, {0, files});
  } catch (const base::Error& error) {
    text = error.what();
    CHECK(error.code() == base::ExitCode::checkpoint);
  }
  CHECK_THAT(text, Catch::Contains("cannot sync"));
  if (group->size() > 1) CHECK_THAT(text, Catch::StartsWith("rank " + std::to_string(last)));
  group->barrier();
  CHECK(checkpoint::newest_verified(folder.path())->step == 1);
  CHECK(checkpoint::list(folder.path()).size() == 1);
}
