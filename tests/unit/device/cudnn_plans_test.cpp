// The graphs of attention, given to the real library. It makes plans for cards that are only
// described: engines are chosen and their kernels compiled, but nothing runs. What it asks of the
// driver on the way, support/fake_driver answers.
#define CATCH_CONFIG_RUNNER
#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"

#include "device/cudnn/attention.hpp"
#include "device/cudnn/library.hpp"
#include "support/program.hpp"
#include "support/temporary_folder.hpp"

#include <catch2/catch.hpp>
#include <dlfcn.h>

#include <iostream>
#include <regex>
#include <string>

using namespace trireme;
using namespace trireme::device::cudnn;

namespace {

/// As cuDNN writes down what it found of a card.
std::string card_json(const char* name, int capability, int multiprocessors, int shared_bytes) {
  return base::format(
      R"({{"deviceName":"{}","deviceVer":{},"multiProcessorCount":{},)"
      R"("maxSharedMemoryPerBlockOptin":{},"maxGridSize":[2147483647,65535,65535],)"
      R"("maxBlockSize":[1024,1024,64],"driverVer":13000,"regsPerBlock":65536,)"
      R"("smClockRateKHz":1980000,"memClockRateKHz":3201000,"l2CacheSize":62914560,"warpSize":32,)"
      R"("maxSharedMemoryPerBlock":49152,"reservedSharedMemoryPerBlock":1024,)"
      R"("maxRegistersPerSM":65536,"pciDeviceId":0,"maxCtasPerSM":32,"maxThreadsPerBlock":1024,)"
      R"("maxThreadsPerSM":2048,"isTccDriver":0,"supportCoopLaunch":1,)"
      R"("totalGlobalMem":80000000000,"cudaDeviceId":0}})",
      name, capability, multiprocessors, shared_bytes);
}
const std::string h200 = card_json("NVIDIA H200", 900, 132, 232448);
const std::string a100 = card_json("NVIDIA A100", 800, 108, 166912);

const Api& api() {
  return (*load_library())->api;
}

Descriptor described(const std::string& json) {
  Descriptor card(api(), Kind::device_properties);
  card.set_all<char>(Attribute::device_json, json).finalize();
  return card;
}

struct Shape {
  std::int64_t batch;
  std::int64_t seq;
  std::int64_t heads;
  std::int64_t kv_heads;
  std::int64_t head_dim;
};

/// Columns of one matrix that holds q, k and v of every head, as the model's do.
Extents columns(const Shape& s, std::int64_t heads) {
  const auto row = (s.heads + 2 * s.kv_heads) * s.head_dim;
  return {{s.batch, heads, s.seq, s.head_dim}, {s.seq * row, s.head_dim, row, 1}};
}
Extents rows_of_heads(const Shape& s) {
  const auto row = s.heads * s.head_dim;
  return {{s.batch, s.heads, s.seq, s.head_dim}, {s.seq * row, s.head_dim, row, 1}};
}

AttentionBackwardExtents extents_of(const Shape& s, bool causal) {
  AttentionBackwardExtents extents;
  extents.forward = {causal, columns(s, s.heads), columns(s, s.kv_heads), columns(s, s.kv_heads),
                     rows_of_heads(s)};
  extents.d_out = rows_of_heads(s);
  extents.dq = columns(s, s.heads);
  extents.dk = extents.dv = columns(s, s.kv_heads);
  return extents;
}

/// The programs of cards that the library has loaded so far.
std::vector<std::string> images() {
  void* const driver = ::dlopen("libcuda.so.1", RTLD_NOW);
  REQUIRE(driver != nullptr);
  using Image = const char*(std::size_t index, std::size_t * bytes);
  auto* const image = reinterpret_cast<Image*>(::dlsym(driver, "fake_driver_image"));
  REQUIRE(image != nullptr);
  std::vector<std::string> all;
  std::size_t bytes = 0;
  for (const char* each = image(0, &bytes); each != nullptr; each = image(all.size(), &bytes)) {
    all.emplace_back(each, bytes);
  }
  ::dlclose(driver);
  return all;
}

void check_plans(const Descriptor& card, const Shape& s, bool causal) {
  INFO("batch " << s.batch << ", seq " << s.seq << ", heads " << s.heads << "/" << s.kv_heads
                << " of " << s.head_dim << ", causal " << causal);
  const auto extents = extents_of(s, causal);
  const Target target{nullptr, &card};
  const auto forward =
      Plan::make(api(), forward_graph(api(), extents.forward), target, std::size_t{1} << 12);
  INFO((forward.ok() ? "" : forward.failure().text));
  CHECK(forward.ok());
  const auto most = backward_workspace_bytes(extents.forward);
  const auto backward = Plan::make(api(), backward_graph(api(), extents), target, most);
  INFO((backward.ok() ? "" : backward.failure().text));
  REQUIRE(backward.ok());
  // Tight: nearly all that is set aside is the gradient of the scores, which the plan asks for.
  CHECK(backward->workspace_bytes() > most / 4);
}

}  // namespace

