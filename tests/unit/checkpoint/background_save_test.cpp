// SPDX-License-Identifier: Apache-2.0
#include "trireme/checkpoint/background_save.hpp"

#include "trireme/base/error.hpp"
#include "trireme/comm/peer_error.hpp"

#include "unit/checkpoint/storage/faulty_file_system.hpp"
#include "unit/checkpoint/support.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <thread>

using namespace trireme;
using namespace trireme::tests;
using namespace std::chrono_literals;
using checkpoint::BackgroundSave;

namespace {

const layout::Shape shape{600, 500};
constexpr std::int64_t half_elements = 300 * 500;

/// State of one of two ranks that trains on while a copy of it is written.
struct Half {
  explicit Half(int rank)
      : live("w", shape, device::DType::f32, {{300 * rank, 0}, {300, 500}}),
        copy("w", shape, device::DType::f32, live.box) {}

  checkpoint::SaveRequest request(const std::filesystem::path& folder, std::int64_t step) const {
    const auto box = [](int rank) { return layout::Box{{300 * rank, 0}, {300, 500}}; };
    return {folder,
            step,
            0,
            "test",
            {},
            contents_of({{"w", shape, device::DType::f32, box(0), 0},
                         {"w", shape, device::DType::f32, box(1), 1}}),
            {copy.data}};
  }
  void set(float value) const { std::fill_n(live.data.f32(), half_elements, value); }
  /// Takes its time, so that who does not wait for it sees a mixture.
  void copy_slowly() const {
    for (std::int64_t row = 0; row < 300; ++row) {
      std::copy_n(live.data.f32() + 500 * row, 500, copy.data.f32() + 500 * row);
      if (row % 30 == 0) std::this_thread::sleep_for(1ms);
    }
  }

  Held live;
  Held copy;
};

/// A disk that takes no byte until it is told to go on.
class StandingFileSystem : public checkpoint::FileSystem {
 public:
  ssize_t write(int descriptor, std::span<const std::byte> bytes, std::uint64_t offset) override {
    goes_on_.wait(false);
    return FileSystem::write(descriptor, bytes, offset);
  }
  void go_on() {
    goes_on_ = true;
    goes_on_.notify_all();
  }

 private:
  std::atomic<bool> goes_on_{false};
};

/// Storage that gives no name until it is told to go on.
class NamelessFileSystem : public checkpoint::FileSystem {
 public:
  int rename(const std::filesystem::path& from, const std::filesystem::path& to) override {
    goes_on_.wait(false);
    const int result = FileSystem::rename(from, to);
    ++renamed;
    renamed.notify_all();
    return result;
  }
  void go_on() {
    goes_on_ = true;
    goes_on_.notify_all();
  }
  std::atomic<int> renamed{0};

 private:
  std::atomic<bool> goes_on_{false};
};

/// Storage whose every call takes a while.
class SlowFileSystem : public checkpoint::FileSystem {
 public:
  static constexpr auto call_time = 400ms;
  ssize_t write(int descriptor, std::span<const std::byte> bytes, std::uint64_t offset) override {
    std::this_thread::sleep_for(call_time);
    return FileSystem::write(descriptor, bytes, offset);
  }
  int sync(int descriptor) override {
    std::this_thread::sleep_for(call_time);
    return FileSystem::sync(descriptor);
  }
  int close(int descriptor) override {
    std::this_thread::sleep_for(call_time);
    return FileSystem::close(descriptor);
  }
  int allocate(int descriptor, std::uint64_t bytes) override {
    std::this_thread::sleep_for(call_time);
    return FileSystem::allocate(descriptor, bytes);
  }
};

checkpoint::SaveReport finish(BackgroundSave& save, comm::ProcessGroup& world) {
  for (;;) {
    if (const auto report = save.poll(world)) return *report;
  }
}

/// The one value of all elements of the newest step that loads, and its step.
std::pair<std::int64_t, float> newest(const std::filesystem::path& folder) {
  std::pair<std::int64_t, float> found;
  run_ranks(1, [&](comm::ProcessGroup& world) {
    const Held all("w", shape, device::DType::f32, layout::whole(shape));
    const auto choose = [&](const checkpoint::Manifest&) { return std::vector{all.wanted()}; };
    const auto report = checkpoint::load_newest(folder, choose, world);
    REQUIRE(report.has_value());
    const auto value = all.data.f32()[0];
    REQUIRE(std::all_of(all.data.f32(), all.data.f32() + 2 * half_elements,
                        [value](float each) { return each == value; }));
    found = {report->step, value};
  });
  return found;
}

}  // namespace

