// SPDX-License-Identifier: Apache-2.0
// Samples on their way into micro-batches: which ranks read which, and what is read ahead.
#include "trireme/engine/batch_loader.hpp"

#include "trireme/base/error.hpp"
#include "trireme/engine/measure.hpp"

#include "support/forwarded_group.hpp"
#include "support/temporary_folder.hpp"
#include "unit/engine/stage_options.hpp"

#include <catch2/catch.hpp>
#include <pthread.h>

#include <algorithm>
#include <cstdint>
#include <future>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

using namespace trireme;

namespace {

constexpr std::int32_t vocabulary = 97;
constexpr int sample_count = 40;
/// Number of the sample that has an id outside of the vocabulary.
constexpr int bad_sample = 25;

/// Samples in order; sample s begins with token 8 s, modulo the vocabulary.
class Data {
 public:
  Data() : set_(std::make_shared<const data::TokenDataset>(open())) {}
  const data::TokenDataset& set() const { return *set_; }
  std::shared_ptr<const data::TokenDataset> shared() const { return set_; }

 private:
  data::TokenDataset open() {
    const auto prefix = folder_.path() / "tokens";
    auto writer = data::IndexedTokensWriter::create(prefix, data::TokenType::int32).value();
    std::vector<std::int32_t> tokens;
    for (int at = 0; at <= sample_count * 8; ++at) tokens.push_back(at % vocabulary);
    tokens[bad_sample * 8 + 3] = vocabulary;
    writer.append_document(tokens);
    writer.finish();
    data::DatasetOptions options;
    options.sequence_length = 8;
    options.shuffle = false;
    options.vocab_size = vocabulary;
    return data::TokenDataset::open({prefix.string()}, options, data::FileCheck::sizes).value();
  }

  tests::TemporaryFolder folder_;
  std::shared_ptr<const data::TokenDataset> set_;
};

/// A group whose collectives of hosts are counted.
class HostCounter final : public testing::ForwardedGroup {
 public:
  HostCounter(comm::ProcessGroup& inner, int& count) : ForwardedGroup(inner), host_(inner, count) {}
  ProcessGroup& host_group() override { return host_; }

 private:
  class Host final : public ForwardedGroup {
   public:
    Host(comm::ProcessGroup& inner, int& count) : ForwardedGroup(inner), count_(count) {}
    comm::Work start_all_reduce(const device::Tensor& x, comm::ReduceOp op) override {
      ++count_;
      return inner_.start_all_reduce(x, op);
    }
    comm::Work start_all_gather(const device::Tensor& part, const device::Tensor& whole,
                                const comm::Cuts& cuts) override {
      ++count_;
      return inner_.start_all_gather(part, whole, cuts);
    }

   private:
    int& count_;
  };
  Host host_;
};

enum class AllRanks { no, yes };

/// An engine of one stage; its neighbours are pretended, and have what it has.
class OneStage {
 public:
  OneStage(const layout::Mesh& mesh, int stage, AllRanks all_ranks = AllRanks::no)
      : options_(testing::options_of_stage(mesh, stage, 6)),
        groups_(
            comm::make_dry_run_groups(mesh, options_.sharding.rank, comm::DryRunData::mirrored)),
        data_(groups_.on(layout::Axis::data), host_collectives),
        all_(groups_.on(layout::Axis::data), host_collectives),
        memory_(engine::Memory::host(engine::measure(options_))),
        engine_(options_, views(all_ranks), *kernels_, memory_) {
    engine_.initialise();
  }

  int host_collectives = 0;

  engine::Engine& engine() { return engine_; }
  std::vector<std::int32_t> tokens() {
    return all([](engine::TokenBuffers& batch) { return batch.tokens; });
  }
  std::vector<std::int32_t> targets() {
    return all([](engine::TokenBuffers& batch) { return batch.targets; });
  }
  void forget() {
    for (int index = 0; index < options_.schedule.micro_batches; ++index) {
      auto& batch = engine_.batch(index);
      std::fill_n(batch.tokens.i32(), batch.tokens.element_count(), -5);
      std::fill_n(batch.targets.i32(), batch.targets.element_count(), -5);
    }
  }

