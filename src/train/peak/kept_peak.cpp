// SPDX-License-Identifier: Apache-2.0
#include "train/peak/kept_peak.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/json.hpp"
#include "trireme/base/json_text.hpp"
#include "trireme/base/log.hpp"
#include "trireme/base/philox.hpp"
#include "trireme/comm/bytes.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

namespace trireme::train {
namespace {

namespace fs = std::filesystem;
using Peaks = std::map<std::string, double>;

/// Limit of a file; an entry has about 200 bytes.
constexpr std::size_t most_bytes = std::size_t{1} << 20;
/// Kinds that a file keeps: a new program or layout is a new one.
constexpr std::size_t most_kinds = 1000;

/// Entries of a file; none of one that is missing or damaged: they are measured again.
Peaks read(const fs::path& path) {
  std::error_code error;
  if (path.empty() || !fs::exists(path, error)) return {};
  const auto text = base::read_text_file(path, base::ExitCode::usage, most_bytes);
  const auto json = text.ok() ? base::parse_json(*text, path.string()) : text.failure();
  if (!json.ok() || !json->is_object()) {
    base::log::local::warning("train", "'{}' is passed over ({}); the peak is measured again",
                              path.string(), json.ok() ? "no object" : json.failure().text);
    return {};
  }
  Peaks peaks;
  for (const auto& [name, flops] : json->items()) {
    if (flops.is_number() && std::isfinite(flops.get<double>()) && flops.get<double>() > 0) {
      peaks[name] = flops.get<double>();
    }
  }
  return peaks;
}

std::optional<double> find(const fs::path& path, const std::string& name) {
  const auto peaks = read(path);
  const auto found = peaks.find(name);
  return found == peaks.end() ? std::nullopt : std::optional(found->second);
}

/// Adds to what the file has by now: other runs write it too.
void write(const fs::path& path, const std::string& name, double flops) {
  if (path.empty() || flops <= 0) return;
  try {
    auto peaks = read(path);
    if (peaks.size() >= most_kinds && !peaks.contains(name)) peaks.clear();
    auto& kept = peaks[name];
    if (kept >= flops) return;
    kept = flops;
    fs::create_directories(path.parent_path());
    base::write_file_durably(path, base::json_text(base::Json(peaks), 2) + "\n");
  } catch (const std::exception& error) {
    base::log::local::warning(
        "train",
        "cannot keep the peak that MFU divides by: {} (a later start measures "
        "it again); make '{}' writable",
        error.what(), path.parent_path().string());
  }
}

/// A hash of what all ranks say: the same for the same kinds, whoever has which.
std::uint64_t digest_of_all(const std::string& own, comm::ProcessGroup& world) {
  // In 16 bits a word, whose sum over 32,767 ranks does not overflow.
  std::array<std::int32_t, 4> words{};
  auto rest = base::stream_of(own);
  for (auto& word : words) {
    word = static_cast<std::int32_t>(rest & 0xffff);
    rest >>= 16;
  }
  world.all_reduce(device::Tensor(words.data(), device::DType::i32, {4}));
  return base::stream_of(base::format("{}", base::join(words, " ")));
}

}  // namespace

void KeptPeak::look_up(const std::string& own_kind, comm::ProcessGroup& world) {
  const auto digest = digest_of_all(own_kind, world);
  double known = 0;
  if (world.rank() == 0) {
    name_ = base::format("{} x {}; {:016x}", world.size(), own_kind, digest);
    known = std::max(find(files_.run, name_).value_or(0), find(files_.user, name_).value_or(0));
  }
  // As text: a number's bits, whatever the group can carry.
  known = std::stod(comm::broadcast_bytes(world, base::format("{}", known)));
  flops_.reset();
  if (known == 0) return;
  flops_ = known;
  // The run may not have it.
  if (!name_.empty()) write(files_.run, name_, known);
}

void KeptPeak::raise(double of_gemms, double of_run) {
  flops_ = std::max(of_run, flops_.value_or(0));
  if (name_.empty()) return;
  write(files_.run, name_, *flops_);
  write(files_.user, name_, of_gemms);
}

}  // namespace trireme::train
