// SPDX-License-Identifier: Apache-2.0
#include "trireme/comm/agree.hpp"
#include "trireme/comm/peer_error.hpp"
#include "trireme/comm/process_group.hpp"

#include <catch2/catch.hpp>

#include <filesystem>
#include <stdexcept>
#include <vector>

using namespace trireme;
using device::DType;
using device::Tensor;

TEST_CASE("a group of one keeps its numbers and copies between places") {
  const auto group = comm::make_local_group("tp", base::Rank(5));
  CHECK(group->size() == 1);
  CHECK(group->rank() == 0);
  CHECK(group->ranks().front() == base::Rank(5));
  CHECK(std::string(group->backend()) == "local");

  std::vector<float> x{1, 2, 3};
  std::vector<float> y(3);
  const Tensor from(x.data(), DType::f32, {3});
  const Tensor to(y.data(), DType::f32, {3});
  group->all_reduce(from);
  group->broadcast(from, 0);
  group->barrier();
  CHECK(x == std::vector<float>{1, 2, 3});
  group->reduce_scatter(from, to);
  CHECK(y == x);
  y.assign(3, 0);
  group->all_gather(from, to);
  CHECK(y == x);
  y.assign(3, 0);
  group->all_to_all(from, to);
  CHECK(y == x);
  group->all_gather(from, from);
  CHECK(x == std::vector<float>{1, 2, 3});
}

TEST_CASE("messages to oneself match by tag, in the order of their start") {
  const auto group = comm::make_local_group("pp", base::Rank(0));
  std::vector<std::int32_t> a{1};
  std::vector<std::int32_t> b{2};
  std::vector<std::int32_t> in(2);
  const Tensor first(in.data(), DType::i32, {1});
  const Tensor second(in.data() + 1, DType::i32, {1});
  auto early = group->start_receive(first, 0, 7);
  CHECK_FALSE(early.poll());
  group->send(Tensor(a.data(), DType::i32, {1}), 0, 7);
  a[0] = 99;  // sent is sent
  group->send(Tensor(b.data(), DType::i32, {1}), 0, 7);
  group->receive(second, 0, 7);
  early.wait();
  CHECK(in == std::vector<std::int32_t>{1, 2});
}

TEST_CASE("waiting for a message that nobody sent to oneself is an error, not a hang") {
  const auto group = comm::make_local_group("pp", base::Rank(3));
  float x = 0;
  try {
    group->receive(Tensor(&x, DType::f32, {1}), 0, 4);
    FAIL("the receive came back");
  } catch (const comm::PeerError& error) {
    CHECK(error.code() == base::ExitCode::peer);
    CHECK(error.absence().ranks == std::vector<base::Rank>{base::Rank(3)});
  }
}

TEST_CASE("tensors that do not fit a collective are a defect of the caller") {
  const auto group = comm::make_local_group("tp", base::Rank(0));
  std::vector<float> x(12);
  const Tensor whole(x.data(), DType::f32, {3, 4});
  CHECK_THROWS_AS(group->all_reduce(whole.slice(1, 0, 2)), base::Error);
  CHECK_THROWS_AS(group->all_gather(whole.slice(0, 0, 2), whole), base::Error);
  CHECK_THROWS_AS(group->broadcast(whole, 1), base::Error);
}

TEST_CASE("a name that the system does not take is a status of files, and no defect") {
  const std::string name(300, 'n');
  const auto status = comm::status_of([&] { std::filesystem::create_directory(name); });
  REQUIRE_FALSE(status.ok());
  CHECK(status.failure().code == base::ExitCode::checkpoint);
  CHECK(status.failure().text == "cannot use '" + name + "': File name too long");
  const auto other = comm::status_of([] { throw std::runtime_error("other"); });
  REQUIRE_FALSE(other.ok());
  CHECK(other.failure().code == base::ExitCode::internal);
}