 private:
  comm::AxisGroups views(AllRanks all_ranks) {
    auto views = groups_.views();
    views.set(layout::Axis::data, data_);
    if (all_ranks == AllRanks::yes) views.set_all_ranks(all_);
    return views;
  }
  template <typename Choose>
  std::vector<std::int32_t> all(const Choose& choose) {
    std::vector<std::int32_t> values;
    for (int index = 0; index < options_.schedule.micro_batches; ++index) {
      const auto part = choose(engine_.batch(index));
      values.insert(values.end(), part.i32(), part.i32() + part.element_count());
    }
    return values;
  }

  engine::EngineOptions options_;
  std::unique_ptr<device::Kernels> kernels_ = device::make_reference_kernels();
  comm::OwnedAxisGroups groups_;
  HostCounter data_;
  HostCounter all_;
  engine::Memory memory_;
  engine::Engine engine_;
};

/// Tokens of four samples from `first` on, each as long as a sequence, `by` places later.
std::vector<std::int32_t> tokens_from(int first, int by) {
  std::vector<std::int32_t> values;
  for (int at = 0; at < 4 * 8; ++at) values.push_back((first * 8 + at + by) % vocabulary);
  return values;
}

}  // namespace

TEST_CASE("the first stage reads tokens, the last one targets, and those between no sample") {
  const Data data;
  const std::vector<std::int32_t> untouched(32, -5);
  for (const int stages : {1, 2, 4}) {
    for (int stage = 0; stage < stages; ++stage) {
      INFO("stage " << stage << " of " << stages);
      OneStage one(layout::Mesh::of(stages, 2, 1), stage);
      one.forget();
      engine::BatchLoader loader(data.set(), one.engine());
      loader.fill(8);
      const bool first = stage == 0;
      const bool last = stage + 1 == stages;
      // The second of two data-parallel ranks.
      CHECK(one.tokens() == (first ? tokens_from(12, 0) : untouched));
      CHECK(one.targets() == (last ? tokens_from(12, 1) : untouched));
      CHECK(one.engine().batch(1).first_sequence == 13);
      if (first || last) {
        CHECK_THROWS_AS(loader.fill(20), base::Error);
      } else {
        loader.fill(20);
      }
    }
  }
}

TEST_CASE("targets beyond the end of a pass are left out, and their samples need not be there") {
  const Data data;
  OneStage one(layout::Mesh::of(1, 1, 1), 0);
  engine::BatchLoader loader(data.set(), one.engine(), engine::SampleOrder::whole_pass);
  loader.fill(sample_count - 2, sample_count);
  auto targets = tokens_from(sample_count - 2, 1);
  std::fill(targets.begin() + 16, targets.end(), -1);
  CHECK(one.targets() == targets);
}

TEST_CASE("what is read ahead is what would be read, and is forgotten if another step comes") {
  const Data data;
  OneStage one(layout::Mesh::of(1, 1, 1), 0);
  engine::ReadAhead ahead(data.shared(), one.engine());
  ahead.fill(0);
  CHECK(one.tokens() == tokens_from(0, 0));
  ahead.start(4);
  // Read ahead, micro-batches stay as they are.
  CHECK(one.tokens() == tokens_from(0, 0));
  ahead.fill(4);
  CHECK(one.tokens() == tokens_from(4, 0));
  CHECK(one.targets() == tokens_from(4, 1));
  ahead.start(8);
  ahead.fill(16);
  CHECK(one.tokens() == tokens_from(16, 0));
  ahead.fill(8);
  CHECK(one.tokens() == tokens_from(8, 0));
  ahead.start(12);
  ahead.start(16);
  ahead.fill(16);
  CHECK(one.tokens() == tokens_from(16, 0));
  // Never asked for.
  ahead.start(20);
}

TEST_CASE("broken data read ahead fail the step that needs them, and no other") {
  const Data data;
  OneStage one(layout::Mesh::of(1, 1, 1), 0);
  engine::ReadAhead ahead(data.shared(), one.engine());
  ahead.start(bad_sample - 1);
  ahead.fill(4);
  CHECK(one.tokens() == tokens_from(4, 0));
  ahead.start(bad_sample - 1);
  try {
    ahead.fill(bad_sample - 1);
    FAIL("a token outside of the vocabulary was taken");
  } catch (const base::Error& error) {
    CHECK(error.code() == base::ExitCode::checkpoint);
    CHECK_THAT(error.what(), Catch::Contains("is id 97, outside the model's vocabulary of 97"));
  }
  ahead.fill(8);
  CHECK(one.tokens() == tokens_from(8, 0));
  ahead.start(bad_sample);
}