TEST_CASE("cuDNN plans attention of every class of shapes for Hopper") {
  const auto card = described(h200);
  for (const std::int64_t head_dim : {64, 128}) {
    for (const auto& [heads, kv_heads] : {std::pair{12, 12}, std::pair{8, 2}, std::pair{6, 1}}) {
      for (const std::int64_t seq : {1, 37, 1000, 1024}) {
        check_plans(card, {2, seq, heads, kv_heads, head_dim}, seq != 1000);
      }
    }
  }
}

TEST_CASE("cuDNN plans attention for Ampere") {
  const auto card = described(a100);
  check_plans(card, {2, 1024, 12, 12, 64}, true);
  check_plans(card, {1, 2048, 32, 8, 128}, true);
}

TEST_CASE("cuDNN plans the parts of a backward that is cut by heads") {
  const auto card = described(h200);
  auto extents = extents_of({1, 8192, 32, 8, 128}, true);
  const auto parts = FusedAttention::parts_of(extents.forward, std::size_t{1} << 30);
  REQUIRE(parts.size() > 1);
  auto& forward = extents.forward;
  for (auto* each : {&forward.q, &forward.out, &extents.d_out, &extents.dq}) {
    each->dims[1] = 4 * parts.front().kv_heads;
  }
  for (auto* each : {&forward.k, &forward.v, &extents.dk, &extents.dv}) {
    each->dims[1] = parts.front().kv_heads;
  }
  const auto plan = Plan::make(api(), backward_graph(api(), extents), {nullptr, &card},
                               backward_workspace_bytes(forward));
  INFO((plan.ok() ? "" : plan.failure().text));
  CHECK(plan.ok());
}

TEST_CASE("no kernel of a backward adds floats in the order in which blocks come") {
  if (std::string(TRIREME_CUOBJDUMP).empty()) {
    std::cout << "there is no cuobjdump: kernels are not disassembled\n";
    return;
  }
  const auto before = images().size();
  const auto hopper = described(h200);
  const auto ampere = described(a100);
  for (const auto* card : {&hopper, &ampere}) {
    check_plans(*card, {2, 1024, 12, 12, 64}, true);
    check_plans(*card, {2, 1024, 8, 2, 128}, true);
  }
  const auto all = images();
  REQUIRE(all.size() >= before + 8);
  const tests::TemporaryFolder folder;
  for (auto index = before; index < all.size(); ++index) {
    const auto path = folder.path() / base::format("{}.cubin", index);
    base::write_file_durably(path, all[index]);
    const auto code =
        tests::run_program({.program = TRIREME_CUOBJDUMP, .arguments = {"-sass", path.string()}});
    REQUIRE(code.out.find("MMA") != std::string::npos);
    const std::regex atomic_floats(
        R"(\bUTMARED\w*|\bRED\w*\.[\w.]*F(16|32)|\bATOM\w*\.[\w.]*F(16|32))");
    std::smatch found;
    const bool adds = std::regex_search(code.out, found, atomic_floats);
    INFO("kernel " << index << ": " << (adds ? found.str() : ""));
    CHECK_FALSE(adds);
  }
}

TEST_CASE("a described card must be whole") {
  CHECK_THROWS_AS(described("{}"), base::Error);
}

int main(int argc, char** argv) {
  const auto library = load_library();
  if (!library.ok()) {
    std::cout << "TRIREME_SKIP: " << library.failure().text << '\n';
    return 0;
  }
  std::cout << "cuDNN " << (*library)->version << ", " << (*library)->path << '\n';
  constexpr std::size_t describes_cards = 91100;
  if ((*library)->api.version() < describes_cards) {
    std::cout << "TRIREME_SKIP: cuDNN before 9.11 cannot plan for a card that is not there\n";
    return 0;
  }
  return Catch::Session().run(argc, argv);
}