TEST_CASE("what a thread writes is the state at the save's start, while the state goes on") {
  const ScratchFolder scratch;
  run_ranks(2, [&](comm::ProcessGroup& world) {
    const Half half(world.rank());
    half.set(1.0F);
    BackgroundSave save(
        half.request(scratch.path(), 1), [&] { half.copy_slowly(); }, world);
    save.await_copy(world);
    half.set(2.0F);
    finish(save, world);
    half.set(3.0F);
  });
  CHECK(newest(scratch.path()) == std::pair<std::int64_t, float>(1, 1.0F));
}

TEST_CASE("a disk that stands still holds up neither the copy nor what changes after it") {
  const ScratchFolder scratch;
  StandingFileSystem files;
  std::atomic<int> went_on{0};
  run_ranks(2, [&](comm::ProcessGroup& world) {
    const Half half(world.rank());
    half.set(1.0F);
    BackgroundSave save(half.request(scratch.path(), 1), [&] { half.copy_slowly(); }, world,
                        {.files = files});
    save.await_copy(world);
    half.set(2.0F);
    if (save.is_busy()) ++went_on;
    world.barrier();
    if (world.rank() == 0) files.go_on();
    finish(save, world);
  });
  CHECK(went_on == 2);
  CHECK(newest(scratch.path()) == std::pair<std::int64_t, float>(1, 1.0F));
}

TEST_CASE("a rank whose storage does not answer is named as still writing, on all ranks") {
  const ScratchFolder scratch;
  StandingFileSystem standing;
  std::array<std::string, 2> texts;
  run_ranks(2, [&](comm::ProcessGroup& world) {
    const Half half(world.rank());
    auto& files = world.rank() == 1 ? standing : checkpoint::FileSystem::system();
    BackgroundSave save(half.request(scratch.path(), 7), {}, world,
                        {.files = files, .longest_standstill = 300ms});
    try {
      finish(save, world);
    } catch (const comm::PeerError& error) {
      if (error.absence().ranks == std::vector{base::Rank(1)}) texts.at(0) = error.what();
    } catch (const base::Error& error) {
      if (error.code() == base::ExitCode::checkpoint) texts.at(1) = error.what();
    }
    world.barrier();
    standing.go_on();
  });
  for (const auto& text : texts) {
    CHECK(text.find("rank 1 is still writing step 7") != std::string::npos);
  }
  CHECK(checkpoint::list(scratch.path()).empty());
}

TEST_CASE("a thread that was left behind asks nobody, and commits nothing") {
  // They outlive the thread, which nobody can wait for.
  static NamelessFileSystem standing;
  static std::atomic<int> asked{0};
  const ScratchFolder scratch;
  run_ranks(1, [&](comm::ProcessGroup& world) {
    const Half half(0);
    auto request = half.request(scratch.path(), 7);
    request.contents =
        contents_of({{"w", {half_elements}, device::DType::f32, {{0}, {half_elements}}, 0}});
    BackgroundSave save(
        std::move(request), {}, world,
        {.files = standing, .before_commit = [] { ++asked; }, .longest_standstill = 300ms});
    CHECK_THROWS_AS(finish(save, world), base::Error);
  });
  standing.go_on();
  standing.renamed.wait(0);
  // A commit would have asked, and given the step its name, by now.
  std::this_thread::sleep_for(200ms);
  CHECK(asked == 0);
  CHECK(checkpoint::list(scratch.path()).empty());
}