TEST_CASE("a step that was read ahead is read once, by another thread") {
  const Data data;
  OneStage one(layout::Mesh::of(1, 1, 1), 0);
  const engine::SampleReader reader(data.set(), one.engine());
  std::vector<std::pair<std::uint64_t, bool>> reads;  // which, and whether by this thread
  const auto self = std::this_thread::get_id();
  engine::ReadAhead ahead(one.engine(), [&](std::uint64_t cursor, engine::StepSamples& samples) {
    reads.emplace_back(cursor, std::this_thread::get_id() == self);
    reader.read(cursor, UINT64_MAX, samples);
  });
  ahead.fill(0);
  ahead.start(4);
  ahead.fill(4);
  CHECK(one.tokens() == tokens_from(4, 0));
  ahead.start(8);
  ahead.fill(16);
  CHECK(reads ==
        std::vector<std::pair<std::uint64_t, bool>>{{0, true}, {4, false}, {8, false}, {16, true}});
}

TEST_CASE("an end does not wait for a thread that storage holds up") {
  const Data data;
  std::promise<void> answer;
  std::promise<bool> read;
  {
    OneStage one(layout::Mesh::of(1, 1, 1), 0);
    engine::ReadAhead ahead(one.engine(), [&, set = data.shared(),
                                           reader = engine::SampleReader(data.set(), one.engine())](
                                              std::uint64_t cursor, engine::StepSamples& samples) {
      answer.get_future().wait();
      reader.read(cursor, UINT64_MAX, samples);
      read.set_value(samples.tokens == tokens_from(4, 0));
    });
    ahead.start(4);
  }
  // Once it answers, what the thread uses is still there.
  answer.set_value();
  CHECK(read.get_future().get());
}

namespace {

/// No address space has room for the stacks of threads that begin meanwhile.
class NoThreads {
 public:
  NoThreads() {
    REQUIRE(::pthread_getattr_default_np(&before_) == 0);
    pthread_attr_t huge;
    REQUIRE(::pthread_attr_init(&huge) == 0);
    REQUIRE(::pthread_attr_setstacksize(&huge, std::size_t{1} << 60) == 0);
    REQUIRE(::pthread_setattr_default_np(&huge) == 0);
    ::pthread_attr_destroy(&huge);
  }
  NoThreads(const NoThreads&) = delete;
  NoThreads& operator=(const NoThreads&) = delete;
  ~NoThreads() {
    ::pthread_setattr_default_np(&before_);
    ::pthread_attr_destroy(&before_);
  }

 private:
  pthread_attr_t before_{};
};

}  // namespace

TEST_CASE("where no thread can be started, each step reads its own samples") {
  const Data data;
  OneStage one(layout::Mesh::of(1, 1, 1), 0);
  engine::ReadAhead ahead(data.shared(), one.engine());
  {
    const NoThreads limited;
    CHECK_THROWS_AS(std::thread([] {}), std::system_error);
    ahead.start(4);
    ahead.fill(4);
    CHECK(one.tokens() == tokens_from(4, 0));
    ahead.start(8);
  }
  ahead.fill(8);
  CHECK(one.tokens() == tokens_from(8, 0));
}

TEST_CASE("hosts wait for each other once a step, and twice where nobody has counted tokens") {
  const Data data;
  for (const auto all : {AllRanks::no, AllRanks::yes}) {
    OneStage one(layout::Mesh::of(1, 2, 1), 0, all);
    engine::BatchLoader loader(data.set(), one.engine());
    for (int step = 1; step <= 3; ++step) {
      loader.fill(static_cast<std::uint64_t>(step));
      one.host_collectives = 0;
      one.engine().run_schedule();
      CHECK(one.host_collectives == 0);
      const auto reduced = one.engine().reduce_gradients();
      CHECK(one.host_collectives == 1);
      // Two data-parallel ranks, of four sequences each.
      CHECK(reduced.tokens == 64);
      one.engine().update({.step = step, .gradient_norm = reduced.gradient_norm});
      CHECK(one.host_collectives == 1);
    }
    one.engine().run_schedule();
    CHECK(one.host_collectives == 2);
    CHECK(one.engine().reduce_gradients().tokens == 64);
    CHECK(one.host_collectives == 3);
  }
}
