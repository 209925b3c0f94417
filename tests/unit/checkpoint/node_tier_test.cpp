// SPDX-License-Identifier: Apache-2.0
#include "trireme/checkpoint/node_tier.hpp"

#include "trireme/base/error.hpp"
#include "trireme/checkpoint/background_save.hpp"

#include "unit/checkpoint/support.hpp"

#include <catch2/catch.hpp>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <random>
#include <set>
#include <thread>
#include <vector>

using namespace trireme;
using namespace trireme::tests;
using checkpoint::NodeTier;

namespace {

const layout::Shape shape{600, 500};

/// Nodes with storage of their own, and the shared folder.
class Nodes {
 public:
  std::filesystem::path of(int node) const {
    return scratch_.path() / ("node" + std::to_string(node));
  }
  std::filesystem::path shared() const { return scratch_.path() / "shared"; }
  NodeTier tier(const std::vector<int>& nodes, int rank, int copies = 1) const {
    return {of(nodes[static_cast<std::size_t>(rank)]), nodes, copies};
  }
  std::filesystem::path step(int node, std::int64_t number) const {
    return of(node) / checkpoint::step_folder_name(number);
  }
  void lose(int node) const { std::filesystem::remove_all(of(node)); }

 private:
  ScratchFolder scratch_;
};

std::string save_error(const Nodes& nodes, const std::vector<int>& map, std::int64_t step,
                       float value, const ThreadGroup::OnTheWay& on_the_way = {}) {
  std::string text;
  const auto ranks = static_cast<int>(map.size());
  run_ranks(
      ranks,
      [&](comm::ProcessGroup& world) {
        const auto tier = nodes.tier(map, world.rank());
        const auto box = [ranks](int rank) {
          return layout::Box{{600 / ranks * rank, 0}, {600 / ranks, 500}};
        };
        const Held mine("w", shape, device::DType::f32, box(world.rank()));
        std::fill_n(mine.data.f32(), mine.data.element_count(), value);
        std::vector<OwnedBox> boxes;
        for (int rank = 0; rank < ranks; ++rank) {
          boxes.push_back(
              {"w", shape, device::DType::f32, box(rank), static_cast<std::size_t>(rank)});
        }
        checkpoint::SaveRequest request{tier.folder(),      step,       0, "test", {},
                                        contents_of(boxes), {mine.data}};
        std::vector<std::byte> copies(copied_bytes(tier, request.contents, world.rank()));
        request.tier = &tier;
        request.copies = copies;
        try {
          checkpoint::BackgroundSave save(request, {}, world);
          while (!save.poll(world)) {
          }
        } catch (const base::Error& error) {
          if (world.rank() == 0) text = error.what();
        }
      },
      on_the_way);
  return text;
}
void save(const Nodes& nodes, const std::vector<int>& map, std::int64_t step, float value) {
  REQUIRE(save_error(nodes, map, step, value) == "");
}

std::optional<std::int64_t> recover(const Nodes& nodes, const std::vector<int>& map) {
  std::optional<std::int64_t> recovered;
  run_ranks(static_cast<int>(map.size()), [&](comm::ProcessGroup& world) {
    const auto tier = nodes.tier(map, world.rank());
    const auto found = checkpoint::recover(tier, nodes.shared(), world);
    if (world.rank() == 0 && found) recovered = found->step;
  });
  return recovered;
}

/// The one value of all elements of the shared folder's newest step.
float loaded_value(const Nodes& nodes) {
  float value = 0;
  run_ranks(1, [&](comm::ProcessGroup& world) {
    const Held all("w", shape, device::DType::f32, layout::whole(shape));
    const auto choose = [&](const checkpoint::Manifest&) { return std::vector{all.wanted()}; };
    REQUIRE(checkpoint::load_newest(nodes.shared(), choose, world).has_value());
    value = all.data.f32()[0];
    CHECK(std::all_of(all.data.f32(), all.data.f32() + all.data.element_count(),
                      [value](float each) { return each == value; }));
  });
  return value;
}

void flip(const std::filesystem::path& file) {
  std::fstream stream(file, std::ios::binary | std::ios::in | std::ios::out);
  stream.seekg(100'000);
  const int before = stream.get();
  stream.seekp(100'000);
  stream.put(static_cast<char>(before ^ 0x10));
}

}  // namespace

TEST_CASE("copies lie on other nodes, and both ends know of them") {
  std::mt19937 dice(7);
  for (int turn = 0; turn < 200; ++turn) {
    std::vector<int> map(1 + dice() % 24);
    for (auto& node : map) node = static_cast<int>(dice() % 5);
    const auto copies = static_cast<int>(dice() % 4);
    const NodeTier tier("x", map, copies);
    const auto nodes = std::set<int>(map.begin(), map.end()).size();
    const auto ranks = static_cast<int>(map.size());
    std::vector<std::vector<int>> owners(map.size());
    for (int rank = 0; rank < ranks; ++rank) {
      std::set<int> seen{map[static_cast<std::size_t>(rank)]};
      for (const auto holder : tier.holders(rank)) {
        CHECK(seen.insert(map[static_cast<std::size_t>(holder)]).second);
        owners[static_cast<std::size_t>(holder)].push_back(rank);
      }
      CHECK(seen.size() - 1 == std::min(static_cast<std::size_t>(copies), nodes - 1));
    }
    for (int rank = 0; rank < ranks; ++rank) {
      CHECK(tier.owners(rank) == owners[static_cast<std::size_t>(rank)]);
    }
  }
}

TEST_CASE("the loss of any one node loses nothing") {
  const std::vector<int> map{0, 0, 1, 1, 1, 2};
  for (int lost = 0; lost < 3; ++lost) {
    const Nodes nodes;
    save(nodes, map, 7, 42);
    nodes.lose(lost);
    // On the same nodes, one of them new; then on the two that are left.
    CHECK(recover(nodes, map) == 7);
    CHECK(loaded_value(nodes) == 42);
    CHECK(checkpoint::verify(nodes.shared() / "step-000000007", checkpoint::VerifyLevel::deep)
              .good());
    std::filesystem::remove_all(nodes.shared());
    CHECK(recover(nodes, {(lost + 1) % 3, (lost + 2) % 3}) == 7);
    CHECK(loaded_value(nodes) == 42);
  }
}

TEST_CASE("a step of which a file is lost everywhere is left for the one before") {
  const std::vector<int> map{0, 0, 1, 1, 2, 2};
  const Nodes nodes;
  save(nodes, map, 3, 3);
  save(nodes, map, 4, 4);
  for (const int node : {0, 1}) std::filesystem::remove_all(nodes.step(node, 4));
  CHECK(recover(nodes, map) == 3);
  CHECK(loaded_value(nodes) == 3);
  nodes.lose(0);
  nodes.lose(1);
  std::filesystem::remove_all(nodes.shared());
  CHECK_FALSE(recover(nodes, map));
  CHECK(checkpoint::list(nodes.shared()).empty());
}

TEST_CASE("the same values make the same files, whenever they are saved") {
  const std::vector<int> map{0};
  const Nodes nodes;
  save(nodes, map, 1, 5);
  // HDF5 knows the time in seconds.
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  save(nodes, map, 2, 5);
  const auto manifest = [&](std::int64_t step) {
    return base::value_or_throw(checkpoint::read_manifest(nodes.step(0, step)));
  };
  CHECK(manifest(1).files.at(0).checksums_sha256 == manifest(2).files.at(0).checksums_sha256);
}

TEST_CASE("a damaged file is taken from another node") {
  const std::vector<int> map{0, 0, 1, 1};
  const Nodes nodes;
  save(nodes, map, 5, 5);
  flip(nodes.step(0, 5) / "shard-00001.h5");
  flip(nodes.step(1, 5) / "shard-00002.h5");
  CHECK(recover(nodes, map) == 5);
  CHECK(loaded_value(nodes) == 5);
  // Both of one file.
  std::filesystem::remove_all(nodes.shared());
  flip(nodes.step(1, 5) / "shard-00001.h5");
  CHECK_FALSE(recover(nodes, map));
  CHECK(std::filesystem::is_empty(nodes.shared()));
}

TEST_CASE("nodes recover nothing that the shared folder has") {
  const std::vector<int> map{0, 1};
  const Nodes nodes;
  save(nodes, map, 5, 5);
  CHECK(recover(nodes, map) == 5);
  CHECK_FALSE(recover(nodes, map));
  save(nodes, map, 6, 6);
  CHECK(recover(nodes, map) == 6);
  // A damaged one does not count.
  std::filesystem::resize_file(nodes.shared() / "step-000000006" / "shard-00000.h5", 100);
  CHECK(recover(nodes, map) == 6);
  CHECK(loaded_value(nodes) == 6);
}

TEST_CASE("values that change on the way to another node fail the save") {
  const std::vector<int> map{0, 1};
  const Nodes nodes;
  const auto error = save_error(nodes, map, 5, 5, [](std::vector<std::byte>& message) {
    if (message.size() > 100'000) message[70'000] ^= std::byte{1};
  });
  CHECK_THAT(error, Catch::Contains("the copy of 'shard-00001.h5' that came from rank 1 is not "
                                    "what that rank has written"));
  for (const int node : map) CHECK(std::filesystem::is_empty(nodes.of(node)));
}

TEST_CASE("a step that a thread copies from the nodes is the step") {
  const std::vector<int> map{0, 0, 1};
  const Nodes nodes;
  save(nodes, map, 9, 9);
  run_ranks(3, [&](comm::ProcessGroup& world) {
    const auto from = nodes.step(map[static_cast<std::size_t>(world.rank())], 9);
    const auto manifest = base::value_or_throw(checkpoint::read_manifest(from));
    checkpoint::SaveRequest request{nodes.shared(), 9, 0, "test", {}, manifest.contents, {}};
    request.from = from;
    checkpoint::BackgroundSave drain(request, {}, world);
    while (!drain.poll(world)) {
    }
  });
  CHECK(loaded_value(nodes) == 9);
}

TEST_CASE("a node that cannot make a folder leaves none on the others") {
  const std::vector<int> map{0, 1, 2};
  const Nodes nodes;
  save(nodes, map, 1, 1);
  std::filesystem::remove_all(nodes.of(1));
  std::ofstream(nodes.of(1)) << "no folder";
  CHECK_THAT(save_error(nodes, map, 2, 2), Catch::Contains("rank 1: cannot make folder") &&
                                               Catch::Contains(nodes.of(1).string()));
  for (const int node : {0, 2}) {
    CHECK(checkpoint::list_uncommitted(nodes.of(node)).empty());
    CHECK(checkpoint::list(nodes.of(node)).size() == 1);
  }
}

TEST_CASE("a node forgets a run with all that earlier ones have left in its place") {
  const ScratchFolder scratch;
  const auto local = scratch.path() / "local";
  const auto run = scratch.path() / "run";
  CHECK(checkpoint::forget_node_folders(local, run).empty());
  const auto own = checkpoint::open_node_folder(local, run, "b", true);
  std::filesystem::create_directories(own / "step-000000005");
  const auto earlier = local / (own.filename().string().substr(0, 25) + "a");
  std::filesystem::create_directories(earlier);
  const auto other = checkpoint::open_node_folder(local, scratch.path() / "other", "b", true);
  std::filesystem::create_directory_symlink(other, local / "link");
  std::filesystem::create_directory_symlink(other, own / "link");
  CHECK(checkpoint::forget_node_folders(local, run).size() == 2);
  CHECK_FALSE(std::filesystem::exists(own));
  CHECK_FALSE(std::filesystem::exists(earlier));
  CHECK(std::filesystem::exists(other));
  CHECK(checkpoint::forget_node_folders(local, run).empty());
}

TEST_CASE("a node's folder is this user's alone") {
  const ScratchFolder scratch;
  const auto local = scratch.path() / "local";
  const auto run = scratch.path() / "run";
  const auto first = checkpoint::open_node_folder(local, run, "a", true);
  struct stat facts {};
  REQUIRE(::stat(first.c_str(), &facts) == 0);
  CHECK((facts.st_mode & 0777) == 0700);
  CHECK(checkpoint::open_node_folder(local, run, "a", true) == first);
  const auto other_run = checkpoint::open_node_folder(local, scratch.path() / "other", "a", true);
  // Another start of a run that was begun anew.
  const auto second = checkpoint::open_node_folder(local, run, "b", true);
  CHECK_FALSE(std::filesystem::exists(first));
  CHECK(std::filesystem::exists(other_run));
  std::filesystem::permissions(second, std::filesystem::perms::all);
  CHECK_THROWS_WITH(checkpoint::open_node_folder(local, run, "b", true),
                    Catch::Contains("is no folder of this user alone"));
  std::filesystem::remove(second);
  std::filesystem::create_directory_symlink(other_run, second);
  CHECK_THROWS_WITH(checkpoint::open_node_folder(local, run, "b", true),
                    Catch::Contains("is no folder of this user alone"));
}

TEST_CASE("a folder that cannot be made names its key") {
  CHECK_THROWS_WITH(checkpoint::open_node_folder("/proc/none", "run", "a", true),
                    Catch::Contains("cannot make '/proc/none' on this node") &&
                        Catch::Contains("set checkpoint.local_directory to a folder"));
}

TEST_CASE("a node keeps the steps that it is told to") {
  const std::vector<int> map{0, 1};
  const Nodes nodes;
  for (const std::int64_t step : {1, 2, 3}) save(nodes, map, step, 1);
  keep_on_node(nodes.tier(map, 0), [](std::int64_t step) { return step != 2; });
  std::vector<std::int64_t> left;
  for (const auto& step : checkpoint::list(nodes.of(0))) left.push_back(step.step);
  CHECK(left == std::vector<std::int64_t>{3, 1});
  CHECK(checkpoint::list(nodes.of(1)).size() == 3);
}