TEST_CASE("slow storage is waited for as long as it moves") {
  const ScratchFolder scratch;
  SlowFileSystem slow;
  // Allocation, two writes, sync and close of one file alone take longer than the limit.
  const auto limit = 3 * SlowFileSystem::call_time;
  run_ranks(2, [&](comm::ProcessGroup& world) {
    const Half half(world.rank());
    half.set(1.0F);
    auto& files = world.rank() == 1 ? slow : checkpoint::FileSystem::system();
    BackgroundSave save(half.request(scratch.path(), 1), [&] { half.copy_slowly(); }, world,
                        {.files = files, .longest_standstill = limit});
    finish(save, world);
  });
  CHECK(newest(scratch.path()) == std::pair<std::int64_t, float>(1, 1.0F));
}

TEST_CASE("a step counts when its save is committed, not when its files are written") {
  const ScratchFolder scratch;
  run_ranks(2, [&](comm::ProcessGroup& world) {
    const Half half(world.rank());
    BackgroundSave save(half.request(scratch.path(), 1), {}, world);
    while (save.is_busy()) std::this_thread::sleep_for(1ms);
    world.barrier();
    if (!checkpoint::list(scratch.path()).empty()) throw std::logic_error("listed before commit");
    if (save.poll(world)) throw std::logic_error("committed before all files were known");
    finish(save, world);
  });
  CHECK(checkpoint::newest_verified(scratch.path())->step == 1);
}

TEST_CASE("one rank's failure in the background fails the save on all and keeps the older step") {
  const ScratchFolder scratch;
  const std::string call = GENERATE("open", "write", "sync");
  std::atomic<int> failures{0};
  run_ranks(2, [&](comm::ProcessGroup& world) {
    const Half half(world.rank());
    half.set(1.0F);
    BackgroundSave first(
        half.request(scratch.path(), 1), [&] { half.copy_slowly(); }, world);
    finish(first, world);
    auto faulty = FaultyFileSystem::first(call, EIO);
    auto& files = world.rank() == 1 ? faulty : checkpoint::FileSystem::system();
    BackgroundSave second(half.request(scratch.path(), 2), {}, world, {.files = files});
    try {
      finish(second, world);
    } catch (const base::Error& error) {
      const std::string text = error.what();
      if (error.code() == base::ExitCode::checkpoint && text.starts_with("rank 1")) ++failures;
    }
  });
  CHECK(failures == 2);
  CHECK(newest(scratch.path()) == std::pair<std::int64_t, float>(1, 1.0F));
  CHECK(std::distance(std::filesystem::directory_iterator(scratch.path()), {}) == 2);
}

TEST_CASE("what is refused before its commit fails on all ranks with the refusal's code") {
  const ScratchFolder scratch;
  std::atomic<int> refusals{0};
  run_ranks(2, [&](comm::ProcessGroup& world) {
    const Half half(world.rank());
    const auto refuse = [] { throw base::Error(base::ExitCode::launch, "the lock is lost"); };
    BackgroundSave save(half.request(scratch.path(), 1), {}, world, {.before_commit = refuse});
    try {
      finish(save, world);
    } catch (const base::Error& error) {
      const std::string text = error.what();
      if (error.code() == base::ExitCode::launch && text.ends_with("the lock is lost")) ++refusals;
    }
  });
  CHECK(refusals == 2);
  CHECK(std::filesystem::is_empty(scratch.path()));
}

TEST_CASE("a save that is given up commits nothing, and its folder is garbage") {
  const ScratchFolder scratch;
  run_ranks(2, [&](comm::ProcessGroup& world) {
    const Half half(world.rank());
    const BackgroundSave save(half.request(scratch.path(), 1), {}, world);
  });
  CHECK(checkpoint::list(scratch.path()).empty());
  CHECK(checkpoint::collect_garbage(scratch.path(), 0s).size() == 1);
}
