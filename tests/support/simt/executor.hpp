// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/simt/fiber.hpp"
#include "support/simt/memory.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace trireme::device::simt {

/// Where threads wait for each other.
enum class Meeting { none, block_sync, block_any, warp_sync, shuffle, ballot };
const char* name(Meeting meeting);

/// Runs kernels on the CPU as a GPU could: blocks one after another, the threads of a block as
/// fibers that switch where they meet, in an order that the seed shuffles. Whatever no GPU
/// promises ends in a Fault.
class Executor {
 public:
  static constexpr int lanes = 32;
  static constexpr int most_threads = 1024;

  explicit Executor(std::uint64_t seed);

  /// The one whose launch is under way.
  static Executor& here();

  /// Memory of the operation under way.
  AddressSpace& memory() { return *memory_; }
  void use(AddressSpace& memory);

  /// body() is one thread's run of the kernel.
  void launch(const std::string& kernel, std::int64_t blocks, int threads,
              const std::function<void()>& body);

  // Functions that the vocabulary calls, on a thread of a kernel.

  int thread() const { return actor_.thread; }
  int threads() const { return threads_; }
  std::int64_t block() const { return actor_.block; }
  std::int64_t blocks() const { return blocks_; }
  const Actor& actor() const { return actor_; }

  using Words = std::array<std::uint64_t, lanes>;
  /// Waits for all lanes of the warp; what each of them brought.
  const Words& meet_warp(Meeting meeting, std::uint64_t word, const Place& where);
  /// Waits for all threads of the block; whether any of them brought true.
  bool meet_block(Meeting meeting, bool condition, const Place& where);

  [[noreturn]] void fail(const Place& where, const std::string& what) const;
  [[noreturn]] void fail_race(const Place& where, Access access, const Conflict& earlier,
                              const std::string& what) const;

 private:
  struct Thread {
    Fiber fiber;
    Meeting waits_for = Meeting::none;
    Place where;
    std::uint64_t word = 0;
    bool ended = false;
  };
  struct Warp {
    Words words{};
    std::uint32_t epoch = 0;
  };

  void run_block(std::int64_t block);
  /// Until every lane has ended or waits for the block.
  void run_warp(int warp);
  void run_thread(int index);
  /// Lets the lanes go on if they met; false if none waits for its warp.
  bool release_warp(int warp);
  /// Lets the threads go on if they met; false if all have ended.
  bool release_block();
  [[noreturn]] void fail_meeting(const Thread& one, const Thread& other, const char* whole) const;
  static bool same_meeting(const Thread& one, const Thread& other);
  int index_of(const Thread& thread) const;
  static void thread_main(void* executor);

  AddressSpace* memory_ = nullptr;
  std::mt19937_64 random_;
  std::uint64_t seed_;
  std::vector<std::unique_ptr<Thread>> pool_;
  std::vector<Warp> warps_;
  const std::function<void()>* body_ = nullptr;
  std::string kernel_;
  std::int64_t blocks_ = 0;
  int threads_ = 0;
  bool any_ = false;
  Actor actor_;
  std::unique_ptr<Fault> fault_;
};

}  // namespace trireme::device::simt
