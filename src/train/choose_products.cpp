#include "choose_products.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"
#include "trireme/runtime/agree.hpp"

#include <algorithm>
#include <chrono>

namespace trireme::train {
namespace {

/// What a file of choices may be at most; real ones have some tens of kilobytes.
constexpr std::size_t most_bytes = std::size_t{8} << 20;

std::string read_choices(const std::filesystem::path& path) {
  std::error_code error;
  if (path.empty() || !std::filesystem::exists(path, error)) return {};
  auto text = base::read_text_file(path, base::ExitCode::usage, most_bytes);
  if (text.ok()) return std::move(text).value();
  base::log::local::warning("train", "{}; products are timed again", text.failure().text);
  return {};
}

/// The texts that there are; all ranks have the same.
void adopt(device::ProductTuning& tuning, std::vector<std::string> texts,
           const std::filesystem::path& path) {
  std::erase(texts, std::string());
  const auto status = tuning.adopt(texts);
  if (status.ok()) return;
  base::log::warning("train", "'{}' is passed over: {}; products are timed again", path.string(),
                     status.failure().text);
}

void keep(const device::ProductTuning& tuning, const std::filesystem::path& path) {
  if (path.empty()) return;
  try {
    std::filesystem::create_directories(path.parent_path());
    base::write_file_durably(path, tuning.text());
  } catch (const std::exception& error) {
    base::log::local::warning("train",
                              "cannot keep how products are computed: {} (the next run times them "
                              "again, and may differ in last bits); set XDG_CACHE_HOME",
                              error.what());
  }
}

}  // namespace

std::filesystem::path cache_folder(const base::Environment& environment) {
  if (const auto cache = environment.get("XDG_CACHE_HOME"); cache && cache->starts_with('/')) {
    return std::filesystem::path(*cache) / "trireme";
  }
  const auto home = environment.get("HOME");
  if (!home || home->empty()) return {};
  return std::filesystem::path(*home) / ".cache/trireme";
}

void choose_products(device::ProductTuning& tuning, std::span<const device::ProductCall> calls,
                     const std::filesystem::path& folder, comm::ProcessGroup& world) {
  const auto begin = std::chrono::steady_clock::now();
  const auto path = folder.empty() ? folder : folder / tuning.file_name();
  const bool first = world.rank() == 0;
  const auto known = runtime::all_gather_text(world, first ? read_choices(path) : "").front();
  adopt(tuning, {known}, path);
  const int chosen = runtime::agree_after(world, [&] { return tuning.choose(calls); });
  // The file's choices are in every rank's text: they stay, and stay the same on all.
  const auto texts = runtime::all_gather_text(world, tuning.text());
  adopt(tuning, texts, path);
  const auto is_new = runtime::all_gather_text(world, chosen > 0 ? "new" : "");
  const auto news = std::count(is_new.begin(), is_new.end(), "new");
  if (news == 0) return;
  if (first) keep(tuning, path);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  base::log::info("train", "{} of {} ranks timed products for {:.1f} s{}", news, world.size(),
                  took.count(), path.empty() ? "" : "; kept in '" + path.string() + "'");
}

}  // namespace trireme::train
