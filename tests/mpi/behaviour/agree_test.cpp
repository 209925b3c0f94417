// SPDX-License-Identifier: Apache-2.0
#include "trireme/comm/agree.hpp"

#include "trireme/comm/bytes.hpp"

#include "support/mpi/world.hpp"

#include <catch2/catch.hpp>

using namespace trireme;
using testing::mpi;

namespace {

base::Failure failure_of(int rank) {
  return {base::ExitCode::topology, "no cores on rank " + std::to_string(rank)};
}

}  // namespace

TEST_CASE("the first rank gathers texts of any length, in the order of the ranks") {
  const auto world = mpi().make_world({comm::Backend::automatic, 60});
  const auto text_of = [](int rank) {
    return std::string(static_cast<std::size_t>(rank * rank * 7 % 23),
                       static_cast<char>('a' + rank));
  };
  // Twice: nothing of the first is left over.
  for (int time = 0; time < 2; ++time) {
    const auto texts = comm::gather_bytes(*world, text_of(world->rank()));
    if (world->rank() != 0) {
      CHECK(texts.empty());
      continue;
    }
    REQUIRE(texts.size() == static_cast<std::size_t>(world->size()));
    for (int rank = 0; rank < world->size(); ++rank) {
      CHECK(texts[static_cast<std::size_t>(rank)] == text_of(rank));
    }
  }
}

TEST_CASE("texts of all ranks come in order, whatever their lengths") {
  const auto world = mpi().make_world();
  // Some are longer than the 16 KiB at which texts were once cut.
  const auto text_of = [](int rank) {
    return std::string(static_cast<std::size_t>(rank * 30011), static_cast<char>('a' + rank));
  };
  const auto texts = comm::all_gather_bytes(*world, text_of(world->rank()));
  REQUIRE(texts.size() == static_cast<std::size_t>(world->size()));
  for (int rank = 0; rank < world->size(); ++rank) {
    CHECK(texts[static_cast<std::size_t>(rank)] == text_of(rank));
    CHECK(comm::broadcast_bytes(*world, text_of(world->rank()), rank) == text_of(rank));
  }
}

TEST_CASE("a failure's text is told whole, however long") {
  const auto world = mpi().make_world();
  const int last = world->size() - 1;
  const std::string text(100'000, 'y');
  try {
    comm::agree(*world, world->rank() == last
                            ? base::Status(base::Failure{base::ExitCode::topology, text})
                            : base::Status{});
    FAIL("ranks went on without rank " << last);
  } catch (const comm::AgreedError& error) {
    CHECK(std::string(error.what()).find(text) != std::string::npos);
  }
}

TEST_CASE("when all succeed, all go on with their own value") {
  const auto world = mpi().make_world();
  CHECK_NOTHROW(comm::agree(*world, base::Status{}));
  CHECK(comm::agree(*world, base::Result<int>(world->rank() + 5)) == world->rank() + 5);
  CHECK(comm::agree_after(*world, [&] { return world->rank(); }) == world->rank());
}

TEST_CASE("when some fail, all name the lowest of them and its text") {
  const auto world = mpi().make_world();
  // Every rank but the first fails; alone, the only rank does.
  const int lowest = world->size() > 1 ? 1 : 0;
  const auto rank = world->rank();
  bool thrown = false;
  try {
    comm::agree(*world, rank >= lowest ? base::Status(failure_of(rank)) : base::Status{});
  } catch (const comm::AgreedError& error) {
    thrown = true;
    const std::string text = error.what();
    CAPTURE(text);
    CHECK(error.first() == base::Rank(lowest));
    CHECK(error.group_size() == world->size());
    CHECK(error.code() == base::ExitCode::topology);
    CHECK(text.find("no cores on rank " + std::to_string(lowest)) != std::string::npos);
    CHECK((world->size() <= 2 || text.find("failed too") != std::string::npos));
  }
  CHECK(thrown);
}

TEST_CASE("an exception of one rank becomes everybody's") {
  const auto world = mpi().make_world();
  const int last = world->size() - 1;
  const auto action = [&]() -> int {
    if (world->rank() == last) throw base::Error(base::ExitCode::checkpoint, "disk is full");
    return 1;
  };
  try {
    comm::agree_after(*world, action);
    FAIL("ranks went on without rank " << last);
  } catch (const comm::AgreedError& error) {
    CHECK(error.code() == base::ExitCode::checkpoint);
    CHECK(error.first() == base::Rank(last));
  }
}

TEST_CASE("ranks with different numbers are told apart") {
  const auto world = mpi().make_world();
  CHECK_NOTHROW(comm::agree_equal(*world, 77, "the configuration", "start all alike"));
  if (world->size() == 1) return;
  // The upper half of the number counts too.
  const std::uint64_t hash = world->rank() == 1 ? std::uint64_t{1} << 40 : 0;
  try {
    comm::agree_equal(*world, hash, "the configuration", "start all alike");
    FAIL("different numbers passed");
  } catch (const comm::AgreedError& error) {
    CHECK(error.code() == base::ExitCode::launch);
    CHECK(error.first() == base::Rank(1));
    CHECK(std::string(error.what()).find("start all alike") != std::string::npos);
  }
}

TEST_CASE("what the first rank has becomes everybody's, and its failure everybody's own") {
  const auto world = mpi().make_world();
  const bool is_first = world->rank() == 0;
  const auto of = [&](const base::Result<std::string>& of_first) {
    return comm::agree_on_first(*world, is_first ? of_first : std::string("ignored"));
  };
  CHECK(of(std::string("chosen")) == "chosen");
  CHECK(of(std::string(1000, 'c')) == std::string(1000, 'c'));
  CHECK(of(std::string()).empty());
  const base::Failure refused{base::ExitCode::topology, "rank 1 has no NCCL"};
  try {
    of(refused);
    FAIL("a failure of the first rank passed");
  } catch (const comm::AgreedError& error) {
    CHECK(error.code() == base::ExitCode::topology);
    CHECK(std::string(error.what()) == refused.text);
    CHECK(error.failed_count() == world->size());
  }
}

TEST_CASE("every rank whose number is another one is named") {
  const auto world = mpi().make_world();
  if (world->size() < 3) return;
  try {
    comm::agree_equal(*world, world->rank() == 0 ? 5 : 6, "the configuration", "start all alike");
    FAIL("different numbers passed");
  } catch (const comm::AgreedError& error) {
    CHECK(error.first() == base::Rank(1));
    CHECK_THAT(error.what(), Catch::Contains("of ranks 1, 2"));
    CHECK_THAT(error.what(), Catch::Contains("is not that of rank 0"));
  }
}
