#include "trireme/runtime/agree.hpp"

#include "trireme/base/format.hpp"

#include <algorithm>
#include <cstring>

namespace trireme::runtime {
namespace {

using comm::ProcessGroup;
using device::DType;
using device::Tensor;

/// Longer texts are cut: no rank can make all others run out of memory.
constexpr std::size_t text_limit = std::size_t{16} << 10;

std::int32_t maximum(ProcessGroup& group, std::int32_t value) {
  group.all_reduce(Tensor(&value, DType::i32, {1}), comm::ReduceOp::max);
  return value;
}

std::string list_of_ranks(const std::vector<int>& ranks) {
  constexpr std::size_t most = 8;
  if (ranks.size() <= most) {
    return base::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", base::join(ranks, ", "));
  }
  const std::vector<int> first(ranks.begin(), ranks.begin() + most);
  return base::format("ranks {} and {} more", base::join(first, ", "), ranks.size() - most);
}

}  // namespace

std::vector<std::string> all_gather_text(ProcessGroup& group, std::string_view text) {
  const auto own = std::min(text.size(), text_limit);
  const auto longest = maximum(group, static_cast<std::int32_t>(own));
  // Whole words for the length, then the bytes.
  const auto words = 1 + (static_cast<std::size_t>(longest) + 3) / 4;
  std::vector<std::int32_t> mine(words);
  std::vector<std::int32_t> all(words * static_cast<std::size_t>(group.size()));
  mine[0] = static_cast<std::int32_t>(own);
  std::memcpy(mine.data() + 1, text.data(), own);
  group.all_gather(
      Tensor(mine.data(), DType::i32, {static_cast<std::int64_t>(words)}),
      Tensor(all.data(), DType::i32, {group.size(), static_cast<std::int64_t>(words)}));
  std::vector<std::string> texts;
  for (auto one = all.begin(); one != all.end(); one += static_cast<std::ptrdiff_t>(words)) {
    texts.emplace_back(reinterpret_cast<const char*>(&*(one + 1)), static_cast<std::size_t>(*one));
  }
  return texts;
}

void agree(ProcessGroup& group, const base::Status& status) {
  const auto code = status.ok() ? 0 : static_cast<std::int32_t>(status.failure().code);
  if (maximum(group, code) == 0) return;
  // A code in front of the text; success is the empty text.
  std::string mine;
  if (!status.ok()) mine = base::format("{} {}", code, status.failure().text);
  const auto texts = all_gather_text(group, mine);
  std::vector<int> failed;
  for (int position = 0; position < group.size(); ++position) {
    const auto index = static_cast<std::size_t>(position);
    if (!texts[index].empty()) failed.push_back(group.ranks()[index].value());
  }
  const auto first = std::find_if(texts.begin(), texts.end(),
                                  [](const std::string& text) { return !text.empty(); });
  const auto space = first->find(' ');
  const base::ExitCode first_code{std::stoi(first->substr(0, space))};
  const base::Rank culprit(failed.front());
  auto text = first->substr(space + 1);
  if (group.size() > 1) {
    failed.erase(failed.begin());
    text = base::format("rank {}: {}", culprit.value(), text);
    if (!failed.empty()) text += base::format(" ({} failed too)", list_of_ranks(failed));
  }
  throw comm::AgreedError({first_code, text}, culprit, group.size());
}

void agree_equal(ProcessGroup& group, std::uint64_t hash, std::string_view what,
                 std::string_view advice) {
  std::int32_t mine[2];
  std::memcpy(mine, &hash, sizeof hash);
  std::vector<std::int32_t> all(2 * static_cast<std::size_t>(group.size()));
  group.all_gather(Tensor(mine, DType::i32, {2}),
                   Tensor(all.data(), DType::i32, {group.size(), 2}));
  std::vector<int> others;
  for (std::size_t position = 0; position < static_cast<std::size_t>(group.size()); ++position) {
    if (std::memcmp(&all[2 * position], all.data(), sizeof hash) != 0) {
      others.push_back(group.ranks()[position].value());
    }
  }
  if (others.empty()) return;
  const auto reference = group.ranks().front();
  throw comm::AgreedError(
      {base::ExitCode::launch,
       base::format("{} of {} is not that of rank {} (all ranks must compute the same thing); {}",
                    what, list_of_ranks(others), reference.value(), advice)},
      base::Rank(others.front()), group.size());
}

}  // namespace trireme::runtime
