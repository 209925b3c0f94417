// SPDX-License-Identifier: Apache-2.0
#include "choose_gemms.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/json.hpp"
#include "trireme/base/log.hpp"
#include "trireme/base/philox.hpp"
#include "trireme/comm/agree.hpp"
#include "trireme/comm/bytes.hpp"

#include <algorithm>
#include <chrono>
#include <set>

namespace trireme::train {
namespace {

/// Limit of a file of choices; real ones have some tens of kilobytes.
constexpr std::size_t most_bytes = std::size_t{8} << 20;

std::string read_choices(const std::filesystem::path& path) {
  std::error_code error;
  if (path.empty() || !std::filesystem::exists(path, error)) return {};
  auto text = base::read_text_file(path, base::ExitCode::usage, most_bytes);
  if (text.ok()) return std::move(text).value();
  base::log::local::warning("train", "{}; products are timed again", text.failure().text);
  return {};
}

/// Uses the list of one file; all ranks have the same text.
void adopt(device::GemmTuning& tuning, const std::string& text, const std::filesystem::path& path) {
  if (text.empty()) return;
  const auto status = tuning.adopt({&text, 1});
  if (status.ok()) return;
  base::log::warning("train", "'{}' is passed over: {}; its products are timed again",
                     path.string(), status.failure().text);
}

void keep(const device::GemmTuning& tuning, const std::filesystem::path& path) {
  if (path.empty() || tuning.size() == 0) return;
  try {
    std::filesystem::create_directories(path.parent_path());
    base::write_file_durably(path, tuning.text());
  } catch (const std::exception& error) {
    base::log::local::warning("train",
                              "cannot keep how products are computed: {} (a later start times them "
                              "again, and may differ in last bits); make '{}' writable",
                              error.what(), path.parent_path().string());
  }
}

/// Digest of the GEMMs that this rank has timed, whatever it chose; 0: none.
std::uint64_t timed_gemms(const std::string& news) {
  const auto list = base::value_or_throw(base::parse_json(news, "products just timed"));
  const auto& gemms = list.at("products");
  if (gemms.empty()) return 0;
  std::string names = list.at("target").get<std::string>();
  for (const auto& [name, algorithm] : gemms.items()) names += '\n' + name;
  return std::max<std::uint64_t>(base::stream_of(names), 1);
}

/// Lowest rank of each set of ranks that timed the same GEMMs, ascending: of two choices for one
/// GEMM the lowest rank's counts, and that rank is always among these.
std::vector<int> reporters(comm::ProcessGroup& world, std::uint64_t timed) {
  std::vector<std::uint64_t> all(static_cast<std::size_t>(world.size()));
  world.all_gather(device::Tensor(&timed, device::DType::i32, {2}),
                   device::Tensor(all.data(), device::DType::i32, {world.size(), 2}));
  std::set<std::uint64_t> seen{0};
  std::vector<int> first;
  for (int rank = 0; rank < world.size(); ++rank) {
    if (seen.insert(all[static_cast<std::size_t>(rank)]).second) first.push_back(rank);
  }
  return first;
}

}  // namespace

void choose_gemms(device::GemmTuning& tuning, std::span<const device::GemmCall> calls,
                  const GemmChoiceFiles& files, comm::ProcessGroup& world) {
  const auto begin = std::chrono::steady_clock::now();
  const auto cache = files.cache.empty() ? files.cache : files.cache / tuning.file_name();
  const bool first = world.rank() == 0;
  const auto of_run = comm::broadcast_bytes(world, first ? read_choices(files.run) : "");
  const auto of_user = comm::broadcast_bytes(world, first ? read_choices(cache) : "");
  adopt(tuning, of_run, files.run);
  adopt(tuning, of_user, cache);
  const int chosen = comm::agree_after(world, [&] { return tuning.choose(calls); });
  const auto speakers = reporters(world, chosen > 0 ? timed_gemms(tuning.news()) : 0);
  // Ranks of one stage time the same: one text is exchanged for each kind of ranks.
  std::vector<std::string> news;
  for (const int rank : speakers) {
    news.push_back(comm::broadcast_bytes(world, rank == world.rank() ? tuning.news() : "", rank));
  }
  const auto status = tuning.adopt(news);
  TRIREME_ENSURE(status.ok(), "lists that ranks have just written can be read");
  if (first && tuning.text() != of_run) keep(tuning, files.run);
  if (news.empty()) return;
  if (first) keep(tuning, cache);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  base::log::info("train", "products that no list names were timed for {:.1f} s{}", took.count(),
                  cache.empty() ? "" : "; kept in '" + cache.string() + "'");
}

}  // namespace trireme::train
